// Plans the newest scenario in the background and shows the results as it finds them.
#pragma once

#include <QObject>
#include <QTimer>
#include <atomic>
#include <chrono>
#include <functional>
#include <vector>

#include "core/base/error.hpp"
#include "gui/models/background_job.hpp"
#include "gui/models/plan_set.hpp"
#include "gui/models/scenario_choice.hpp"

namespace shardwright::gui {

// The numbers of best plans, and of fastest plans of other layouts, that a search shows besides the
// front.
inline constexpr std::int64_t kShownPlans = 100, kShownLayouts = 200;

// Hands over the best plans of a search that goes on, those of earlier searches of the same request
// included.
class PlanStream {
 public:
  using Deliver = std::function<void(PlanSetPointer)>;

  // Calls `deliver` in the thread of the search, not again within `pause`.
  PlanStream(const planner::PlanRequest& request, std::chrono::milliseconds pause, Deliver deliver);

  void keep(const std::vector<planner::PlanCandidate>& plans) { kept_ = plans; }
  // Returns the plans that were handed over last, or the kept ones before that.
  const std::vector<planner::PlanCandidate>& handed_over() const {
    return last_.empty() ? kept_ : last_;
  }
  // Takes the plans that the search has found so far. Drops them if they are the same as before or
  // come too soon after them.
  void take(const std::vector<planner::PlanCandidate>& best);

 private:
  planner::PlanRequest request_;
  std::chrono::milliseconds pause_;
  Deliver deliver_;
  std::vector<planner::PlanCandidate> kept_;
  std::vector<planner::PlanCandidate> last_;
  std::chrono::steady_clock::time_point next_;
};

class PlanSearch : public QObject {
  Q_OBJECT

 public:
  explicit PlanSearch(QObject* parent = nullptr);

  // Searches for `choice` unless another one follows within a moment. Ends the search at work.
  void request(const ScenarioChoice& choice);
  // Goes on with a search for `choice` that was stopped after it had found `plans`, which stay
  // until the answer of the whole search.
  void resume(const ScenarioChoice& choice, std::vector<planner::PlanCandidate> plans);
  // Stops the search and emits `found` once more if there are plans.
  void stop();
  // Stops the search and drops its plans, because others take their place.
  void abandon();
  bool is_running() const { return running_ || debounce_.isActive(); }

  static constexpr double kUnknownShare = -1.0;

 Q_SIGNALS:
  void started();
  // Emitted at most ten times a second. `share` is that of the work that is done. If the batch is
  // open it is kUnknownShare, since nobody knows how many batches will be tried. `text` has the
  // numbers of plans and the best step; not the latter if the batch is open, because it would be
  // that of any batch that is tried.
  void progressed(double share, const QString& text);
  // The plans that a first look has found; those that the narrow search has found so far, then its
  // result; then the same of the whole search (PlanSet::complete). Only the answer of the whole
  // search drops plans that were shown.
  void found(shardwright::gui::PlanSetPointer set);
  void failed(std::vector<shardwright::Problem> problems);
  // Emitted after the last `found`, after `failed`, and after a search that was stopped.
  void finished();

 private:
  void begin();
  void end();
  using Plans = std::vector<planner::PlanCandidate>;
  void work(const ScenarioChoice& choice, const Plans& known, std::uint64_t id,
            const std::stop_token& stop);
  void search_both(planner::PlanRequest request, const Plans& known, std::uint64_t id,
                   const std::stop_token& stop);
  // What the searches of one request have reached together.
  struct Reached {
    std::int64_t checked = 0, simulated = 0;
    std::optional<Seconds> best_step;
  };
  static void keep_reached(planner::SearchProgress& progress, Reached& reached);
  // Reports the progress of a search that is the part `from` to `to` of the whole work.
  void watch(planner::PlanRequest& request, std::uint64_t id, double from, double to,
             const std::shared_ptr<Reached>& reached);
  // Runs `deliver` in the GUI's thread if the search is still the newest.
  template <class Deliver>
  void post(std::uint64_t id, Deliver deliver);

  QTimer debounce_;
  ScenarioChoice wanted_;
  // The plans that an earlier search for it has found.
  std::vector<planner::PlanCandidate> known_;
  std::atomic<std::uint64_t> newest_{0};
  bool running_ = false;
  // The last member: its thread ends before the members that it uses.
  BackgroundTask worker_;
};

}  // namespace shardwright::gui
