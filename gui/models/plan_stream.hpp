// The plans of a search that goes on, as sets that the views can show.
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "gui/models/plan_set.hpp"

namespace shardwright::gui {

// Hands over the best plans so far, those of earlier searches of the same request included.
class PlanStream {
 public:
  using Deliver = std::function<void(PlanSetPointer)>;

  // `deliver` is called in the thread of the search, not again within `pause`.
  PlanStream(const planner::PlanRequest& request, std::chrono::milliseconds pause, Deliver deliver);

  // Plans of an earlier search, which stay among those that are handed over.
  void keep(const std::vector<planner::PlanCandidate>& plans) { kept_ = plans; }
  // The plans that were handed over last, or the kept ones if there were none yet.
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

}  // namespace shardwright::gui
