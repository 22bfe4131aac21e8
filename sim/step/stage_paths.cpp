#include "sim/step/stage_paths.hpp"

#include <algorithm>
#include <cmath>

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

double find_filled(const StageCosts& costs, std::size_t stage) {
  double least = infinite<Seconds>().value();
  for (const std::int32_t position : costs.profile_of(stage).position)
    least = std::min(least, costs.forward_chain[static_cast<std::size_t>(position)]);
  return std::max(least, costs.stages[stage].data.first_gather);
}

double find_returned(const StageCosts& costs, const StageProfile& stage) {
  const std::int32_t position =
      stage.position[static_cast<std::size_t>(stage.first_gradient_chunk)];
  return costs.gradient_arrival[static_cast<std::size_t>(position)];
}

double find_rounds_drained(const StageCosts& costs, std::size_t stage, const StagePath& path) {
  const StageProfile& profile = costs.profile_of(stage);
  if (profile.window == 0 || costs.chunks.size() == 1) return 0.0;
  const std::size_t position = costs.stages[stage].stage;  // of its only chunk
  const double round = costs.forward_chain.back() - costs.forward_chain[position] +
                       costs.gradient_chain.back() - costs.gradient_chain[position];
  const auto window = static_cast<double>(profile.window);
  const double rounds = std::floor((costs.microbatches - 1.0) / window);
  const double left = costs.microbatches - 1.0 - rounds * window;
  const SlotCost gradient =
      costs.profile->splits_backward ? SlotCost::BackwardInput : SlotCost::Backward;
  return path.filled + (rounds + 1.0) * round + left * costs.chunk(position).of(gradient).passing +
         path.drain;
}

double find_slots_end(const StageCosts& costs, std::size_t stage, const StagePath& path) {
  const StageCost& cost = costs.stages[stage];
  const double computed = std::max(path.filled + cost.busy - cost.first_exposed,
                                   path.returned + cost.busy - cost.warmup - cost.gradient_exposed);
  if (!costs.host_waits) return computed;
  // A host that waits for messages issues the slots behind the first one, and behind the first
  // gradient, only when it has come.
  return std::max(
      {computed, path.filled + cost.launch, path.returned + cost.launch - cost.warmup_launch});
}

StagePath find_path(const StageCosts& costs, std::size_t stage) {
  const StageProfile& profile = costs.profile_of(stage);
  StagePath path;
  path.filled = find_filled(costs, stage);
  path.returned = find_returned(costs, profile);
  path.slots_end = find_slots_end(costs, stage, path);
  path.drain = drain_of(costs, profile);
  path.trailing_weights = trailing_weights(costs, profile);
  path.rounds_drained = find_rounds_drained(costs, stage, path);
  return path;
}

}  // namespace

void find_paths(StageCosts& costs) {
  costs.paths.resize(costs.stages.size());
  for (std::size_t stage = 0; stage < costs.paths.size(); ++stage)
    costs.paths[stage] = find_path(costs, stage);
}

double messages_drained(const StageCosts& costs, const Plan& plan) {
  if (costs.stages.size() == 1) return 0.0;
  const double chunks =
      plan.schedule == ScheduleKind::Interleaved ? static_cast<double>(plan.vpp) : 1.0;
  const double messages = costs.microbatches * costs.profile->microbatch_share * chunks;
  return costs.chunk(0).of(SlotCost::Forward).passing + messages * costs.message +
         costs.gradient_chain.back();
}

}  // namespace shardwright::sim
