#include "gui/models/plan_stream.hpp"

#include <algorithm>
#include <utility>

namespace shardwright::gui {

PlanStream::PlanStream(const planner::PlanRequest& request, std::chrono::milliseconds pause,
                       Deliver deliver)
    : request_(request), pause_(pause), deliver_(std::move(deliver)) {}

void PlanStream::take(const std::vector<planner::PlanCandidate>& best) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  PlanSet set = plan_set_so_far(request_, best, kept_);
  const auto is_same = [](const auto& a, const auto& b) { return a.plan == b.plan; };
  if (std::equal(set.plans.begin(), set.plans.end(), last_.begin(), last_.end(), is_same)) return;
  last_ = set.plans;
  next_ = now + pause_;
  deliver_(std::make_shared<const PlanSet>(std::move(set)));
}

}  // namespace shardwright::gui
