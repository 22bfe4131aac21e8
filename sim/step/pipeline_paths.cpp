#include "sim/step/pipeline_paths.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardwright::sim {
namespace {

// Parts of the longest microbatch in a chunk. Finer ones tell more lists apart and find hardly a
// longer way.
constexpr double kNominalParts = 8.0;

// What the slot begins with.
const Handover& handover_to(const StageCosts& costs, SlotPhase phase, std::size_t position) {
  return costs.handovers[phase == SlotPhase::Forward ? position : position + 1];
}

// The time of a slot from the arrival of the message that it begins with. A host that waits for the
// message issues the slot's kernels, and FSDP's gathers, behind it. If the message was scattered
// over the tensor-parallel ranks, the host issues them beside its gather, which the chains count
// with the message.
double from_message(const PlanContext& in, const StageCosts& costs, SlotPhase phase,
                    std::size_t position) {
  const ChunkCost& chunk = costs.chunk(position);
  const BlockCost& cost = chunk.slot[phase];
  if (!issues_none_ahead(in, phase, position)) return cost.passing;
  const double issued = costs.sharded ? cost.time : cost.passing;
  return std::max(chunk.issued_ahead[phase], issued - handover_to(costs, phase, position).gather);
}

// How much longer the slot waits for its message than a slot behind the shortest handover.
double beyond_least(const StageCosts& costs, SlotPhase phase, std::size_t position) {
  if (phase == SlotPhase::BackwardWeight) return 0.0;
  return std::max(0.0, handover_to(costs, phase, position).total() - costs.least_handover);
}

// The time from the arrival of the first microbatch at the last stage to that of the one whose
// forward pass it computes last before the first gradient: the microbatches follow each other
// through the slowest chunk.
double forwards_before_gradient(const StageCosts& costs) {
  const StageProfile& last = costs.profile->stages.back();
  if (last.position.size() > 1) return 0.0;
  double slowest = 0.0;
  for (const ChunkCost* chunk : costs.chunks)
    slowest = std::max(slowest, chunk->slot[SlotPhase::Forward].time);
  return (last.warmup.front() - 1.0) * slowest;
}

double trailing_weights(const StageCosts& costs, const StageProfile& stage) {
  if (!costs.profile->splits_backward) return 0.0;
  double sum = 0.0;
  for (std::size_t chunk = 0; chunk < stage.position.size(); ++chunk) {
    const auto position = static_cast<std::size_t>(stage.position[chunk]);
    sum +=
        stage.trailing_weights[chunk] * costs.chunk(position).slot[SlotPhase::BackwardWeight].time;
  }
  return sum;
}

double find_filled(const StageCosts& costs, std::size_t stage) {
  double least = infinite<Seconds>().value();
  for (const std::int32_t position : costs.profile_of(stage).position)
    least = std::min(least, costs.chains.forward[static_cast<std::size_t>(position)]);
  return std::max(least, costs.stages[stage].states.first_gather);
}

double find_rounds_drained(const StageCosts& costs, std::size_t stage, const StagePath& path) {
  const StageProfile& profile = costs.profile_of(stage);
  if (profile.window == 0 || costs.chunks.size() == 1) return 0.0;
  // The position of its only chunk.
  const std::size_t position = costs.stages[stage].stage;
  const PipelineChains& chains = costs.chains;
  const double round = chains.forward.back() - chains.forward[position] + chains.gradient.back() -
                       chains.gradient[position];
  const auto window = static_cast<double>(profile.window);
  const double rounds = std::floor((costs.microbatches - 1.0) / window);
  const double left = costs.microbatches - 1.0 - rounds * window;
  const SlotPhase gradient =
      costs.profile->splits_backward ? SlotPhase::BackwardInput : SlotPhase::Backward;
  return path.filled + (rounds + 1.0) * round +
         left * costs.chunk(position).slot[gradient].passing + path.drain;
}

double find_computed(const StageCost& cost, const StagePath& path) {
  return std::max(path.filled + cost.busy - cost.first_exposed,
                  path.returned + cost.busy - cost.warmup - cost.gradient_exposed);
}

// The arrival of the first microbatch's message, which a host waits for; the host issues kernels
// beside the message's gather and that of parameters.
double find_first_message(const StageCosts& costs, std::size_t stage) {
  double least = infinite<Seconds>().value();
  for (const std::int32_t chunk : costs.profile_of(stage).position) {
    const auto position = static_cast<std::size_t>(chunk);
    least = std::min(least, costs.chains.forward[position] - costs.handovers[position].gather);
  }
  return least;
}

double find_slots_end(const StageCosts& costs, std::size_t stage, const StagePath& path) {
  const StageCost& cost = costs.stages[stage];
  if (!costs.host_waits) return path.computed;
  // A host that waits for messages issues the slots behind the first one, and behind the first
  // gradient that another stage sends, only when it has come.
  const StageProfile& profile = costs.profile_of(stage);
  const auto next = static_cast<std::size_t>(
      profile.position[static_cast<std::size_t>(profile.first_gradient_chunk)] + 1);
  const double issued = find_first_message(costs, stage) + cost.launch;
  if (next == costs.chunks.size() || costs.profile->joined[next])
    return std::max(path.computed, issued);
  const double first_gradient = path.returned - costs.handovers[next].gather;
  return std::max({path.computed, issued, first_gradient + cost.launch - cost.warmup_launch});
}

StagePath find_path(const StageCosts& costs, std::size_t stage) {
  const StageProfile& profile = costs.profile_of(stage);
  const auto position_of = [&profile](std::int32_t chunk) {
    return static_cast<std::size_t>(profile.position[static_cast<std::size_t>(chunk)]);
  };
  StagePath path;
  path.filled = find_filled(costs, stage);
  path.returned = costs.chains.arrival[position_of(profile.first_gradient_chunk)];
  path.computed = find_computed(costs.stages[stage], path);
  path.slots_end = find_slots_end(costs, stage, path);
  path.drain = costs.chains.gradient[position_of(profile.last_gradient_chunk)];
  path.trailing_weights = trailing_weights(costs, profile);
  path.rounds_drained = find_rounds_drained(costs, stage, path);
  return path;
}

// True if the paths of the stages suffice: stages have one chunk and their backward pass is whole.
bool needs_no_list(const ScheduleProfile& profile) {
  return profile.joined.size() == 1 ||
         (profile.stages.front().position.size() == 1 && !profile.splits_backward);
}

double time_of(const PassedSlots& passed, const ChunkCost& chunk) {
  double sum = 0.0;
  for (std::size_t i = 0; i < kSlotPhases; ++i) {
    sum += passed.behind_slot[i] * chunk.slot[i].time +
           passed.behind_input[i] * chunk.slot[i].passing + passed.reducing[i] * chunk.reducing[i];
  }
  return sum;
}

// How much longer handovers on the path take than the shortest one.
double handed_over_late(const PassedSlots& passed, const StageCosts& costs, std::size_t position) {
  double sum = 0.0;
  for (const SlotPhase phase : enumerators<SlotPhase>())
    sum +=
        passed.behind_input[static_cast<std::size_t>(phase)] * beyond_least(costs, phase, position);
  return sum;
}

// One of neighbouring chunks that are alike stands for all.
NominalTimes nominal_times(const PlanContext& in, const StageCosts& costs) {
  NominalTimes nominal;
  double longest = 0.0;
  for (std::size_t i = 0; i < costs.chunks.size(); ++i) {
    if (in.layout.repeats_chunk(i)) continue;
    const PassTimes times = pass_times(costs.chunk(i), *costs.profile);
    longest = std::max(longest, times.forward + times.backward);
  }
  const double part = longest / kNominalParts;
  const auto parts = [part](double time) {
    constexpr double kMost = std::numeric_limits<std::int16_t>::max();
    return static_cast<std::int16_t>(std::min(time / part + 0.5, kMost));
  };
  for (std::size_t i = 0; i < costs.chunks.size(); ++i) {
    if (in.layout.repeats_chunk(i)) continue;
    NominalChunk& chunk = nominal.chunks.emplace_back();
    chunk.first = static_cast<std::int32_t>(i);
    for (const SlotPhase phase : enumerators<SlotPhase>()) {
      const auto slot = static_cast<std::size_t>(phase);
      const BlockCost& cost = costs.chunk(i).slot[slot];
      chunk.behind_slot[slot] = parts(cost.time);
      chunk.behind_input[slot] = parts(cost.passing + beyond_least(costs, phase, i));
      chunk.reducing[slot] = parts(costs.chunk(i).reducing[slot]);
    }
  }
  nominal.message = parts(costs.least_handover);
  return nominal;
}

}  // namespace

PipelineChains chain_chunks(const PlanContext& in, const StageCosts& costs) {
  const std::size_t count = costs.chunks.size();
  const ScheduleProfile& profile = *costs.profile;
  PipelineChains chains;
  chains.forward.assign(count + 1, 0.0);
  chains.gradient.assign(count + 1, 0.0);
  chains.arrival.assign(count, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const double whole = from_message(in, costs, SlotPhase::Backward, i);
    const double input = from_message(in, costs, SlotPhase::BackwardInput, i);
    const double gradient = profile.mixes_backward    ? std::min(whole, input)
                            : profile.splits_backward ? input
                                                      : whole;
    const bool last = i + 1 == count;
    const double message = last || profile.joined[i + 1] ? 0.0 : costs.handovers[i + 1].total();
    chains.forward[i + 1] =
        chains.forward[i] + from_message(in, costs, SlotPhase::Forward, i) + message;
    chains.gradient[i + 1] = chains.gradient[i] + gradient + message;
    chains.arrival[i] = message - chains.gradient[i + 1];
  }
  const double first_gradient = chains.forward[count] + forwards_before_gradient(costs);
  for (double& arrival : chains.arrival) arrival += first_gradient + chains.gradient[count];
  return chains;
}

double listed_time(const PlanContext& in, const StageCosts& costs, ScheduleProfiles& profiles) {
  const ScheduleProfile& profile = *costs.profile;
  if (needs_no_list(profile)) return 0.0;
  const NominalTimes nominal = nominal_times(in, costs);
  const SchedulePath& path = profiles.path(profile, nominal);
  const auto written = static_cast<double>(profile.shape.microbatches);
  const double repeated = std::max(0.0, costs.microbatches - written) / (written / 3.0);
  double sum = (path.messages + repeated * path.steady_messages) * costs.least_handover;
  for (std::size_t i = 0; i < nominal.chunks.size(); ++i) {
    const auto position = static_cast<std::size_t>(nominal.chunks[i].first);
    const ChunkCost& chunk = costs.chunk(position);
    sum += time_of(path.chunks[i], chunk);
    if (repeated > 0.0) sum += repeated * time_of(path.steady_chunks[i], chunk);
    if (in.pools.empty()) continue;
    sum += handed_over_late(path.chunks[i], costs, position) +
           repeated * handed_over_late(path.steady_chunks[i], costs, position);
  }
  return sum;
}

std::vector<StagePath> find_paths(const StageCosts& costs) {
  std::vector<StagePath> paths;
  paths.reserve(costs.stages.size());
  for (std::size_t stage = 0; stage < costs.stages.size(); ++stage)
    paths.push_back(find_path(costs, stage));
  return paths;
}

namespace {

// As messages_drained(), by the messages to one stage: from the first one on they follow each
// other, and behind the last one its microbatch goes on to the end of the model and back. GPipe's
// gradients come back after all forward passes, one after the other too. DualPipe lies on one pool.
double passed_to(const StageCosts& costs, const Plan& plan, std::size_t stage) {
  const std::vector<double>& forward = costs.chains.forward;
  const bool loops = plan.schedule == ScheduleKind::Interleaved;
  const std::size_t last_loop = loops ? costs.chunks.size() - costs.profile->stages.size() : 0;
  const double further = costs.microbatches * (loops ? static_cast<double>(plan.vpp) : 1.0) - 1.0;
  const double turns = plan.schedule == ScheduleKind::GPipe ? 2.0 : 1.0;
  return forward[stage] + turns * further * costs.handovers[stage].message + forward.back() -
         forward[last_loop + stage] + costs.chains.gradient.back();
}

}  // namespace

double messages_drained(const StageCosts& costs, const Plan& plan) {
  if (costs.stages.size() == 1) return 0.0;
  const double chunks =
      plan.schedule == ScheduleKind::Interleaved ? static_cast<double>(plan.vpp) : 1.0;
  const double messages = costs.microbatches * costs.profile->microbatch_share * chunks;
  double drained = costs.chunk(0).slot[SlotPhase::Forward].passing +
                   messages * costs.handovers[1].message + costs.chains.gradient.back();
  if (plan.stage_pools.empty()) return drained;
  for (std::size_t stage = 1; stage < costs.profile->stages.size(); ++stage)
    drained = std::max(drained, passed_to(costs, plan, stage));
  return drained;
}

}  // namespace shardwright::sim
