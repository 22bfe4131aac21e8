#include "gui/window/step_presenter.hpp"

#include <QEvent>
#include <QTimer>
#include <QWidget>
#include <array>

#include "core/program/rank_grid.hpp"
#include "core/spec/plan_text.hpp"
#include "gui/models/freed_memory.hpp"
#include "gui/models/text.hpp"
#include "gui/schedule/schedule_view.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/timeline/trace_panel.hpp"
#include "gui/topology/pool_steps.hpp"
#include "gui/topology/topology_view.hpp"
#include "gui/views/empty_state.hpp"
#include "sim/step/predicted_timeline.hpp"

namespace shardwright::gui {
namespace {

constexpr int kMostStaleMs = 300;
// What the window shows before and after the compared step, as a share of its length.
constexpr double kStepMargin = 0.03;

// Throws RuntimeFailure for a step of more than `sim::kMostSpans` ops. Returns a step without a
// timeline once `stop` is requested.
PredictedStep predict_step(const Scenario& scenario, const std::stop_token& stop) {
  std::optional<sim::TracedStep> step = sim::trace_step(scenario, stop);
  if (!step) return {scenario, {}, nullptr, nullptr, {}, {}};
  return {scenario,
          std::move(step->result),
          std::make_shared<const Program>(std::move(step->program)),
          std::make_shared<const Timeline>(std::move(step->timeline)),
          {},
          {}};
}

PredictedStep predict_placed_step(const Scenario& scenario, const std::stop_token& stop) {
  PredictedStep step = predict_step(scenario, stop);
  if (stop.stop_requested()) return step;
  try {
    step.placed = placed_steps(scenario, step.timeline.get());
  } catch (const InputError& error) {
    step.unplaced = error_text(error);
  }
  return step;
}

sim::ReservedMemory reserved_of(const Scenario& scenario) {
  return sim::reserved_memory(scenario.plan, scenario.model, scenario.stack);
}

}  // namespace

StepPresenter::StepPresenter(Selection* selection, Views views, QObject* parent)
    : QObject(parent),
      selection_(selection),
      views_(views),
      job_(
          this,
          [this](const auto& step) {
            take(*step);
            call_ready();
          },
          [this](const QString& error) {
            clear_views();
            Q_EMIT problem(error);
            call_ready();
          }),
      beside_job_(
          this,
          [this](const auto& step) {
            beside_ = *step;
            show_timelines();
          },
          [this](const QString& error) { Q_EMIT problem(error); }),
      comparison_(
          this, [this](const auto& comparison) { take_comparison(*comparison); },
          [this](const QString& error) { views_.timeline->traces().show_note(error); }),
      pair_(
          this, [this](const auto& pair) { take_pair(*pair); },
          [this](const QString& error) { views_.timeline->traces().show_note(error); }) {
  for (QWidget* view : std::array<QWidget*, 3>{views_.timeline, views_.topology, views_.schedule})
    view->installEventFilter(this);
  connect(selection_, &Selection::set_changed, this, [this] { set_is_new_ = true; });
  connect(selection_, &Selection::chosen_changed, this, &StepPresenter::follow_selection);
  for (const auto changed : {&Selection::chosen_changed, &Selection::compared_changed})
    connect(selection_, changed, this, &StepPresenter::follow_comparison);
  const TimelineCanvas& timeline = views_.timeline->canvas();
  connect(&timeline, &TimelineCanvas::range_selected, views_.topology, &TopologyView::select_range);
  connect(&timeline, &TimelineCanvas::ordered, this, &StepPresenter::call_ready);
  connect(views_.timeline, &TimelineView::plan_wanted, this, [this] {
    if (shows_files_) return leave_files();
    selection_->compare_with(std::nullopt);
  });
  connect(&timeline, &TimelineCanvas::range_cleared, this, [this] {
    views_.topology->clear_range();
    views_.schedule->canvas().clear_selection();
  });
  link_selections();
}

// An op's rank stands out in the topology and its start in the schedule; a rank or a slot that is
// clicked is looked up in the timeline, and its time range loads the links.
void StepPresenter::link_selections() {
  TimelineCanvas& timeline = views_.timeline->canvas();
  connect(&timeline, &TimelineCanvas::op_selected, this, [this](SpanRef ref) {
    if (beside_ && ref.side > 0) return;  // The other views show the chosen plan.
    const Span& span = views_.timeline->canvas().tracks().span(ref);
    views_.topology->select_rank(span.rank);
    views_.schedule->set_moment(span.start.value());
  });
  connect(&timeline, &TimelineCanvas::op_cleared, views_.topology,
          [this] { views_.topology->canvas().clear_selection(); });
  connect(&views_.topology->canvas(), &TopologyCanvas::rank_selected, this, [this](int rank) {
    if (!shown_ || rank < 0 || rank >= shown_->scenario.plan.world_size()) return;
    show_stage(RankGrid(shown_->scenario.plan).locate(rank).stage);
  });
  connect(views_.schedule, &ScheduleView::moment_changed, views_.timeline,
          [this](double seconds) { views_.timeline->canvas().mark_moment(seconds); });
  connect(&views_.schedule->canvas(), &ScheduleCanvas::replay_left, views_.timeline,
          [this] { views_.timeline->canvas().mark_moment(std::nullopt); });
  connect(&views_.schedule->canvas(), &ScheduleCanvas::slot_selected, this,
          [this](int stage, const GanttBox& box) {
            show_stage(views_.schedule->first_stage() + stage);
            views_.timeline->canvas().select_range(box.start, box.finish);
          });
}

void StepPresenter::show_stage(std::int64_t stage) {
  if (!shown_) return;
  views_.timeline->canvas().scroll_to(to_qstring(stage_name(shown_->scenario.plan, stage)));
}

bool StepPresenter::anybody_looks() const {
  return views_.timeline->is_looked_at() || views_.topology->is_looked_at() ||
         views_.schedule->is_looked_at();
}

void StepPresenter::look_again() {
  update();
  follow_comparison();
}

void StepPresenter::predict_then(std::function<void()> ready) {
  ready_ = std::move(ready);
  update();
  call_ready();
}

void StepPresenter::call_ready() {
  const bool is_complete = !job_.is_running() && !views_.timeline->canvas().is_busy();
  if (ready_ && is_complete) std::exchange(ready_, nullptr)();
}

void StepPresenter::follow_selection() {
  if (!traces_.empty()) return compare_trace();
  if (std::exchange(set_is_new_, false) && shows_files_) return;
  if (shows_files_) return leave_files();
  const auto scenario = selection_->scenario();
  // A search that goes on chooses the same plan again and again.
  if (scenario && asked_ == scenario) return;
  job_.cancel();
  const bool is_shown = scenario && shown_ && shown_->scenario == *scenario;
  asked_ = is_shown ? scenario : std::nullopt;
  outdated_ = !is_shown;
  Q_EMIT problem({});
  // Nobody will see the former step again, and it may be a large one.
  if (outdated_ && shown_ && !anybody_looks()) clear_views();
  update();
  call_ready();
}

bool StepPresenter::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Show) QTimer::singleShot(0, this, &StepPresenter::look_again);
  return QObject::eventFilter(watched, event);
}

void StepPresenter::update() {
  if (!outdated_ || !(ready_ || anybody_looks())) return;
  outdated_ = false;
  asked_ = selection_->scenario();
  if (!asked_) return clear_views();
  job_.start([scenario = *asked_](const std::stop_token& stop) {
    return predict_placed_step(scenario, stop);
  });
  // The step of another plan may stay for a moment, so that nothing flickers.
  QTimer::singleShot(kMostStaleMs, this, [this] {
    if (!job_.is_running()) return;
    clear_views();
    const QString hint = tr("Simulating a step of the chosen plan …");
    views_.timeline->show_hint(hint);
    views_.topology->clear(hint);
    views_.schedule->clear(hint);
  });
}

void StepPresenter::clear_views() {
  shown_.reset();
  views_.timeline->set_timelines({});
  const PlanSetPointer set = selection_->set();
  const bool none_fits = set && set->plans.empty() && set->infeasible;
  const QString hint = none_fits ? hint_of_no_plan() : QString();
  if (none_fits) views_.timeline->show_hint(hint);
  views_.topology->clear(hint);
  views_.schedule->clear(hint);
  return_freed_memory();
}

void StepPresenter::take(const PredictedStep& step) {
  shown_ = step;
  const Scenario& scenario = step.scenario;
  show_timelines();
  step.placed.empty() ? views_.topology->show_problem(step.unplaced)
                      : views_.topology->show_steps(step.placed);
  views_.schedule->set_plan(scenario.plan, scenario.model, step.timeline.get(), &step.result);
  return_freed_memory();
}

void StepPresenter::show_timelines() {
  if (!shown_) return;
  std::vector<std::shared_ptr<const Timeline>> timelines = {shown_->timeline};
  QStringList names;
  if (beside_) {
    timelines.push_back(beside_->timeline);
    names = {tr("plan A"), tr("plan B")};
  } else if (measured_ && measured_->is_of(shown_->scenario)) {
    timelines.push_back(measured_->timeline);
  }
  std::vector<sim::ReservedMemory> reserved = {reserved_of(shown_->scenario)};
  if (beside_) reserved.push_back(reserved_of(beside_->scenario));
  views_.timeline->set_timelines(std::move(timelines), shown_->program, limits_of(shown_->scenario),
                                 reserved, names);
  if (beside_)
    views_.timeline->show_source(
        tr("The step of the chosen plan (A) and below it that of the plan that it is compared with "
           "(B)"));
}

void StepPresenter::follow_comparison() {
  const bool is_other = selection_->compared() != selection_->chosen();
  const auto other = is_other && !shows_files_ ? selection_->compared_scenario() : std::nullopt;
  // A search that goes on compares the same plan again and again.
  if (asked_beside_ == other) return;
  beside_job_.cancel();
  asked_beside_.reset();
  if (std::exchange(beside_, std::nullopt) && !shows_files_) show_timelines();
  if (!other || !views_.timeline->is_looked_at()) return;
  asked_beside_ = other;
  beside_job_.start(
      [scenario = *other](const std::stop_token& stop) { return predict_step(scenario, stop); });
}

void StepPresenter::keep_measured(std::optional<MeasuredStep> measured) {
  measured_ = std::move(measured);
  show_timelines();
}

void StepPresenter::show_files(std::vector<std::shared_ptr<const Timeline>> timelines,
                               const QStringList& names) {
  job_.cancel();
  comparison_.cancel();
  pair_.cancel();
  traces_.clear();
  views_.timeline->traces().hide();
  asked_.reset();
  shown_.reset();
  outdated_ = false;
  shows_files_ = true;
  follow_comparison();
  const QString files = names.join(u" and "_s);
  views_.topology->clear(hint_of_files(files, tr("no cluster")));
  views_.schedule->clear(hint_of_files(files, tr("no schedule")));
  views_.timeline->set_timelines(std::move(timelines), nullptr, {}, {}, names);
  call_ready();
}

void StepPresenter::show_traces(std::vector<TracedRun> traces, const QStringList& names) {
  std::vector<std::shared_ptr<const Timeline>> timelines;
  std::vector<calibration::TraceReport> reports;
  for (const TracedRun& trace : traces) {
    timelines.push_back(trace.timeline);
    reports.push_back(trace.report);
  }
  show_files(timelines, names);
  traces_ = std::move(traces);
  trace_names_ = names;
  compared_.reset();
  is_beside_ = false;
  views_.timeline->traces().show_measured(reports, names);
  views_.timeline->traces().show();
  show_traced(nullptr, nullptr);
  if (traces_.size() == 1) return compare_trace();
  views_.timeline->traces().show_note(tr("Comparing the traces …"));
  pair_.start([first = traces_.front(), second = traces_.back()](const std::stop_token&) {
    return compare_traces(first, second);
  });
}

void StepPresenter::take_pair(const TracePair& pair) {
  views_.timeline->traces().show_change(pair.change);
  views_.timeline->set_timelines({pair.first, pair.second}, nullptr, {}, {}, trace_names_);
  show_traced(nullptr, nullptr);
}

void StepPresenter::compare_trace() {
  set_is_new_ = false;
  if (traces_.size() > 1) return;
  const auto scenario = selection_->scenario();
  if (scenario && compared_ == scenario) return;
  compared_ = scenario;
  comparison_.cancel();
  TracePanel& panel = views_.timeline->traces();
  if (!scenario)
    return panel.show_note(
        tr("Choose the plan that was traced in Plans, or open its file: its "
           "predicted step is then compared with the trace."));
  panel.show_note(tr("Comparing with the chosen plan …"));
  comparison_.start([run = traces_.front(), scenario = *scenario](const std::stop_token& stop) {
    return compare_with_plan(run, scenario, stop);
  });
}

void StepPresenter::take_comparison(const TraceComparison& comparison) {
  views_.timeline->traces().show_comparison(comparison);
  const bool comes = comparison.predicted && !is_beside_;
  show_traced(comparison.predicted, &comparison.scenario);
  // Beside a long trace one step is a line.
  const Seconds margin = (comparison.step_end - comparison.step_begin) * kStepMargin;
  if (comes)
    views_.timeline->canvas().show_window((comparison.step_begin - margin).value(),
                                          (comparison.step_end + margin).value());
}

// Keeps the part in view unless the predicted step comes or goes.
void StepPresenter::show_traced(std::shared_ptr<const Timeline> predicted,
                                const Scenario* scenario) {
  const QString names = trace_names_.join(u" and "_s);
  if (predicted || is_beside_) {
    std::vector<std::shared_ptr<const Timeline>> timelines = {traces_.front().timeline};
    is_beside_ = predicted != nullptr;
    if (predicted) timelines.push_back(std::move(predicted));
    QStringList shown = {trace_names_.front()};
    if (is_beside_) shown.append(tr("the chosen plan"));
    views_.timeline->set_timelines(
        std::move(timelines), nullptr,
        is_beside_ && scenario != nullptr ? limits_of(*scenario) : RankLimits(), {}, shown);
  }
  views_.timeline->show_source(
      is_beside_ ? tr("The trace of %1 (measured) beside the step of the chosen plan (predicted)")
                       .arg(names)
      : trace_names_.size() > 1 ? tr("The traces of %1").arg(names)
                                : tr("The trace of %1").arg(names));
}

void StepPresenter::leave_timelines() {
  if (traces_.empty()) leave_files();
}

void StepPresenter::leave_files() {
  if (!std::exchange(shows_files_, false)) return;
  comparison_.cancel();
  pair_.cancel();
  traces_.clear();
  views_.timeline->traces().hide();
  Q_EMIT files_left();
  follow_selection();
  follow_comparison();
}

}  // namespace shardwright::gui
