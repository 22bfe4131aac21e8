// The making of the scenario's fields, and the text that is typed into them.
#include <QComboBox>
#include <QCompleter>
#include <QGridLayout>
#include <QGroupBox>
#include <QKeyEvent>
#include <QLineEdit>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <array>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/this_machine.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/scenario_choice.hpp"
#include "gui/models/text.hpp"
#include "gui/views/query_completer.hpp"
#include "gui/views/scenario_view.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

// Adds a group for rows of a title and a field, or of one text across both. The form layout of Qt
// 6.4 would give a row no height if a hidden one held its place before.
QGridLayout* add_group(QVBoxLayout& column, const QString& title) {
  auto* group = new QGroupBox(title);
  auto* form = new QGridLayout(group);
  form->setColumnStretch(1, 1);
  form->setContentsMargins(10, 6, 10, 8);
  form->setVerticalSpacing(5);
  column.addWidget(group);
  return form;
}

void add_row_of(QGridLayout& form, QLabel* title, QWidget* field) {
  const int row = form.rowCount();
  form.addWidget(title, row, 0);
  form.addWidget(field, row, 1);
}

void add_text_row(QGridLayout& form, QLabel* text) {
  form.addWidget(text, form.rowCount(), 0, 1, 2);
}

// Adds the hidden text that says below a field what it was in the baseline.
QLabel* add_before(QGridLayout& form, const QString& id) {
  QLabel* before = named<HintLabel>(u"before_"_s + id);
  before->setTextFormat(Qt::PlainText);
  before->hide();
  form.addWidget(before, form.rowCount(), 1);
  return before;
}

QLabel* facts_label() {
  auto* label = new HintLabel;
  label->setTextFormat(Qt::RichText);
  QFont small = label->font();
  small.setPointSizeF(small.pointSizeF() * 0.9);
  label->setFont(small);
  return label;
}

// Returns the name that is chosen or typed. The list may show more than the name itself.
QString value_of(const QComboBox& box) {
  const int index = box.findText(box.currentText(), Qt::MatchExactly | Qt::MatchCaseSensitive);
  return index < 0 ? box.currentText().trimmed() : box.itemData(index).toString();
}

}  // namespace

void ScenarioView::create_fields(QVBoxLayout& column) {
  column.setContentsMargins(8, 8, 8, 8);
  origin_ = wrapped_label(u"scenario_origin"_s);
  origin_->setTextFormat(Qt::PlainText);
  origin_->hide();
  column.addWidget(origin_);
  const std::array groups = {add_group(column, tr("Workload")), add_group(column, tr("Machine")),
                             add_group(column, tr("Goal"))};
  create_workload(*groups[0]);
  create_machine(*groups[1]);
  create_goal(*groups[2]);
  int widest = 0;
  for (const auto& row : rows_) widest = std::max(widest, row.title->sizeHint().width());
  for (QGridLayout* group : groups) group->setColumnMinimumWidth(0, widest);
  create_what_ifs(*add_group(column, tr("What if the hardware had …")));
  column.addStretch(1);
}

void ScenarioView::create_workload(QGridLayout& form) {
  add_names(form, Field::Model, shipped_models(), &ScenarioChoice::model, true);
  model_facts_ = facts_label();
  add_text_row(form, model_facts_);
  PowerSpinBox* batch = add_count(form, Field::GlobalBatch, &ScenarioChoice::global_batch,
                                  kGlobalBatchRange, tr(" sequences"), tr(" sequence"));
  batch->setSpecialValueText(tr("auto"));
  add_count(form, Field::SeqLen, &ScenarioChoice::seq_len, kSeqLenRange, tr(" tokens"),
            tr(" token"));
  std::vector<std::string> precisions;
  for (const Precision precision : kPrecisions) precisions.emplace_back(name_of(precision));
  add_names(form, Field::Precision, precisions, &ScenarioChoice::precision, false);
}

void ScenarioView::create_machine(QGridLayout& form) {
  const auto with_own = [](std::vector<std::string> names) {
    names.insert(names.begin(), "");
    return names;
  };
  std::vector<std::string> clusters = shipped_clusters();
  clusters.insert(clusters.begin(), kHere);
  add_names(form, Field::Cluster, clusters, &ScenarioChoice::cluster, true);
  cluster_facts_ = facts_label();
  add_text_row(form, cluster_facts_);
  add_count(form, Field::Gpus, &ScenarioChoice::gpus, kGpusRange);
  stack_ = add_names(form, Field::Stack, shipped_stacks(), &ScenarioChoice::stack, true);
  add_names(form, Field::Accelerator, with_own(shipped_accelerators()),
            &ScenarioChoice::accelerator, false);
  add_names(form, Field::Node, with_own(shipped_profiles("nodes")), &ScenarioChoice::node, false);
  add_names(form, Field::Fabric, with_own(shipped_profiles("fabrics")), &ScenarioChoice::fabric,
            false);
}

void ScenarioView::create_goal(QGridLayout& form) {
  std::vector<std::string> objectives;
  for (const planner::Objective objective : enumerators<planner::Objective>())
    objectives.emplace_back(name_of(objective));
  add_names(form, Field::Objective, objectives, &ScenarioChoice::objective, false);

  memory_ = new GigabyteSpinBox;
  memory_->setRange(static_cast<double>(kMemoryRange.least),
                    static_cast<double>(kMemoryRange.most));
  memory_->setSpecialValueText(tr("95 % sure to fit"));
  connect(memory_, &QDoubleSpinBox::valueChanged, this, [this](double value) {
    edit(Field::MaxMemory, [value](ScenarioChoice& choice) { choice.max_memory_gb = value; });
  });
  add_row(form, Field::MaxMemory, memory_);

  constraints_ = new QLineEdit;
  constraints_->setPlaceholderText(tr("tp=8, pp>=4, not zero=3"));
  new QueryCompleter(constraints_, constraint_completions());
  constraints_->setClearButtonEnabled(true);
  const auto take = [this] {
    edit(Field::Constraints,
         [&](ScenarioChoice& choice) { choice.constraints = constraints_->text().toStdString(); });
  };
  connect(constraints_, &QLineEdit::editingFinished, this, take);
  connect(constraints_, &QLineEdit::textEdited, this, [take](const QString& text) {
    if (text.isEmpty()) take();  // The clear button finishes no edit.
  });
  add_row(form, Field::Constraints, constraints_);
}

void ScenarioView::create_what_ifs(QGridLayout& form) {
  for (const planner::Resource resource : enumerators<planner::Resource>()) {
    const auto part = static_cast<int>(resource);
    auto* box = named<QSpinBox>(u"what_if_%1"_s.arg(part));
    box->setRange(static_cast<int>(kWhatIfRange.least), static_cast<int>(kWhatIfRange.most));
    box->setSingleStep(10);
    box->setSuffix(tr(" %"));
    connect(box, &QSpinBox::valueChanged, this, [this, resource, part](int percent) {
      edit(
          Field::WhatIf, [=](ScenarioChoice& choice) { choice.what_if[resource] = percent; }, part);
    });
    box->installEventFilter(this);
    leave_wheel_to_scrolling(*box);
    take_when_left(*box);
    auto* label = new QLabel(what_if_title(resource));
    label->setBuddy(box);
    add_row_of(form, label, box);
    what_if_titles_[resource] = label;
    what_ifs_[resource] = box;
    what_ifs_before_[resource] = add_before(form, box->objectName());
  }
  reset_what_ifs_ = tool_button(u"reset_what_ifs"_s, tr("Reset to 100 %"),
                                tr("Sets everything in this group to 100 %"));
  connect(reset_what_ifs_, &QToolButton::clicked, this, [this] {
    ScenarioChoice choice = document_->choice();
    choice.what_if = ScenarioChoice().what_if;
    document_->replace(tr("what-ifs"), choice);
  });
  form.addWidget(reset_what_ifs_, form.rowCount(), 1);
}

void ScenarioView::add_row(QGridLayout& form, Field field, QWidget* widget) {
  widget->setObjectName(id_of(field));
  widget->installEventFilter(this);
  if (qobject_cast<QLineEdit*>(widget) == nullptr) leave_wheel_to_scrolling(*widget);
  if (auto* box = qobject_cast<QAbstractSpinBox*>(widget)) take_when_left(*box);
  QLabel* problem = wrapped_label(u"problem_"_s + id_of(field));
  problem->setTextFormat(Qt::PlainText);
  problem->hide();
  auto* title = new QLabel(title_of(field));
  title->setBuddy(widget);
  add_row_of(form, title, widget);
  rows_.push_back({field, title, widget, add_before(form, id_of(field))});
  add_text_row(form, problem);
  problems_[static_cast<std::size_t>(field)] = problem;
}

QComboBox* ScenarioView::add_names(QGridLayout& form, Field field,
                                   const std::vector<std::string>& names,
                                   std::string ScenarioChoice::*member, bool may_be_path) {
  auto* box = new QComboBox;
  box->setEditable(may_be_path);
  box->setInsertPolicy(QComboBox::NoInsert);
  box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
  box->setMinimumContentsLength(12);
  for (const std::string& name : names)
    box->addItem(name.empty() ? tr("the cluster's own") : to_qstring(name), to_qstring(name));
  const auto take = [this, field, member](const QString& value) {
    if (field == Field::Cluster) return take_cluster(value);
    edit(field, [&](ScenarioChoice& choice) { choice.*member = value.toStdString(); });
  };
  connect(box, &QComboBox::activated, this,
          [box, take](int index) { take(box->itemData(index).toString()); });
  if (may_be_path) {
    box->completer()->setCompletionMode(QCompleter::PopupCompletion);
    box->completer()->setFilterMode(Qt::MatchContains);
    connect(box->lineEdit(), &QLineEdit::editingFinished, this,
            [box, take] { take(value_of(*box)); });
  }
  names_.push_back({box, member});
  add_row(form, field, box);
  connect(problems_[field], &QLabel::linkActivated, this, take);
  return box;
}

PowerSpinBox* ScenarioView::add_count(QGridLayout& form, Field field,
                                      std::int64_t ScenarioChoice::*member, Range range,
                                      const QString& unit, const QString& unit_of_one) {
  auto* box = new PowerSpinBox;
  box->setRange(static_cast<int>(range.least), static_cast<int>(range.most));
  box->set_unit(unit, unit_of_one);
  connect(box, &QSpinBox::valueChanged, this, [this, field, member](int value) {
    edit(field, [&](ScenarioChoice& choice) { choice.*member = value; });
  });
  counts_.push_back({box, member});
  add_row(form, field, box);
  connect(problems_[field], &QLabel::linkActivated, box,
          [box](const QString& count) { box->setValue(count.toInt()); });
  return box;
}

// Takes a number when the user presses Enter or leaves its field. Each of its digits alone would
// start a search, whose answer would rewrite the field while the user still types.
void ScenarioView::take_when_left(QAbstractSpinBox& box) {
  box.setKeyboardTracking(false);
  connect(box.findChild<QLineEdit*>(), &QLineEdit::textEdited, this,
          [this, &box] { typed_into_ = &box; });
  connect(&box, &QAbstractSpinBox::editingFinished, this, [this] { typed_into_ = nullptr; });
}

// True while the field holds typed text that is not taken, which it undoes by itself.
bool ScenarioView::has_unfinished_text(const QObject* field) const {
  if (field == typed_into_) return true;
  if (field == constraints_)
    return constraints_->text() != to_qstring(document_->choice().constraints);
  return std::any_of(names_.begin(), names_.end(), [&](const NameField& name) {
    return name.box == field && name.box->isEditable() &&
           value_of(*name.box) != to_qstring(document_->choice().*(name.member));
  });
}

bool ScenarioView::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride && !has_unfinished_text(watched)) {
    const QKeyCombination keys = static_cast<const QKeyEvent*>(event)->keyCombination();
    constexpr std::array kKeys = {Qt::CTRL | Qt::Key_Z, Qt::CTRL | Qt::SHIFT | Qt::Key_Z,
                                  Qt::CTRL | Qt::Key_Y};
    if (std::find(kKeys.begin(), kKeys.end(), keys) != kKeys.end()) {
      event->ignore();  // The window's commands take the key, not the field.
      return true;
    }
  }
  return View::eventFilter(watched, event);
}

}  // namespace shardwright::gui
