// Plans that place both stages and replicas on several pools of a cluster, and plans whose groups
// of experts span replicas on several pools (docs/models/pools.md).
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/plan.hpp"
#include "planner/placed_plans.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {

// A space of at most so many of these plans is evaluated as a whole.
inline constexpr std::int64_t kWholeJointSpace = 1'000;

struct JointSearch {
  SearchCounts counts;
  // The number of plans that are faster than the compared one.
  std::int64_t faster = 0;
  // Every plan was evaluated: each placement with each split of the layers, share of the batch and
  // number of experts.
  bool all = false;
  // Best first, by the analytic level.
  std::vector<LookedAtPlan> plans;
};

// Evaluates the plans by closed forms. A space of more than `whole_space` plans is evaluated in
// part: plans with the degrees of the `seeds`, which are good plans of other kinds.
JointSearch search_joint(const PlanRequest& request, const PoolLayerCosts& known,
                         const std::vector<Plan>& seeds, std::int64_t whole_space);

}  // namespace shardwright::planner
