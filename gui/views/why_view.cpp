#include "gui/views/why_view.hpp"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QTabWidget>
#include <QTableWidget>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>

#include "core/spec/plan_text.hpp"
#include "gui/models/plan_figures.hpp"
#include "gui/models/scenario_tips.hpp"
#include "gui/models/step_parts.hpp"
#include "gui/models/text.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/step_charts.hpp"
#include "gui/views/widgets.hpp"
#include "planner/wording.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::gui {
namespace {

// Factors read better than percents from this change on.
constexpr double kMostPercent = 100.0;

QString comparison_hint() {
  return WhyView::tr(
      "Ctrl+click a point or a row in <b>Plans</b>, or a row's context menu, compares the chosen "
      "plan with that one.<br>Two files that are opened at once are compared.");
}

validation::Confidence confidence_of(const sim::StepResult& result, const Scenario& scenario) {
  return validation::confidence_of(scenario, result.step, result.memory().peak);
}

// "Peak of 58 GB in stage 0, while mlp.down runs (forward). It fits with a probability of 99 %."
QString peak_text(const sim::StepResult& result, const Scenario& scenario,
                  const std::optional<planner::PeakMoment>& moment) {
  QString text = WhyView::tr("Peak of %1 in %2")
                     .arg(bytes_text(result.memory().peak),
                          to_qstring(stage_name(scenario.plan, result.fullest)));
  if (moment) text += u", "_s + peak_moment_text(*moment);
  text += u'.';
  if (const auto probability = confidence_of(result, scenario).fit_probability)
    text += WhyView::tr(" It fits with a probability of %1.").arg(percent_text(*probability));
  if (scenario.plan.pp > 1)
    text += WhyView::tr(" The legend has the most of each part in any stage.");
  return text;
}

// The warnings about the plan; empty if there are none.
QString warning_text(const sim::StepResult& result, const Scenario& scenario) {
  const QString memory = memory_warning(WhyView::tr("The plan"), result, scenario);
  const auto confidence = confidence_of(result, scenario);
  if (confidence.gap.empty()) return memory;
  const QString ground = to_qstring(validation::ground_text("The plan", confidence));
  return memory.isEmpty() ? ground : memory + u' ' + ground;
}

// "16.2 s a step (80 %: 14.9 s to 18.8 s)".
QString step_text(Seconds step, const Scenario& scenario) {
  QString text = WhyView::tr("%1 a step").arg(time_text(step));
  const auto interval = validation::step_interval(step, validation::class_of(scenario));
  if (!interval) return text;
  return text +
         WhyView::tr(" (80 %: %1 to %2)").arg(time_text(interval->low), time_text(interval->high));
}

// The difference of the other plan's figure from the chosen one's: "−3.2 %", "170.0 times".
QString change_text(const planner::ResultDifference& result) {
  if (result.first == 0.0) return u"–"_s;
  const double share = result.change() / result.first;
  if (100.0 * share < kMostPercent) return signed_percent_text(share);
  return WhyView::tr("%1 times").arg(fixed_text(1.0 + share, 1));
}

// What differs: the fields of the plan, then those of its model and machine, then figures of the
// step.
TextTable differences_table(const planner::Comparison& comparison, const QString& first,
                            const QString& second) {
  TextTable table{{WhyView::tr("What"), first, second, WhyView::tr("Difference")}, {}};
  auto inputs = comparison.inputs;
  std::stable_partition(inputs.begin(), inputs.end(), [](const planner::InputDifference& input) {
    return input.path.front() == "plan";
  });
  for (const planner::InputDifference& input : inputs)
    table.rows.push_back({to_qstring(planner::field_text(input)), to_qstring(input.first.text),
                          to_qstring(input.second.text), u"–"_s});
  for (const planner::ResultDifference& result : comparison.results) {
    const QString before = to_qstring(planner::value_text(result.figure, result.first));
    const QString after = to_qstring(planner::value_text(result.figure, result.second));
    if (before != after)
      table.rows.push_back(
          {to_qstring(planner::figure_text(result.figure)), before, after, change_text(result)});
  }
  return table;
}

}  // namespace

WhyView::WhyView(Selection* selection, QWidget* parent)
    : View(parent),
      selection_(selection),
      limits_(
          this, [this](const auto& limits) { take_limits(*limits); },
          [this](const QString& error) { report_problem(error); }),
      comparison_(
          this, [this](const auto& comparison) { take_comparison(*comparison); },
          [this](const QString& error) { report_problem(error); }) {
  title_ = wrapped_label(u"why_title"_s);
  title_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  make_bold(*title_);
  limit_ = wrapped_label(u"why_limit"_s);
  warning_ = wrapped_label(u"why_memory_warning"_s);
  figures_ = named<HintLabel>(u"why_figures"_s);
  pages_ = named<QTabWidget>(u"why_pages"_s);
  pages_->setDocumentMode(true);
  pages_->addTab(create_breakdown(), tr("Breakdown"));
  pages_->addTab(create_comparison(), tr("Comparison"));
  // The two stand beside each other, because each line of text takes its height from the charts.
  auto* trust = new QWidget;
  auto* beside = new QHBoxLayout(trust);
  beside->setContentsMargins(0, 0, 0, 0);
  beside->addWidget(warning_, 3);
  beside->addWidget(figures_, 2);
  QWidget* content = column_of({title_, limit_, trust, pages_}, pages_);
  content->layout()->setSpacing(4);
  empty_ = new EmptyState(content);
  QVBoxLayout* layout = scrolled_column(*this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(empty_);
  connect(selection_, &Selection::set_changed, this, [this] { other_.reset(); });
  connect(selection_, &Selection::chosen_changed, this, &WhyView::show_chosen);
  connect(selection_, &Selection::compared_changed, this, [this] {
    if (selection_->compared()) other_.reset();
    show_compared();
  });
  show_chosen();
}

QWidget* WhyView::create_breakdown() {
  waterfall_ = new WaterfallChart;
  memory_ = new MemoryChart;
  sensitivity_ = new SensitivityChart;
  connect(sensitivity_, &SensitivityChart::more_wanted, this, &WhyView::more_wanted);
  peak_ = wrapped_label(u"why_peak"_s);
  return new PaneRow({titled(tr("Where the time goes"), waterfall_),
                      titled(tr("Where the memory goes"), memory_, peak_),
                      titled(tr("Gain from 10 % more of each resource"), sensitivity_)},
                     {420, 380, 330});
}

QWidget* WhyView::create_comparison() {
  verdict_ = wrapped_label(u"verdict"_s);
  compared_title_ = named<QLabel>(u"compared_plans"_s);
  compared_title_->setTextFormat(Qt::PlainText);
  make_bold(*compared_title_);
  auto* stop = tool_button(u"stop_comparing"_s, tr("Stop comparing"));
  connect(stop, &QToolButton::clicked, this, &WhyView::stop_comparing);
  both_charts_ = named<WaterfallChart>(u"waterfall_both"_s);
  differences_ = text_table_widget(u"differences"_s);
  differences_->setAlternatingRowColors(true);
  auto* panes = new PaneRow({column_of({compared_title_, both_charts_}, both_charts_),
                             titled(tr("What differs"), differences_)},
                            {520, 520});
  QWidget* pane = column_of({row_of({verdict_, stop}, verdict_), panes}, panes);
  pane->layout()->setContentsMargins(0, 4, 0, 0);
  no_comparison_ = new EmptyState(pane);
  no_comparison_->show_hint(comparison_hint());
  return no_comparison_;
}

void WhyView::show_obstacle(const QString& text) {
  obstacle_ = text;
  if (!selection_->chosen()) empty_->show_hint(hint());
}

QString WhyView::hint() const {
  if (!obstacle_.isEmpty()) return obstacle_;
  const PlanSetPointer set = selection_->set();
  if (set && set->plans.empty() && set->infeasible) return hint_of_no_plan();
  return tr(
      "<b>No plan yet</b><br>Where the time and the memory of the chosen plan go stands here.");
}

void WhyView::report_problem(const QString& error) {
  Q_EMIT problem(error);
  call_ready();
}

void WhyView::show_chosen() {
  const auto chosen = selection_->chosen();
  if (!chosen) {
    limits_.cancel();
    clear_comparison();
    explained_.reset();
    empty_->show_hint(hint());
    return call_ready();
  }
  const PlanSetPointer set = selection_->set();
  const planner::PlanCandidate& candidate = set->plans[*chosen];
  const Scenario scenario = set->scenario(*chosen);
  // A search that goes on chooses the same plan again and again.
  if (explained_ == scenario) return;
  explained_ = scenario;
  Q_EMIT problem({});
  empty_->show_content();
  title_->setText(
      tr("%1 · %2").arg(step_text(candidate.result.step, scenario), plan_text(candidate.plan)));
  title_->setToolTip(plan_tip(*set, *chosen));
  limit_->setText(tr("Looking for what limits it …"));
  const QString warning = warning_text(candidate.result, scenario);
  warning_->setText(with_whole_quantities(u"⚠ "_s + warning));
  warning_->setVisible(!warning.isEmpty());
  figures_->setText(figures_text(scenario.cluster, scenario.stack));
  waterfall_->show(candidate.result, source_of(*set));
  memory_->show(candidate.result, source_of(*set), stage_memories(candidate.result, scenario),
                to_qstring(accelerator_word(scenario.cluster)));
  peak_->setText(peak_text(candidate.result, scenario, std::nullopt));
  sensitivity_->show_waiting();
  limits_.start([scenario](const std::stop_token& stop) {
    Limits limits{planner::explain(scenario, planner::kSensitivityStep, stop), std::nullopt};
    if (!stop.stop_requested())
      limits.peak = planner::peak_moment(scenario, limits.explanation.result);
    return limits;
  });
  show_compared();
}

void WhyView::take_limits(const Limits& limits) {
  const planner::Explanation& explanation = limits.explanation;
  limit_->setText(with_whole_quantities(to_qstring(planner::limit_text("The plan", explanation))));
  peak_->setText(with_whole_quantities(peak_text(explanation.result, *explained_, limits.peak)));
  sensitivity_->show(explanation.sensitivities, simulated_on(explained_->cluster));
  if (!is_busy()) Q_EMIT settled();
  call_ready();
}

void WhyView::show_compared() {
  const auto first = selection_->scenario();
  const auto second = other_ ? other_ : selection_->compared_scenario();
  if (!first || !second || *first == *second) return clear_comparison();
  begin_comparison(*first, *second);
}

void WhyView::compare_with(const Scenario& other, const QString& name) {
  other_ = other;
  other_name_ = name;
  verdict_->setText(tr("Comparing with %1 …").arg(name));
  show_compared();
}

void WhyView::stop_comparing() {
  other_.reset();
  selection_->compare_with(std::nullopt);
  show_compared();
}

std::pair<QString, QString> WhyView::names_of_compared() const {
  const auto name = [](std::size_t plan, const char* letter) {
    return tr("plan %1 (%2)").arg(count_text(plan + 1), to_qstring(letter));
  };
  const auto chosen = selection_->chosen(), compared = selection_->compared();
  if (!chosen || !compared) return {tr("the chosen plan"), tr("the plan of %1").arg(other_name_)};
  return {name(*chosen, "A"), name(*compared, "B")};
}

void WhyView::begin_comparison(const Scenario& first, const Scenario& second) {
  std::pair both(first, second);
  // The same plans may have other numbers, as a search finds more of them.
  if (both_ == both) return compared_ ? show_comparison() : void();
  both_ = std::move(both);
  compared_.reset();
  Q_EMIT comparing(true);
  comparison_.start(
      [first, second](const std::stop_token&) { return planner::compare(first, second); });
}

void WhyView::clear_comparison() {
  comparison_.cancel();
  if (!both_) return;
  both_.reset();
  compared_.reset();
  Q_EMIT comparing(false);
  show_table(*differences_, {});
  verdict_->clear();
  no_comparison_->show_hint(comparison_hint());
  pages_->setCurrentIndex(0);
}

void WhyView::take_comparison(const planner::Comparison& comparison) {
  compared_ = comparison;
  no_comparison_->show_content();
  both_charts_->show(comparison.first, source_of(*selection_->set()), comparison.second);
  show_comparison();
  pages_->setCurrentIndex(1);
  if (!is_busy()) Q_EMIT settled();
  call_ready();
}

void WhyView::show_comparison() {
  const auto [first, second] = names_of_compared();
  verdict_->setText(
      to_qstring(planner::verdict_text(*compared_, first.toStdString(), second.toStdString())));
  compared_title_->setText(tr("Above: %1 · below, pale: %2").arg(first, second));
  show_table(*differences_, differences_table(*compared_, first, second));
  differences_->horizontalHeader()->setSectionResizeMode(0, QHeaderView::Stretch);
  differences_->horizontalHeaderItem(3)->setToolTip(
      tr("The figure of %1 against that of %2: more (+), less (−), or how many times as much if it "
         "is at least double.")
          .arg(second, first));
}

TextTable WhyView::table() const {
  TextTable table;
  if (pages_->currentIndex() == 1) {
    std::vector<int> columns = {0, 1, 2, 3};
    return text_table(*differences_->model(), columns);
  }
  table.header = {tr("Of"), tr("Part"), tr("Value"), tr("Unit"), tr("Share")};
  const auto chosen = selection_->chosen();
  if (!chosen) return table;
  const PlanSetPointer set = selection_->set();
  const sim::StepResult& result = set->plans[*chosen].result;
  const auto add = [&](const QString& of, const QString& part, double value, const char* unit,
                       double share) {
    table.rows.push_back({of, part, exact_text(value), to_qstring(unit), exact_text(share)});
  };
  for (const TimePart& part : time_parts(result.time()))
    add(tr("step"), part.title, part.time.value(), "s", part.time / result.step);
  const std::vector<Bytes> capacities = stage_memories(result, set->scenario(*chosen));
  for (std::size_t stage = 0; stage < result.stages.size(); ++stage) {
    const sim::MemoryPeak& memory = result.stages[stage].memory;
    for (const MemoryCategory category : enumerators<MemoryCategory>()) {
      const Bytes bytes = memory.of(category);
      if (bytes > Bytes())
        add(tr("memory of %1")
                .arg(to_qstring(
                    stage_name(set->plans[*chosen].plan, static_cast<std::int64_t>(stage)))),
            title_of(category), bytes.value(), "bytes", bytes / capacities[stage]);
    }
  }
  for (const planner::Sensitivity& each : sensitivity_->sensitivities())
    add(tr("10 % more"), to_qstring(name_of(each.resource)), each.step.value(), "s", each.gain);
  return table;
}

std::vector<ReportPart> WhyView::report() const {
  if (!explained_) return {};
  QStringList texts = {title_->text(), limit_->text(), figures_->text()};
  if (!warning_->isHidden()) texts.append(warning_->text());
  std::vector<ReportPart> parts = {{tr("Where the time goes"), texts.join(u'\n'), waterfall_, {}},
                                   {tr("Where the memory goes"), peak_->text(), memory_, {}}};
  if (!sensitivity_->sensitivities().empty())
    parts.push_back({tr("Gain from 10 % more of each resource"), {}, sensitivity_, {}});
  if (compared_) {
    const auto [first, second] = names_of_compared();
    parts.push_back({tr("Comparison"), verdict_->text() + u'\n' + compared_title_->text(),
                     both_charts_, differences_table(*compared_, first, second)});
  }
  return parts;
}

}  // namespace shardwright::gui
