#include "gui/window/step_presenter.hpp"

#include <QEvent>
#include <QWidget>
#include <array>

#include "gui/schedule/schedule_view.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/topology/topology_view.hpp"

namespace shardwright::gui {

StepPresenter::StepPresenter(Selection* selection, Views views, QObject* parent)
    : QObject(parent),
      selection_(selection),
      views_(views),
      job_(
          this, [this](const auto& step) { take(*step); },
          [this](const QString& error) { Q_EMIT problem(error); }) {
  for (QWidget* view : std::array<QWidget*, 3>{views_.timeline, views_.topology, views_.schedule})
    view->installEventFilter(this);
  connect(selection_, &Selection::chosen_changed, this, &StepPresenter::follow_selection);
  connect(views_.timeline, &TimelineView::range_selected, views_.topology,
          [this](double from, double to) { views_.topology->select_range(from, to); });
  connect(views_.timeline, &TimelineView::range_cleared, views_.topology,
          [this] { views_.topology->clear_range(); });
}

bool StepPresenter::anybody_looks() const {
  return views_.timeline->isVisible() || views_.topology->isVisible() ||
         views_.schedule->isVisible();
}

void StepPresenter::follow_selection() {
  const auto scenario = selection_->scenario();
  if (scenario && shown_ && shown_->scenario == *scenario) return;
  measured_.reset();
  outdated_ = true;
  Q_EMIT problem({});
  update();
}

bool StepPresenter::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Show) update();
  return QObject::eventFilter(watched, event);
}

void StepPresenter::update() {
  if (!outdated_ || !anybody_looks()) return;
  outdated_ = false;
  const auto scenario = selection_->scenario();
  if (!scenario) {
    job_.cancel();
    shown_.reset();
    views_.timeline->set_timelines({});
    views_.topology->clear();
    views_.schedule->clear();
    return;
  }
  job_.start([scenario = *scenario](const std::stop_token&) { return predict_step(scenario); });
}

void StepPresenter::take(const PredictedStep& step) {
  shown_ = step;
  const Scenario& scenario = step.scenario;
  show_timelines();
  views_.topology->set_plan(scenario.cluster, scenario.plan, step.timeline.get());
  views_.schedule->set_plan(scenario.plan, scenario.model, step.timeline.get());
}

void StepPresenter::show_timelines() {
  if (!shown_) return;
  std::vector<std::shared_ptr<const Timeline>> timelines = {shown_->timeline};
  if (measured_) timelines.push_back(measured_);
  views_.timeline->set_timelines(std::move(timelines), shown_->program,
                                 shown_->scenario.cluster.accelerator.memory);
}

void StepPresenter::show_measured(std::shared_ptr<const Timeline> measured) {
  measured_ = std::move(measured);
  show_timelines();
}

void StepPresenter::show_files(std::vector<std::shared_ptr<const Timeline>> timelines) {
  job_.cancel();
  shown_.reset();
  measured_.reset();
  outdated_ = false;  // until another plan is chosen
  views_.timeline->set_timelines(std::move(timelines));
}

}  // namespace shardwright::gui
