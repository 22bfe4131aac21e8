#include "gui/views/scenario_view.hpp"

#include <QComboBox>
#include <QEvent>
#include <QLabel>
#include <QLineEdit>
#include <QScrollArea>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "core/spec/profile_library.hpp"
#include "core/spec/this_machine.hpp"
#include "gui/models/scenario_problems.hpp"
#include "gui/models/scenario_table.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/gigabyte_spin_box.hpp"
#include "gui/views/power_spin_box.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLeastScenarioWidth = 300;  // pixels

}  // namespace

ScenarioView::ScenarioView(ScenarioDocument* document, QWidget* parent)
    : View(parent), document_(document) {
  QWidget* fields = create_fields();
  auto* scroll = new QScrollArea;
  scroll->setWidget(fields);
  scroll->setWidgetResizable(true);
  scroll->setFrameShape(QFrame::NoFrame);
  scroll->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll);
  // Content that is wider than the pane is cut off.
  const int bar = style()->pixelMetric(QStyle::PM_ScrollBarExtent, nullptr, scroll);
  setMinimumWidth(std::max(kLeastScenarioWidth, fields->minimumSizeHint().width() + bar));
  connect(document_, &ScenarioDocument::changed, this, &ScenarioView::take_document);
  restyle();
  take_document();
}

void ScenarioView::edit(Field field, const std::function<void(ScenarioChoice&)>& change, int part) {
  if (taking_) return;
  typed_into_ = nullptr;
  ScenarioChoice next = document_->choice();
  change(next);
  // A field that is left as it was is as wrong as before, and is not planned for again.
  if (next == document_->choice()) return;
  show_problem(field, {});
  document_->edit(field, next, part);
}

// This machine may have to be probed first: until then the scenario is on the former cluster.
void ScenarioView::take_cluster(const QString& name) {
  if (name == to_qstring(kHere)) {
    shown_.reset();
    take_document();
    return Q_EMIT this_machine_wanted();
  }
  edit(Field::Cluster,
       [&](ScenarioChoice& choice) { choice = on_cluster(choice, name.toStdString()); });
}

// The stack that the cluster's file holds stands where no other is named: it is offered first, or
// in the place of the shipped one of its name.
bool ScenarioView::offer_own_stack(const std::string& own) {
  if (own == own_stack_) return false;
  own_stack_ = own;
  const std::vector<std::string> shipped = shipped_stacks();
  stack_->clear();
  for (const std::string& name : shipped) stack_->addItem(to_qstring(name), to_qstring(name));
  if (own.empty()) return true;
  const QString name = to_qstring(own);
  if (const int same = stack_->findData(name); same >= 0) stack_->removeItem(same);
  stack_->insertItem(0, tr("%1 (the cluster's own)").arg(name), name);
  return true;
}

void ScenarioView::show_name(QComboBox& box, const QString& value) {
  int index = box.findData(value);
  if (index < 0 && !box.isEditable()) {
    // The name of a file or of another version must not read as something else.
    box.addItem(value, value);
    index = box.count() - 1;
  }
  if (index >= 0) {
    box.setCurrentIndex(index);
  } else {
    box.setEditText(value);
  }
  // The end of a path is seen, and the beginning of a name.
  if (QLineEdit* line = box.lineEdit(); line != nullptr && !value.contains(u'/'))
    line->setCursorPosition(0);
}

// Only fields whose value has changed are written: another one may be half typed.
void ScenarioView::take_document() {
  taking_ = true;
  const std::optional<ScenarioChoice> before = std::exchange(shown_, document_->choice());
  const ScenarioChoice& choice = *shown_;
  const auto is_new = [&](auto member) { return !before || (*before).*member != choice.*member; };
  const bool stack_is_offered_anew = offer_own_stack(own_stack_of(choice.cluster));
  for (const NameField& field : names_) {
    if (is_new(field.member) || (stack_is_offered_anew && field.box == stack_))
      show_name(*field.box, to_qstring(choice.*(field.member)));
  }
  for (const CountField& field : counts_) {
    if (is_new(field.member)) field.box->setValue(static_cast<int>(choice.*(field.member)));
  }
  if (is_new(&ScenarioChoice::max_memory_gb)) memory_->setValue(choice.max_memory_gb);
  const QString constraints = to_qstring(choice.constraints);
  if (is_new(&ScenarioChoice::constraints) && constraints_->text() != constraints) {
    constraints_->setText(constraints);
    if (!constraints_->hasFocus()) constraints_->setCursorPosition(0);
  }
  for (std::size_t i = 0; i < what_ifs_.size(); ++i) {
    if (!before || before->what_if[i] != choice.what_if[i])
      what_ifs_[i]->setValue(choice.what_if[i]);
  }
  taking_ = false;
  update_tips();
}

// The search reports problems, each with its field.
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
  label->setText(text.isEmpty() ? QString() : u"⚠ "_s + text);
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
  origin_->setText(u"⚠ "_s + text);
  origin_->setVisible(!text.isEmpty());
}

TextTable ScenarioView::table() const {
  return table_of(document_->choice());
}

}  // namespace shardwright::gui
