#include "gui/views/scenario_view.hpp"

#include <QComboBox>
#include <QEvent>
#include <QLineEdit>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "core/spec/profile_library.hpp"
#include "core/spec/this_machine.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kLeastScenarioWidth = 300;
constexpr int kLongestProblem = 160;
constexpr std::size_t kMostDescribed = 4;

// Leaves long lists of names to the field's own list, where it has one, and keeps the nearest name.
QString short_problem(const Problem& problem, bool has_list) {
  const QString text = problem_text(problem);
  if (text.size() <= kLongestProblem) return text;
  if (!problem.expected.text.starts_with("one of ")) return text.left(kLongestProblem) + u" …"_s;
  if (!has_list) return text;
  return problem_text({"", problem.found, {"one of the field's list", problem.expected.nearest}});
}

// Describes the first problems of a field, a line each, and says once what several expect. A field
// that `has_list` of the names that it takes needs none in its text.
QString problems_text(const std::vector<Problem>& problems, bool has_list) {
  std::vector<Problem> described;
  for (std::size_t i = 0; i < std::min(problems.size(), kMostDescribed); ++i) {
    const Problem& problem = problems[i];
    const auto same = std::find_if(described.begin(), described.end(), [&](const Problem& other) {
      return other.expected == problem.expected;
    });
    if (same == described.end()) {
      described.push_back({"", problem.found, problem.expected});
    } else {
      same->found += ", " + problem.found;
    }
  }
  QStringList lines;
  for (const Problem& problem : described) lines.append(short_problem(problem, has_list));
  if (problems.size() > kMostDescribed)
    lines.append(u"and %1 more"_s.arg(problems.size() - kMostDescribed));
  return lines.join(u'\n');
}

}  // namespace

ScenarioView::ScenarioView(ScenarioDocument* document, QWidget* parent)
    : View(parent), document_(document) {
  QVBoxLayout* column = scrolled_column(*this);
  create_fields(*column);
  // Content that is wider than the pane is cut off.
  const int bar = style()->pixelMetric(QStyle::PM_ScrollBarExtent);
  setMinimumWidth(std::max(kLeastScenarioWidth, column->minimumSize().width() + bar));
  connect(document_, &ScenarioDocument::changed, this, &ScenarioView::take_document);
  restyle();
  take_document();
}

void ScenarioView::edit(Field field, const std::function<void(ScenarioChoice&)>& change, int part) {
  if (taking_) return;
  typed_into_ = nullptr;
  ScenarioChoice next = document_->choice();
  change(next);
  // A field that is left as it was keeps its problem and starts no search.
  if (next == document_->choice()) return;
  show_problem(field, {});
  document_->edit(field, next, part);
}

// The scenario stays on the former cluster until this machine is probed.
void ScenarioView::take_cluster(const QString& name) {
  if (name == to_qstring(kHere)) {
    shown_.reset();
    take_document();
    return Q_EMIT this_machine_wanted();
  }
  edit(Field::Cluster,
       [&](ScenarioChoice& choice) { choice = on_cluster(choice, name.toStdString()); });
}

// Offers the stack of the cluster's file first, or in the place of the shipped one of its name.
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
    // A name that is not offered must not read as another one.
    box.addItem(value, value);
    index = box.count() - 1;
  }
  if (index >= 0) {
    box.setCurrentIndex(index);
  } else {
    box.setEditText(value);
  }
  // The field shows the end of a path, and the beginning of a name.
  if (QLineEdit* line = box.lineEdit(); line != nullptr && !value.contains(u'/'))
    line->setCursorPosition(0);
}

// Writes only the fields whose value has changed, because another one may be half typed.
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
  mark_changes();
  update_tips();
}

namespace {

// "16,384", "60.5 GB", "bf16".
QString readable_value(Field field, const ScenarioChoice& choice) {
  const QString text = value_text(field, choice);
  if (field == Field::MaxMemory && choice.max_memory_gb != 0.0) return text + u" GB"_s;
  bool is_count = false;
  const qlonglong count = text.toLongLong(&is_count);
  return is_count ? count_text(count) : text;
}

}  // namespace

void ScenarioView::mark_changes_from(const std::optional<ScenarioChoice>& baseline) {
  baseline_ = baseline;
  mark_changes();
}

void ScenarioView::mark_changes() {
  const auto mark = [](QLabel& title, bool differs, QLabel& before, const QString& was) {
    QFont font = title.font();
    font.setBold(differs);
    title.setFont(font);
    before.setText(was.isEmpty() ? was : tr("was %1").arg(was));
    before.setVisible(!was.isEmpty());
  };
  const ScenarioChoice& choice = document_->choice();
  for (const FieldRow& row : rows_) {
    const QString was = baseline_ ? readable_value(row.field, *baseline_) : QString();
    const bool differs = baseline_ && was != readable_value(row.field, choice);
    mark(*row.title, differs, *row.before, differs ? was : QString());
  }
  const WhatIfs usual = ScenarioChoice().what_if;
  const WhatIfs& former = baseline_ ? baseline_->what_if : usual;
  for (const planner::Resource resource : enumerators<planner::Resource>()) {
    const bool differs = choice.what_if[resource] != former[resource];
    mark(*what_if_titles_[resource], differs, *what_ifs_before_[resource],
         baseline_ && differs ? tr("%1 %").arg(former[resource]) : QString());
  }
  reset_what_ifs_->setEnabled(choice.what_if != usual);
}

void ScenarioView::update_tips() {
  const ScenarioChoice& choice = document_->choice();
  const ScenarioParts parts = load_parts(choice);
  for (const FieldRow& row : rows_) {
    const QString tip = tip_of(row.field, choice, parts);
    row.title->setToolTip(tip);
    row.widget->setToolTip(tip);
  }
  for (const planner::Resource resource : enumerators<planner::Resource>()) {
    const QString tip = tip_of(resource, parts);
    what_ifs_[resource]->setToolTip(tip);
    what_if_titles_[resource]->setToolTip(tip);
  }
  model_facts_->setVisible(parts.model.has_value());
  if (parts.model) model_facts_->setText(model_summary(*parts.model));
  try {
    const ClusterSpec cluster = load_cluster_of(choice);
    cluster_facts_->setText(machine_facts(cluster));
    cluster_facts_->setToolTip(cluster_summary(cluster));
    cluster_facts_->setVisible(true);
    const auto of_gpus = std::find_if(rows_.begin(), rows_.end(),
                                      [](const FieldRow& row) { return row.field == Field::Gpus; });
    of_gpus->title->setText(with_accelerator(u"GPUs"_s, accelerator_word(cluster)));
  } catch (const std::exception&) {
    cluster_facts_->setVisible(false);
  }
}

std::vector<Problem> ScenarioView::show_problems(const std::vector<Problem>& problems) {
  EnumArray<Field, std::vector<Problem>> of_fields;
  std::vector<Problem> others;
  for (const Problem& problem : problems) {
    const Field field = field_of(problem.where, Field::WhatIf);
    if (problems_[field] == nullptr) {
      others.push_back(problem);
      continue;
    }
    of_fields[field].push_back(problem);
  }
  for (const Field field : enumerators<Field>()) {
    const std::vector<Problem>& own = of_fields[field];
    show_problem(field, problems_text(own, field != Field::Constraints), offered_value(field, own));
  }
  return others;
}

ScenarioView::OfferedValue ScenarioView::offered_value(Field field,
                                                       const std::vector<Problem>& problems) const {
  if (problems.size() != 1 || field == Field::Constraints) return {};
  if (field == Field::Gpus) {
    const auto most = most_gpus(document_->choice());
    if (!most) return {};
    const QString text = u"at most the %1 "_s, count = count_text(*most);
    return {text.arg(count), text.arg(u"<a href=\"%1\">%2</a>"_s.arg(*most).arg(count))};
  }
  const QString nearest = to_qstring(problems.front().expected.nearest);
  if (nearest.isEmpty()) return {};
  return {u"\"%1\"?"_s.arg(nearest), u"<a href=\"%1\">%1</a>?"_s.arg(nearest.toHtmlEscaped())};
}

void ScenarioView::show_problem(Field field, const QString& text, const OfferedValue& offered) {
  QLabel* label = problems_[field];
  if (label == nullptr) return;  // What-ifs cannot be wrong.
  QString shown = text.isEmpty() ? QString() : u"⚠ "_s + text;
  const bool is_offered = !offered.part.isEmpty() && shown.contains(offered.part);
  if (is_offered)
    shown = shown.toHtmlEscaped().replace(offered.part.toHtmlEscaped(), offered.linked);
  label->setTextFormat(is_offered ? Qt::RichText : Qt::PlainText);
  label->setText(shown);
  label->setVisible(!text.isEmpty());
}

void ScenarioView::changeEvent(QEvent* event) {
  View::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) restyle();
}

void ScenarioView::restyle() {
  const Colours colours = colours_for(palette());
  for (QLabel* problem : problems_) {
    if (problem != nullptr) set_text_colour(*problem, colours.bad);
  }
  set_text_colour(*origin_, colours.warning);
}

void ScenarioView::show_origin(const QString& text) {
  origin_->setText(u"⚠ "_s + text);
  origin_->setVisible(!text.isEmpty());
}

TextTable ScenarioView::fields(bool with_unchanged) const {
  const ScenarioChoice& choice = document_->choice();
  TextTable table;
  table.header = {u"Field"_s, u"Value"_s};
  for (const Field field : enumerators<Field>()) {
    if (field != Field::WhatIf) table.rows.push_back({title_of(field), value_text(field, choice)});
  }
  for (const planner::Resource resource : enumerators<planner::Resource>()) {
    if (!with_unchanged && choice.what_if[resource] == 100) continue;
    table.rows.push_back({u"What if: %1 (%)"_s.arg(what_if_title(resource)),
                          QString::number(choice.what_if[resource])});
  }
  return table;
}

TextTable ScenarioView::table() const {
  return fields(true);
}

std::vector<ReportPart> ScenarioView::report() const {
  return {{{}, {}, nullptr, fields(false)}};
}

}  // namespace shardwright::gui
