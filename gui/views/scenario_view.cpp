#include "gui/views/scenario_view.hpp"

#include <QComboBox>
#include <QCompleter>
#include <QGridLayout>
#include <QGroupBox>
#include <QKeyEvent>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/this_machine.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/gigabyte_spin_box.hpp"
#include "gui/views/power_spin_box.hpp"
#include "gui/views/wheel_to_scrolling.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLeastWidth = 300;      // pixels
constexpr int kLongestProblem = 160;  // characters
constexpr std::size_t kMostTold = 4;  // problems of one field

// Rows of a title and a field, or of one text across both. No form layout: that of Qt 6.4 gives a
// row no height where a hidden one held its place before.
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

QLabel* facts_label() {
  auto* label = new QLabel;
  label->setWordWrap(true);
  label->setTextFormat(Qt::RichText);
  label->setForegroundRole(QPalette::PlaceholderText);
  QFont small = label->font();
  small.setPointSizeF(small.pointSizeF() * 0.9);
  label->setFont(small);
  return label;
}

// Long lists of names are left to the field's own list, where it has one; what was probably meant
// stays.
QString short_problem(const QString& text, bool has_list) {
  if (text.size() <= kLongestProblem) return text;
  const auto guess = text.indexOf(QStringLiteral("did you mean"));
  const auto list = text.indexOf(QStringLiteral("one of "));
  if (list < 0) return text.left(kLongestProblem) + QStringLiteral(" …");
  if (guess < 0 && !has_list) return text;
  if (guess < 0) return text.left(list) + QStringLiteral("one of the field's list");
  // "…; expected one of a, b, … (did you mean "a"?)" becomes "…; did you mean "a"?".
  static const QRegularExpression kExpected(QStringLiteral("expected $"));
  const auto end = text.indexOf(QLatin1Char('?'), guess);
  return text.left(list).remove(kExpected) + text.mid(guess, end - guess + 1);
}

// A line each; what is expected alike is said once.
QString problems_text(const std::vector<Problem>& problems, bool has_list) {
  std::vector<Problem> told;
  for (std::size_t i = 0; i < std::min(problems.size(), kMostTold); ++i) {
    const Problem& problem = problems[i];
    const auto alike = std::find_if(told.begin(), told.end(), [&](const Problem& other) {
      return other.expected == problem.expected;
    });
    if (alike == told.end()) {
      told.push_back({"", problem.found, problem.expected});
    } else {
      alike->found += ", " + problem.found;
    }
  }
  QStringList lines;
  for (const Problem& problem : told) lines.append(short_problem(problem_text(problem), has_list));
  if (problems.size() > kMostTold)
    lines.append(ScenarioView::tr("and %1 more").arg(problems.size() - kMostTold));
  return lines.join(QLatin1Char('\n'));
}

QString machine_facts(const ClusterSpec& cluster) {
  QString facts =
      ScenarioView::tr("%1 × %2 (%3) a node, %4 %5")
          .arg(cluster.accelerators_per_node())
          .arg(to_qstring(cluster.accelerator.name), bytes_text(cluster.accelerator.memory),
               to_qstring(cluster.node.scale_up.name),
               bandwidth_text(cluster.node.scale_up.bandwidth));
  const NicSpec& nic = cluster.node.nic;
  if (nic.per_node > 0)
    facts +=
        ScenarioView::tr(", %1 × %2 NICs").arg(nic.per_node).arg(bandwidth_text(nic.bandwidth));
  return facts;
}

// A name that is offered may be told with more than itself.
QString value_of(const QComboBox& box) {
  const int index = box.findText(box.currentText(), Qt::MatchExactly | Qt::MatchCaseSensitive);
  return index < 0 ? box.currentText().trimmed() : box.itemData(index).toString();
}

QString resource_title(int index) {
  const auto resource = static_cast<planner::Resource>(index);
  if (resource == planner::Resource::Latency) return ScenarioView::tr("Latency, divided by");
  QString title = QString::fromUtf8(name_of(resource));
  title[0] = title[0].toUpper();
  return title;
}

}  // namespace

ScenarioView::ScenarioView(ScenarioDocument* document, QWidget* parent)
    : View(parent), document_(document) {
  auto* fields = new QWidget;
  auto* column = new QVBoxLayout(fields);
  column->setContentsMargins(8, 8, 8, 8);
  origin_ = new QLabel;
  origin_->setObjectName(QStringLiteral("scenario_origin"));
  origin_->setWordWrap(true);
  origin_->setTextFormat(Qt::PlainText);
  origin_->hide();
  column->addWidget(origin_);
  create_workload(*add_group(*column, tr("Workload")));
  create_machine(*add_group(*column, tr("Machine")));
  create_goal(*add_group(*column, tr("Goal")));
  create_what_ifs(*add_group(*column, tr("What if the hardware had …")));
  column->addStretch(1);

  auto* scroll = new QScrollArea;
  scroll->setWidget(fields);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);
  // What is wider than the pane is cut off.
  const int bar = style()->pixelMetric(QStyle::PM_ScrollBarExtent, nullptr, scroll);
  setMinimumWidth(std::max(kLeastWidth, fields->minimumSizeHint().width() + bar));
  connect(document_, &ScenarioDocument::changed, this, &ScenarioView::take_document);
  restyle();
  take_document();
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
  for (const planner::Objective objective : planner::all_objectives())
    objectives.emplace_back(name_of(objective));
  add_names(form, Field::Objective, objectives, &ScenarioChoice::objective, false);

  memory_ = new GigabyteSpinBox;
  memory_->setRange(static_cast<double>(kMemoryRange.least),
                    static_cast<double>(kMemoryRange.most));
  memory_->setSpecialValueText(tr("all of it"));
  connect(memory_, &QDoubleSpinBox::valueChanged, this, [this](double value) {
    edit(Field::MaxMemory, [value](ScenarioChoice& choice) { choice.max_memory_gb = value; });
  });
  add_row(form, Field::MaxMemory, memory_);

  constraints_ = new QLineEdit;
  constraints_->setPlaceholderText(tr("tp=8; not zero=3"));
  constraints_->setClearButtonEnabled(true);
  connect(constraints_, &QLineEdit::textEdited, this, [this](const QString& text) {
    edit(Field::Constraints,
         [&](ScenarioChoice& choice) { choice.constraints = text.toStdString(); });
  });
  add_row(form, Field::Constraints, constraints_);
}

void ScenarioView::create_what_ifs(QGridLayout& form) {
  for (int i = 0; i < kResources; ++i) {
    auto* box = new QSpinBox;
    box->setObjectName(QStringLiteral("what_if_%1").arg(i));
    box->setRange(static_cast<int>(kWhatIfRange.least), static_cast<int>(kWhatIfRange.most));
    box->setSingleStep(10);
    box->setSuffix(tr(" %"));
    connect(box, &QSpinBox::valueChanged, this, [this, i](int percent) {
      edit(
          Field::WhatIf,
          [=](ScenarioChoice& choice) { choice.what_if[static_cast<std::size_t>(i)] = percent; },
          i);
    });
    box->installEventFilter(this);
    leave_wheel_to_scrolling(*box);
    auto* label = new QLabel(resource_title(i));
    label->setBuddy(box);
    add_row_of(form, label, box);
    what_if_titles_[static_cast<std::size_t>(i)] = label;
    what_ifs_[static_cast<std::size_t>(i)] = box;
  }
}

void ScenarioView::add_row(QGridLayout& form, Field field, QWidget* widget) {
  widget->setObjectName(id_of(field));
  widget->installEventFilter(this);
  if (qobject_cast<QLineEdit*>(widget) == nullptr) leave_wheel_to_scrolling(*widget);
  auto* problem = new QLabel;
  problem->setObjectName(QStringLiteral("problem_") + id_of(field));
  problem->setWordWrap(true);
  problem->setTextFormat(Qt::PlainText);
  problem->hide();
  auto* title = new QLabel(title_of(field));
  title->setBuddy(widget);
  rows_.push_back({field, title, widget});
  add_row_of(form, title, widget);
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
  return box;
}

template <class Change>
void ScenarioView::edit(Field field, Change change, int part) {
  if (taking_) return;
  ScenarioChoice next = document_->choice();
  change(next);
  // A field that is left as it was is as wrong as before, and is not planned for again.
  if (next == document_->choice()) return;
  show_problem(field, {});
  document_->edit(field, next, part);
}

// A name that is typed is taken when the field is left: until then the field takes it back itself.
bool ScenarioView::has_unfinished_text(const QObject* field) const {
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
      event->ignore();  // by the field, for the window's commands
      return true;
    }
  }
  return View::eventFilter(watched, event);
}

// This machine may have to be probed first: until then the scenario is on the former cluster.
void ScenarioView::take_cluster(const QString& name) {
  if (name == QString::fromUtf8(kHere)) {
    take_document();
    return Q_EMIT this_machine_wanted();
  }
  edit(Field::Cluster,
       [&](ScenarioChoice& choice) { choice = on_cluster(choice, name.toStdString()); });
}

// The stack that the cluster's file holds stands where no other is named: it is offered first, or
// in the place of the shipped one of its name.
void ScenarioView::offer_own_stack(const std::string& own) {
  if (own == own_stack_) return;
  own_stack_ = own;
  const std::vector<std::string> shipped = shipped_stacks();
  stack_->clear();
  for (const std::string& name : shipped) stack_->addItem(to_qstring(name), to_qstring(name));
  if (own.empty()) return;
  const QString name = to_qstring(own);
  if (const int same = stack_->findData(name); same >= 0) stack_->removeItem(same);
  stack_->insertItem(0, tr("%1 (the cluster's own)").arg(name), name);
}

void ScenarioView::take_document() {
  taking_ = true;
  const ScenarioChoice& choice = document_->choice();
  offer_own_stack(own_stack_of(choice.cluster));
  for (const NameField& field : names_) {
    const QString value = to_qstring(choice.*(field.member));
    int index = field.box->findData(value);
    if (index < 0 && !field.box->isEditable()) {
      // Of a file, or of another version: it must not read as something else.
      field.box->addItem(value, value);
      index = field.box->count() - 1;
    }
    if (index >= 0) {
      field.box->setCurrentIndex(index);
    } else {
      field.box->setEditText(value);
    }
    // Of a path the end is seen, of a name its begin.
    if (QLineEdit* line = field.box->lineEdit();
        line != nullptr && !value.contains(QLatin1Char('/')))
      line->setCursorPosition(0);
  }
  for (const CountField& field : counts_)
    field.box->setValue(static_cast<int>(choice.*(field.member)));
  // What is being typed stays: “0” on the way to “0.5” is no limit yet.
  if (memory_->value() != choice.max_memory_gb) memory_->setValue(choice.max_memory_gb);
  const QString constraints = to_qstring(choice.constraints);
  if (constraints_->text() != constraints) constraints_->setText(constraints);
  for (std::size_t i = 0; i < what_ifs_.size(); ++i) what_ifs_[i]->setValue(choice.what_if[i]);
  taking_ = false;
  update_tips();
}

// What is wrong is told by the search, with its field.
void ScenarioView::update_tips() {
  const ScenarioChoice& choice = document_->choice();
  const ScenarioParts parts = load_parts(choice);
  for (const FieldRow& row : rows_) {
    const QString tip = tip_of(row.field, choice, parts);
    row.title->setToolTip(tip);
    row.widget->setToolTip(tip);
  }
  for (int i = 0; i < kResources; ++i) {
    const QString tip = tip_of(static_cast<planner::Resource>(i), parts);
    what_ifs_[static_cast<std::size_t>(i)]->setToolTip(tip);
    what_if_titles_[static_cast<std::size_t>(i)]->setToolTip(tip);
  }
  model_facts_->setVisible(parts.model.has_value());
  if (parts.model) model_facts_->setText(model_summary(*parts.model));
  try {
    const ClusterSpec cluster = load_cluster_of(choice);
    cluster_facts_->setText(machine_facts(cluster));
    cluster_facts_->setToolTip(cluster_summary(cluster));
    cluster_facts_->setVisible(true);
  } catch (const std::exception&) {
    cluster_facts_->setVisible(false);
  }
}

std::vector<Problem> ScenarioView::show_problems(const std::vector<Problem>& problems) {
  std::array<std::vector<Problem>, kFields> of_fields;
  std::vector<Problem> others;
  for (const Problem& problem : problems) {
    const Field field = field_of(problem.where, Field::WhatIf);
    if (problems_[static_cast<std::size_t>(field)] == nullptr) {
      others.push_back(problem);
      continue;
    }
    of_fields[static_cast<std::size_t>(field)].push_back(problem);
  }
  for (std::size_t i = 0; i < of_fields.size(); ++i) {
    const auto field = static_cast<Field>(i);
    show_problem(field, problems_text(of_fields[i], field != Field::Constraints));
  }
  return others;
}

void ScenarioView::show_problem(Field field, const QString& text) {
  QLabel* label = problems_[static_cast<std::size_t>(field)];
  if (label == nullptr) return;  // of the what-ifs, which cannot be wrong
  label->setText(text.isEmpty() ? QString() : QStringLiteral("⚠ ") + text);
  label->setVisible(!text.isEmpty());
}

void ScenarioView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) restyle();
}

void ScenarioView::restyle() {
  const auto colour = [](QLabel* label, const QColor& text) {
    QPalette colours = label->palette();
    colours.setColor(QPalette::WindowText, text);
    label->setPalette(colours);
  };
  const Colours colours = colours_for(palette());
  for (QLabel* problem : problems_) {
    if (problem != nullptr) colour(problem, colours.bad);
  }
  colour(origin_, colours.warning);
}

void ScenarioView::show_origin(const QString& text) {
  origin_->setText(QStringLiteral("⚠ ") + text);
  origin_->setVisible(!text.isEmpty());
}

TextTable ScenarioView::table() const {
  TextTable table;
  table.header = {tr("Field"), tr("Value")};
  const ScenarioChoice& choice = document_->choice();
  const auto add = [&](Field field, const QString& value) {
    table.rows.push_back({title_of(field), value});
  };
  add(Field::Model, to_qstring(choice.model));
  add(Field::Cluster, to_qstring(choice.cluster));
  const auto add_part = [&](Field field, const std::string& part) {
    add(field, part.empty() ? tr("the cluster's own") : to_qstring(part));
  };
  add_part(Field::Accelerator, choice.accelerator);
  add_part(Field::Node, choice.node);
  add_part(Field::Fabric, choice.fabric);
  add(Field::Stack, to_qstring(choice.stack));
  add(Field::Gpus, QString::number(choice.gpus));
  add(Field::GlobalBatch,
      choice.global_batch == 0 ? tr("auto") : QString::number(choice.global_batch));
  add(Field::SeqLen, QString::number(choice.seq_len));
  add(Field::Precision, to_qstring(choice.precision));
  add(Field::Objective, to_qstring(choice.objective));
  add(Field::MaxMemory,
      choice.max_memory_gb == 0.0
          ? tr("all of it")
          : QString::number(choice.max_memory_gb, 'f', QLocale::FloatingPointShortest));
  add(Field::Constraints, to_qstring(choice.constraints));
  for (std::size_t i = 0; i < choice.what_if.size(); ++i) {
    table.rows.push_back({tr("What if: %1 (%)").arg(resource_title(static_cast<int>(i))),
                          QString::number(choice.what_if[i])});
  }
  return table;
}

}  // namespace shardwright::gui
