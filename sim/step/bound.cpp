#include <algorithm>

#include "sim/step/analytic.hpp"
#include "sim/step/pipeline_paths.hpp"

namespace shardwright::sim {
namespace {

// Sums of doubles in another order than the event level adds them differ in their last digits.
constexpr double kRounding = 1.0 - 1e-9;

bool in_loop(const Plan& plan) {
  return plan.schedule != ScheduleKind::ZbV && plan.schedule != ScheduleKind::DualPipe;
}

// True if the order in which gradients are complete is that of the buckets' costs.
bool knows_buckets(const StageCosts& costs, const Plan& plan) {
  return in_loop(plan) && !costs.profile->splits_backward && plan.zero_stage != 2;
}

// Reductions of the stage after its last slot ended at `end`; `computed` is its end where no host
// delays kernels, which may stretch the slot, so that more of the reductions runs beside it.
double reduced(const StageCosts& costs, const Plan& plan, std::size_t stage, double end,
               double computed) {
  if (!knows_buckets(costs, plan)) return end;
  const DataParallelCost& data = costs.stages[stage].data;
  const auto first = static_cast<std::size_t>(costs.profile_of(stage).position.front());
  const double last_slot = costs.chunk(first).slot[SlotPhase::Backward].time;
  // Gathered parameters may hold the kernels of the last slot up.
  if (costs.sharded) return end + data.last_reduce;
  return std::max(end + data.last_reduce, computed - last_slot + data.reduce_from_last_slot);
}

// The end of the stage's slots and reductions, if its kernels work more slowly beside the
// collectives of data parallelism. Until then the compute stream works, which takes C alone, or
// stands still, for a time I. The part of the collectives' time R that does not pass while it
// stands still passes beside kernels and costs them the share k = s / (1 + s), s as in
// shared_device.hpp:
//
//   end >= C + I + k max(0, R - I)
//
// This grows with I, so a lower bound of I suffices: the waits for the first microbatch or the
// first gradient, for the collectives of layers, and for the last reduction. Gathers and reductions
// may run at the same time. Reductions begin after the first gradient; none runs beside a kernel
// that was issued before it, for it waits for that kernel.
double interfered(const StageCosts& costs, const Plan& plan, std::size_t stage) {
  const StageCost& cost = costs.stages[stage];
  const double share = costs.slowdown / (1.0 + costs.slowdown);
  const double last = knows_buckets(costs, plan) ? cost.data.last_reduce : 0.0;
  const double still = cost.stalled + last;
  const double reducing = cost.data.step_reduce;
  const double running = std::max(reducing, cost.sharding + cost.states.early_gathers);
  const double first = costs.paths[stage].filled;
  const double from_start =
      first - cost.first_exposed + share * std::max(0.0, running - still - first);
  const double from_gradient = costs.paths[stage].returned - cost.warmup - cost.gradient_exposed +
                               share * std::max(0.0, reducing - still);
  return cost.compute + still + std::max(from_start, from_gradient);
}

// FSDP: the earliest end of the stage's slots by their gathers, which begin when the slot before
// and its reductions have ended. A few may have completed before the first microbatch arrives.
double gathered_end(const StageCosts& costs, std::size_t stage) {
  const StageCost& cost = costs.stages[stage];
  const double late = std::max(0.0, costs.paths[stage].filled - cost.gathers_ahead);
  return costs.sharded ? late + cost.gather_cycles : 0.0;
}

// The time at which the first stage has the last gradient, if the gathers of `stage` end at
// `gathered`. The reductions of the last slot may go on meanwhile.
double gathered_and_drained(const StageCosts& costs, const Plan& plan, std::size_t stage,
                            double gathered) {
  if (!costs.sharded || !in_loop(plan) || costs.profile->splits_backward) return 0.0;
  const StageProfile& profile = costs.profile_of(stage);
  const auto last = static_cast<std::size_t>(
      profile.position[static_cast<std::size_t>(profile.last_gradient_chunk)]);
  const GatherCycle& cycle = costs.chunk(last).cycle[SlotPhase::Backward];
  return gathered - cycle.next + cycle.computed + costs.paths[stage].drain;
}

double stage_bound(const StageCosts& costs, const Plan& plan, std::size_t stage) {
  const StageCost& cost = costs.stages[stage];
  const double end = costs.paths[stage].slots_end;
  const double sent = costs.blocking_gradient(stage);
  const double gathered = gathered_end(costs, stage);
  const double bound =
      std::max({end, reduced(costs, plan, stage, end - sent, costs.paths[stage].computed - sent),
                interfered(costs, plan, stage), costs.paths[stage].filled + cost.data.step_reduce,
                gathered, cost.launch}) +
      after_reduction(costs, stage);
  const double drain = std::max({drained(costs, stage, end), costs.paths[stage].rounds_drained,
                                 gathered_and_drained(costs, plan, stage, gathered)});
  const double passed = reduced(costs, plan, 0, drain, drain) + after_reduction(costs, 0);
  return std::max(
      {bound, passed, issued_and_finished(costs, stage), costs.paths[stage].filled + cost.offload});
}

}  // namespace

Seconds bound_step(const StageCosts& costs, const Plan& plan) {
  double slots = messages_drained(costs, plan) + after_reduction(costs, 0), host = 0.0;
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage) {
    const StageCost& cost = costs.stages[stage];
    slots = std::max(slots, stage_bound(costs, plan, stage));
    host = std::max(host, cost.launch + cost.states.after_norm());
  }
  const double before = slots + costs.norm_reduce;
  const double step = before + update_time(costs, plan, before);
  return Seconds(std::max({step, host, costs.served}) * kRounding);
}

}  // namespace shardwright::sim
