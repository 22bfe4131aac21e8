#include "core/spec/rank_nesting.hpp"

#include <algorithm>

namespace shardwright {
namespace {

bool nest(std::int64_t a, std::int64_t b) {
  return a % b == 0 || b % a == 0;
}

// Ranks of a stage between neighbours along an axis of the experts.
std::int64_t expert_stride(const Plan& plan, Axis of) {
  std::int64_t stride = 1;
  for (const Axis axis : plan.rank_order) {
    if (axis == of) break;
    stride *= expert_degree(plan, axis);
  }
  return stride;
}

}  // namespace

std::int64_t dense_degree(const Plan& plan, Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return plan.tp;
    case Axis::Context:
      return plan.cp;
    case Axis::Data:
      return plan.dp;
    default:
      return 1;
  }
}

std::int64_t expert_degree(const Plan& plan, Axis axis) {
  switch (axis) {
    case Axis::Tensor:
      return plan.expert_tp;
    case Axis::Expert:
      return plan.ep;
    case Axis::Data:
      return expert_replicas(plan);
    default:
      return 1;
  }
}

std::int64_t ranks_inside_pipeline(const Plan& plan) {
  if (plan.pp == 1) return plan.tp * plan.cp * plan.dp;
  std::int64_t inside = 1;
  for (const Axis axis : plan.rank_order) {
    if (axis == Axis::Pipeline) break;
    inside *= dense_degree(plan, axis);
  }
  return inside;
}

std::int64_t ranks_inside_data(const Plan& plan) {
  std::int64_t inside = 1;
  for (const Axis axis : plan.rank_order) {
    if (axis == Axis::Data) break;
    inside *= axis == Axis::Pipeline ? plan.pp : dense_degree(plan, axis);
  }
  return inside;
}

Axis inner_data_axis(const Plan& plan) {
  const auto inner = std::ranges::find_if(
      plan.rank_order, [](Axis axis) { return axis == Axis::Context || axis == Axis::Data; });
  return inner == plan.rank_order.end() ? Axis::Context : *inner;
}

std::int64_t expert_replicas(const Plan& plan) {
  const std::int64_t ranks = plan.dp * plan.cp * plan.tp, parts = plan.ep * plan.expert_tp;
  // Searches ask for every plan, most of which need no division.
  return parts == 1 ? ranks : std::max<std::int64_t>(1, ranks / parts);
}

bool shard_group_nests(const Plan& plan) {
  return plan.dp * plan.cp % plan.shard_group == 0 &&
         nest(plan.shard_group, dense_degree(plan, inner_data_axis(plan)));
}

bool shard_group_nests_with_experts(const Plan& plan) {
  const std::int64_t replicas = expert_replicas(plan);
  const std::int64_t size = std::min(plan.shard_group, replicas);
  if (replicas % size != 0) return false;
  const std::int64_t stride = expert_stride(plan, Axis::Data), inside = ranks_inside_pipeline(plan);
  return plan.pp == 1 || stride >= inside || nest(size, inside / stride);
}

bool pipeline_nests_with_experts(const Plan& plan) {
  if (plan.pp == 1) return true;
  const std::int64_t inside = ranks_inside_pipeline(plan);
  return std::ranges::all_of(plan.rank_order,
                             [&](Axis axis) { return nest(expert_stride(plan, axis), inside); });
}

}  // namespace shardwright
