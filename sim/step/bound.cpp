#include "sim/step/bound.hpp"

#include <algorithm>

#include "core/program/groups.hpp"

namespace shardwright::sim {
namespace {

// Sums of doubles in another order than the event rung adds them differ in their last digits.
constexpr double kRounding = 1.0 - 1e-9;

bool in_loop(const Plan& plan) {
  return plan.schedule != ScheduleKind::ZbV && plan.schedule != ScheduleKind::DualPipe;
}

double fill_of(const StageCosts& costs, const StageProfile& stage) {
  double least = infinite<Seconds>().value();
  for (const std::int32_t position : stage.position)
    least = std::min(least, costs.forward_chain[static_cast<std::size_t>(position)]);
  return least;
}

double drain_of(const StageCosts& costs, const StageProfile& stage) {
  const std::int32_t position = stage.position[static_cast<std::size_t>(stage.last_gradient_chunk)];
  return costs.gradient_chain[static_cast<std::size_t>(position)];
}

double trailing_weights(const StageCosts& costs, const StageProfile& stage) {
  double sum = 0.0;
  for (std::size_t chunk = 0; chunk < stage.position.size(); ++chunk) {
    const auto position = static_cast<std::size_t>(stage.position[chunk]);
    sum += stage.trailing_weights[chunk] * costs.chunks[position].of(SlotCost::BackwardWeight).time;
  }
  return sum;
}

// 1F1B: rounds of as many microbatches as are in flight.
double rounds_of(const StageCosts& costs, std::size_t stage) {
  const auto stages = costs.stages.size();
  const double round = costs.forward_chain[stages] - costs.forward_chain[stage] +
                       costs.gradient_chain[stages] - costs.gradient_chain[stage];
  const auto window = static_cast<double>(stages - stage);
  const double rounds =
      static_cast<double>(static_cast<std::int64_t>((costs.microbatches - 1.0) / window));
  const double left = costs.microbatches - 1.0 - rounds * window;
  return (rounds + 1.0) * round + left * costs.chunks[stage].of(SlotCost::Backward).passing;
}

// Reductions of the stage after its last slot ended at `end`.
double reduced(const StageCosts& costs, const Plan& plan, std::size_t stage, double end) {
  // Elsewhere the order in which gradients are complete is not that of the buckets' costs.
  const bool known = in_loop(plan) && !costs.profile->splits_backward && plan.zero_stage != 2;
  if (!known) return end;
  const DataParallelCost& data = costs.stages[stage].data;
  const auto first = static_cast<std::size_t>(costs.profile->stages[stage].position.front());
  const double last_slot = costs.chunks[first].of(SlotCost::Backward).time;
  // Gathered parameters may hold the kernels of the last slot up.
  if (shards_parameters(plan)) return end + data.last_reduce;
  return std::max(end + data.last_reduce, end - last_slot + data.reduce_from_last_slot);
}

double tail_of(const StageCosts& costs, std::size_t stage) {
  const bool ties = stage == 0 || stage + 1 == costs.stages.size();
  return costs.stages[stage].copies + (ties ? costs.tie : 0.0) + costs.stages[stage].norm;
}

double stage_bound(const StageCosts& costs, const Plan& plan, std::size_t stage) {
  const StageProfile& profile = costs.profile->stages[stage];
  const StageCost& cost = costs.stages[stage];
  const double fill = std::max(fill_of(costs, profile), cost.data.first_gather);
  const double drain = drain_of(costs, profile);
  // A stage that waits for its last gradient to be sent has computed it before.
  const double sent = fill + cost.busy - cost.first_exposed;
  const double end = sent - (costs.blocking && stage > 0 ? costs.message : 0.0);
  double bound = std::max(sent, reduced(costs, plan, stage, end)) + tail_of(costs, stage);
  bound = std::max(bound, fill + cost.data.step_reduce + tail_of(costs, stage));
  bound = std::max(bound, fill + cost.offload);
  const double drained = end - trailing_weights(costs, profile) + drain;
  bound = std::max(bound, reduced(costs, plan, 0, drained) + tail_of(costs, 0));
  if (plan.schedule == ScheduleKind::OneFOneB && costs.stages.size() > 1) {
    const double rounds = fill + rounds_of(costs, stage) + drain;
    bound = std::max(bound, reduced(costs, plan, 0, rounds) + tail_of(costs, 0));
  }
  return bound;
}

}  // namespace

Seconds bound_step(const StageCosts& costs, const Plan& plan) {
  double slots = 0.0, update = 0.0, host = 0.0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const StageCost& cost = costs.stages[stage];
    slots = std::max(slots, stage_bound(costs, plan, stage));
    update = std::max(update, cost.optimizer + cost.data.late_gathers);
    host = std::max(host, cost.launch + cost.optimizer + cost.data.late_gathers);
  }
  return Seconds(std::max(slots + costs.norm_reduce + update, host) * kRounding);
}

}  // namespace shardwright::sim
