#include "sim/step/bound.hpp"

#include <algorithm>

#include "core/program/groups.hpp"
#include "sim/step/stage_paths.hpp"

namespace shardwright::sim {
namespace {

// Sums of doubles in another order than the event rung adds them differ in their last digits.
constexpr double kRounding = 1.0 - 1e-9;

bool in_loop(const Plan& plan) {
  return plan.schedule != ScheduleKind::ZbV && plan.schedule != ScheduleKind::DualPipe;
}

// Reductions of the stage after its last slot ended at `end`.
double reduced(const StageCosts& costs, const Plan& plan, std::size_t stage, double end) {
  // Elsewhere the order in which gradients are complete is not that of the buckets' costs.
  const bool known = in_loop(plan) && !costs.profile->splits_backward && plan.zero_stage != 2;
  if (!known) return end;
  const DataParallelCost& data = costs.stages[stage].data;
  const auto first = static_cast<std::size_t>(costs.profile->stages[stage].position.front());
  const double last_slot = costs.chunk(first).of(SlotCost::Backward).time;
  // Gathered parameters may hold the kernels of the last slot up.
  if (shards_parameters(plan)) return end + data.last_reduce;
  return std::max(end + data.last_reduce, end - last_slot + data.reduce_from_last_slot);
}

double stage_bound(const StageCosts& costs, const Plan& plan, std::size_t stage) {
  const StageCost& cost = costs.stages[stage];
  const double end = slots_end(costs, stage);
  const double sending = costs.blocking && stage > 0 ? costs.message : 0.0;
  const double bound = std::max({end, reduced(costs, plan, stage, end - sending),
                                 filled(costs, stage) + cost.data.step_reduce, cost.launch}) +
                       after_reduction(costs, stage);
  const double drain = std::max(drained(costs, stage, end), rounds_drained(costs, stage));
  const double passed = reduced(costs, plan, 0, drain) + after_reduction(costs, 0);
  return std::max(
      {bound, passed, issued_and_finished(costs, stage), filled(costs, stage) + cost.offload});
}

}  // namespace

Seconds bound_step(const StageCosts& costs, const Plan& plan) {
  double slots = messages_drained(costs, plan) + after_reduction(costs, 0), update = 0.0,
         host = 0.0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const StageCost& cost = costs.stages[stage];
    slots = std::max(slots, stage_bound(costs, plan, stage));
    update = std::max(update, cost.optimizer + cost.data.late_gathers);
    host = std::max(host, cost.launch + cost.optimizer + cost.data.late_gathers);
  }
  return Seconds(std::max(slots + costs.norm_reduce + update, host) * kRounding);
}

}  // namespace shardwright::sim
