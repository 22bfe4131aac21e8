// Planning in the background: the newest scenario is searched, results come as they are found.
#pragma once

#include <QObject>
#include <QTimer>
#include <atomic>
#include <memory>
#include <vector>

#include "core/base/error.hpp"
#include "gui/models/latest_worker.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

// Plans that a search shows besides the front: the best, and the best of other layouts, so that the
// whole space is seen.
inline constexpr std::int64_t kShownPlans = 100, kShownLayouts = 200;

// The usual schedules and shardings only: a first answer within a second, which the whole search
// then replaces.
planner::SearchLimits narrow_limits();

class PlanSearch : public QObject {
  Q_OBJECT

 public:
  explicit PlanSearch(QObject* parent = nullptr);

  // Searches for `choice` once nothing else was asked for in the last moments, instead of whatever
  // is searched for now.
  void request(const ScenarioChoice& choice);
  // Stops the search; `found` comes once more with what there is so far, if anything.
  void stop();
  // Stops the search and drops what it has found: something else takes the place of its plans.
  void abandon();
  bool is_running() const { return running_ || debounce_.isActive(); }

 Q_SIGNALS:
  void started();
  // At most ten times a second. `best_step_s`: 0 while none is known, and where the batch is open:
  // it would be that of any batch that is tried.
  void progressed(double share, qint64 checked, qint64 simulated, double best_step_s);
  // First those of the narrow search, then those of the whole one (PlanSet::complete): what each
  // has found so far, then its result. Plans that were shown are lost to the whole answer only, not
  // to a search that was stopped.
  void found(shardwright::gui::PlanSetPointer set);
  void failed(std::vector<shardwright::Problem> problems);
  // After the last `found`, after `failed`, and after a search that was stopped.
  void finished();

 private:
  void begin();
  void end();
  void work(const ScenarioChoice& choice, std::uint64_t id, const std::stop_token& stop);
  void search_both(planner::PlanRequest request, std::uint64_t id, const std::stop_token& stop);
  void watch(planner::PlanRequest& request, std::uint64_t id);
  // Runs `deliver` in the GUI's thread if the search is still the newest.
  template <class Deliver>
  void post(std::uint64_t id, Deliver deliver);

  QTimer debounce_;
  ScenarioChoice wanted_;
  std::atomic<std::uint64_t> newest_{0};
  bool running_ = false;
  LatestWorker worker_;  // last: its thread ends before what it uses
};

}  // namespace shardwright::gui
