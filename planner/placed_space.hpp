// The plans on one placement of the stages: its cuts, their shapes, and whether all of them with
// all splits of the layers are few.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "planner/placed_plans.hpp"
#include "planner/search_space.hpp"

namespace shardwright::planner {

// A placement with the cuts of its plans.
struct PlacedSpace {
  PlacedPools placed;
  SearchLimits limits;
  std::vector<Plan> cuts;

  // Calls `visit` with each plan of the cut, whose split of the layers is open.
  void for_each_shape(const PlanRequest& request, const Plan& cut,
                      const std::function<void(const Plan&)>& visit) const;
};

std::vector<PlacedSpace> spaces_on(const PlanRequest& request,
                                   const std::vector<Placement>& placements);

// The largest degree of tensor parallelism on these pools.
std::int64_t largest_tp_on(const std::vector<ClusterSpec>& pools, const SearchLimits& limits);

// The first rule that the plan breaks. With `of_any_split` the capabilities of the stack do not
// count, because it may run other splits of the layers.
std::optional<PlanRule> rule_broken_by(const PlanRequest& request, const Plan& plan,
                                       bool of_any_split);

// Some split that breaks no rule on splits; empty where none does.
std::vector<std::int64_t> any_split(std::int64_t layers, std::int64_t chunks);

// True if there are at most `most` plans, each split counted.
bool is_small(const PlanRequest& request, const std::vector<PlacedSpace>& spaces,
              std::int64_t most);

}  // namespace shardwright::planner
