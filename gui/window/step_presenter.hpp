// Gives the views that look into one step what they show: the predicted timeline of the chosen plan
// and, after a run, the measured one.
#pragma once

#include <QObject>
#include <memory>
#include <optional>
#include <vector>

#include "gui/models/background_job.hpp"
#include "gui/models/measured_step.hpp"
#include "gui/models/predicted_step.hpp"
#include "gui/models/selection.hpp"

namespace shardwright::gui {

class ScheduleView;
class TimelineView;
class TopologyView;

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

  // Below the prediction of its plan, whenever that one is chosen; none: of no plan.
  void keep_measured(std::optional<MeasuredStep> measured);
  // Timelines of files, instead of the chosen plan's, until somebody chooses another plan or
  // `leave_files` is called; plans that a search finds leave them where they are. `names` of the
  // files, one each.
  void show_files(std::vector<std::shared_ptr<const Timeline>> timelines, const QStringList& names);
  void leave_files();
  bool shows_files() const { return shows_files_; }
  bool is_busy() const { return job_.is_running(); }

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
  void update();
  void take(const PredictedStep& step);
  void clear_views();
  void show_timelines();

  Selection* selection_;
  Views views_;
  std::optional<MeasuredStep> measured_;
  std::optional<PredictedStep> shown_;
  std::optional<Scenario> asked_;  // the chosen one, once it is shown, predicted or has failed
  bool outdated_ = true;
  bool shows_files_ = false;
  bool set_is_new_ = false;  // the chosen plan changes because all plans do
  BackgroundJob<PredictedStep> job_;
};

}  // namespace shardwright::gui
