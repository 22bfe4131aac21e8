#include "sim/step/stage_paths.hpp"

#include <algorithm>

namespace shardwright::sim {
namespace {

double drain_of(const StageCosts& costs, const StageProfile& stage) {
  const std::int32_t position = stage.position[static_cast<std::size_t>(stage.last_gradient_chunk)];
  return costs.gradient_chain[static_cast<std::size_t>(position)];
}

double trailing_weights(const StageCosts& costs, const StageProfile& stage) {
  if (!costs.profile->splits_backward) return 0.0;
  double sum = 0.0;
  for (std::size_t chunk = 0; chunk < stage.position.size(); ++chunk) {
    const auto position = static_cast<std::size_t>(stage.position[chunk]);
    sum += stage.trailing_weights[chunk] * costs.chunk(position).of(SlotCost::BackwardWeight).time;
  }
  return sum;
}

}  // namespace

double returned(const StageCosts& costs, std::size_t stage) {
  const StageProfile& profile = costs.profile->stages[stage];
  const std::int32_t position =
      profile.position[static_cast<std::size_t>(profile.first_gradient_chunk)];
  return costs.gradient_arrival[static_cast<std::size_t>(position)];
}

double filled(const StageCosts& costs, std::size_t stage) {
  double least = infinite<Seconds>().value();
  for (const std::int32_t position : costs.profile->stages[stage].position)
    least = std::min(least, costs.forward_chain[static_cast<std::size_t>(position)]);
  return std::max(least, costs.stages[stage].data.first_gather);
}

double slots_end(const StageCosts& costs, std::size_t stage) {
  const StageCost& cost = costs.stages[stage];
  const double computed =
      std::max(filled(costs, stage) + cost.busy - cost.first_exposed,
               returned(costs, stage) + cost.busy - cost.warmup - cost.gradient_exposed);
  if (!costs.host_waits) return computed;
  // A host that waits for messages issues the slots behind the first one, and behind the first
  // gradient, only when it has come.
  return std::max({computed, filled(costs, stage) + cost.launch,
                   returned(costs, stage) + cost.launch - cost.warmup_launch});
}

double drained(const StageCosts& costs, std::size_t stage, double end) {
  const StageProfile& profile = costs.profile->stages[stage];
  // A stage that waits for its last gradient to be sent has computed it before.
  const double sending = costs.blocking && stage > 0 ? costs.message : 0.0;
  return end - sending - trailing_weights(costs, profile) + drain_of(costs, profile);
}

double rounds_drained(const StageCosts& costs, std::size_t stage) {
  const StageProfile& profile = costs.profile->stages[stage];
  const auto stages = costs.stages.size();
  if (profile.window == 0 || stages == 1) return 0.0;
  const double round = costs.forward_chain[stages] - costs.forward_chain[stage] +
                       costs.gradient_chain[stages] - costs.gradient_chain[stage];
  const auto window = static_cast<double>(profile.window);
  const double rounds =
      static_cast<double>(static_cast<std::int64_t>((costs.microbatches - 1.0) / window));
  const double left = costs.microbatches - 1.0 - rounds * window;
  const SlotCost gradient =
      costs.profile->splits_backward ? SlotCost::BackwardInput : SlotCost::Backward;
  return filled(costs, stage) + (rounds + 1.0) * round +
         left * costs.chunk(stage).of(gradient).passing + drain_of(costs, profile);
}

double messages_drained(const StageCosts& costs, const Plan& plan) {
  if (costs.stages.size() == 1) return 0.0;
  const double chunks =
      plan.schedule == ScheduleKind::Interleaved ? static_cast<double>(plan.vpp) : 1.0;
  const double messages = costs.microbatches * costs.profile->microbatch_share * chunks;
  return costs.chunk(0).of(SlotCost::Forward).passing + messages * costs.message +
         costs.gradient_chain.back();
}

double after_reduction(const StageCosts& costs, std::size_t stage) {
  const bool ties = stage == 0 || stage + 1 == costs.stages.size();
  return costs.stages[stage].copies + (ties ? costs.tie : 0.0) + costs.stages[stage].norm;
}

double issued_and_finished(const StageCosts& costs, std::size_t stage) {
  const double issued = costs.stages[stage].launch;
  // Weight gradients may be issued after the last gradient.
  if (costs.profile->splits_backward) return issued + after_reduction(costs, stage);
  return issued + drain_of(costs, costs.profile->stages[stage]) + after_reduction(costs, 0);
}

}  // namespace shardwright::sim
