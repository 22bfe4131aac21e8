#include "gui/models/plan_stream.hpp"

#include <utility>

namespace shardwright::gui {

PlanStream::PlanStream(const planner::PlanRequest& request, std::chrono::milliseconds pause,
                       Deliver deliver)
    : request_(request), pause_(pause), deliver_(std::move(deliver)) {}

void PlanStream::take(const std::vector<planner::PlanCandidate>& best) {
  const auto now = std::chrono::steady_clock::now();
  if (now < next_) return;
  PlanSet set = plan_set_so_far(request_, best, kept_);
  std::vector<Plan> plans;
  for (const planner::PlanCandidate& candidate : set.plans) plans.push_back(candidate.plan);
  if (plans == last_) return;
  last_ = std::move(plans);
  next_ = now + pause_;
  deliver_(std::make_shared<const PlanSet>(std::move(set)));
}

}  // namespace shardwright::gui
