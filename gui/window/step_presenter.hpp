// Gives the views that look into one step what they show: the predicted timeline of the chosen plan
// and, after a run, the measured one.
#pragma once

#include <QObject>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "core/program/program.hpp"
#include "core/timeline/timeline.hpp"
#include "gui/models/background_job.hpp"
#include "gui/models/selection.hpp"
#include "gui/models/trace_comparison.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::gui {

struct PlacedStep;
class ScheduleView;
class TimelineView;
class TopologyView;

// The predicted timeline of a plan's step, with its program.
struct PredictedStep {
  Scenario scenario;
  sim::StepResult result;
  std::shared_ptr<const Program> program;
  // Holds one rank of each stage.
  std::shared_ptr<const Timeline> timeline;
  // The step on the cluster, by pools if there are several, or the reason why the cluster cannot
  // hold it.
  std::vector<std::shared_ptr<const PlacedStep>> placed;
  QString unplaced;
};

// The recorded step of a run, with the plan that it was trained under.
struct MeasuredStep {
  ModelSpec model;
  Plan plan;
  std::shared_ptr<const Timeline> timeline;

  // Ignores profile and stack, because calibration replaces both and compares their predictions
  // with the measurement.
  bool is_of(const Scenario& scenario) const {
    return model == scenario.model && plan == scenario.plan;
  }
};

// Predicts only while one of the views is looked at.
class StepPresenter : public QObject {
  Q_OBJECT

 public:
  struct Views {
    TimelineView* timeline;
    TopologyView* topology;
    ScheduleView* schedule;
  };

  StepPresenter(Selection* selection, Views views, QObject* parent);

  // Shows the step below the prediction of its plan whenever that plan is chosen; none removes it.
  void keep_measured(std::optional<MeasuredStep> measured);
  // Shows timelines of files instead of the chosen plan's until another plan is chosen or
  // leave_files() is called. Plans that a search finds do not end that. `names` are those of the
  // files.
  void show_files(std::vector<std::shared_ptr<const Timeline>> timelines, const QStringList& names);
  // Shows a trace of another program beside the chosen plan's step, also as another plan is chosen,
  // or two beside each other, until leave_files() is called.
  void show_traces(std::vector<TracedRun> traces, const QStringList& names);
  // Returns to the chosen plan. leave_timelines() leaves a trace in its place, because it is
  // compared with whatever plan is chosen.
  void leave_files();
  void leave_timelines();
  bool shows_files() const { return shows_files_; }
  // Predicts what a view that came to the front lacks.
  void look_again();
  // Predicts the chosen plan's step also where no view of it is in front, and calls `ready` once
  // the views show it or say why they cannot.
  void predict_then(std::function<void()> ready);
  bool is_busy() const {
    return job_.is_running() || beside_job_.is_running() || comparison_.is_running() ||
           pair_.is_running();
  }

 Q_SIGNALS:
  void problem(const QString& text);
  void files_left();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool anybody_looks() const;
  void link_selections();
  void show_stage(std::int64_t stage);
  void follow_selection();
  // Predicts what is outdated, if the views are looked at or somebody waits for them.
  void update();
  void take(const PredictedStep& step);
  // Tells who waits for the views that they show all they can, unless a step is being predicted or
  // its critical path is looked for.
  void call_ready();
  void clear_views();
  void show_timelines();
  // Predicts the step of the plan that the chosen one is compared with.
  void follow_comparison();
  // Compares a trace that stands alone with the chosen plan.
  void compare_trace();
  void take_comparison(const TraceComparison& comparison);
  void take_pair(const TracePair& pair);
  void show_traced(std::shared_ptr<const Timeline> predicted, const Scenario* scenario);

  Selection* selection_;
  Views views_;
  std::optional<MeasuredStep> measured_;
  std::optional<PredictedStep> shown_;
  // The step of the plan that the chosen one is compared with, which stands below it.
  std::optional<PredictedStep> beside_;
  // That plan, once its step is being predicted.
  std::optional<Scenario> asked_beside_;
  // The chosen plan, once it is shown, being predicted or has failed.
  std::optional<Scenario> asked_;
  bool outdated_ = true;
  std::function<void()> ready_;
  bool shows_files_ = false;
  // True if the chosen plan changes because all plans do.
  bool set_is_new_ = false;
  std::vector<TracedRun> traces_;
  QStringList trace_names_;
  // The plan that the first trace is or was compared with.
  std::optional<Scenario> compared_;
  // True if the predicted step stands beside the trace.
  bool is_beside_ = false;
  BackgroundJob<PredictedStep> job_, beside_job_;
  BackgroundJob<TraceComparison> comparison_;
  BackgroundJob<TracePair> pair_;
};

}  // namespace shardwright::gui
