#include "sim/step/stage_costs.hpp"

#include <algorithm>

#include "core/lowering/message_waits.hpp"
#include "core/program/groups.hpp"
#include "sim/cost/slowest_device.hpp"
#include "sim/step/pipeline_paths.hpp"

namespace shardwright::sim {
namespace {

// True if `plan` is the one before but for its states. Neighbours in the space often are.
bool differs_only_in_states(const CutContext& cut, const Plan& plan, StageCostCache& cache) {
  if (!cache.plan || cache.costs.sharded != shards_parameters(cut.model, plan)) return false;
  cache.plan->zero_stage = plan.zero_stage;
  cache.plan->offload_optimizer = plan.offload_optimizer;
  return *cache.plan == plan;
}

// True if `plan` is the one before but for its states and for what is recomputed.
bool keeps_states(const Plan& plan, StageCostCache& cache) {
  if (!cache.plan) return false;
  cache.plan->recompute = plan.recompute;
  cache.plan->recompute_layers = plan.recompute_layers;
  cache.plan->recompute_interval = plan.recompute_interval;
  cache.plan->recompute_group = plan.recompute_group;
  return *cache.plan == plan;
}

PlanContext context_of(const CutContext& cut, const Plan& plan, const StageCostCache& cache) {
  return {cut.model, cut.cluster,  cut.stack,           cut.layers,
          plan,      cache.layout, cache.costs.sharded, cache.costs.host_waits};
}

// Many chunks are those of plans before.
ChunkCosts find_chunks(const PlanContext& in, StageCostCache& cache, ChunkCosts chunks) {
  chunks.resize(in.layout.ranges.size());
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (in.layout.repeats_chunk(i)) {
      chunks[i] = chunks[i - 1];
      continue;
    }
    const auto [found, is_new] = cache.chunks.try_emplace(chunk_key(in, i));
    if (is_new) found->second = chunk_cost(in, i);
    chunks[i] = &found->second;
  }
  return chunks;
}

// FSDP: the slots' times with the gathers of this plan's groups.
void shard_chunks(const PlanContext& in, StageCostCache& cache, ChunkCosts& chunks) {
  const auto group = static_cast<std::uint64_t>(in.plan.shard_group) << 46;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (in.layout.repeats_chunk(i)) {
      chunks[i] = chunks[i - 1];
      continue;
    }
    const auto [found, is_new] = cache.sharded_chunks.try_emplace(chunk_key(in, i) | group);
    if (is_new) found->second = sharded_chunk_cost(*chunks[i], in, i, cache.messages);
    chunks[i] = &found->second;
  }
}

void begin_pipeline(const CutContext& cut, const Plan& plan, StageCostCache& cache) {
  const bool overlaps_alike = cache.plan && cache.plan->overlap == plan.overlap;
  if (!overlaps_alike) cache.chunks.clear();
  if (!overlaps_alike || !ranks_alike(*cache.plan, plan)) cache.sharded_chunks.clear();
  StageCosts& costs = cache.costs;
  const ScheduleProfile* profile = &cache.profiles.of(plan.schedule, shape_of(plan));
  if (profile != costs.profile || !cache.plan || !splits_alike(*cache.plan, plan))
    cache.layout = lay_out(cut.model, cut.layers, plan, *profile);
  if (!keeps_states(plan, cache)) cache.states = {};
  cache.plan = plan;
  cache.timed = false;
  costs.profile = profile;
  costs.microbatches = static_cast<double>(plan.microbatches());
  costs.slowdown = cut.stack.overlap.slowdown;
  costs.sharded = shards_parameters(cut.model, plan);
  costs.host_waits = plan.pp > 1 && host_waits_for_receives(cut.stack, plan);
  costs.chunks = find_chunks(context_of(cut, plan, cache), cache, std::move(costs.chunks));
  cache.peaks = activation_peaks(cache.layout, costs.chunks);
}

StageCostCache::States& known_states(const Plan& plan, StageCostCache& cache) {
  StageCostCache::States& known =
      cache.states[static_cast<std::size_t>(plan.zero_stage)][plan.offload_optimizer];
  known.bytes.resize(cache.layout.stage_kind.back() + 1);
  known.costs.resize(cache.layout.stage_kind.back() + 1);
  return known;
}

// Messages of one microbatch that a chunk's stage waits for.
double sending_of(const StageCosts& costs, std::size_t position) {
  const double neighbours =
      (position > 0 ? 1.0 : 0.0) + (position + 1 < costs.chunks.size() ? 1.0 : 0.0);
  return costs.blocking ? neighbours * costs.message : 0.0;
}

// The slots of a stage. Its warm-up is missing.
StageCost slots_cost(const PlanContext& in, const StageCosts& costs, std::size_t stage,
                     MessageTimes& messages) {
  StageCost cost;
  const double slots = costs.microbatches * costs.profile->microbatch_share;
  double computing = 0.0, gathering = 0.0, sending = 0.0;
  for (const std::int32_t each : in.layout.stage(stage).position) {
    const auto position = static_cast<std::size_t>(each);
    const ChunkCost& chunk = costs.chunk(position);
    const PassTimes times = pass_times(chunk, *costs.profile);
    cost.compute += slots * times.compute;
    cost.launch += slots * times.launch;
    cost.interference += slots * times.interference;
    cost.stalled += slots * times.stalled;
    cost.sharding += slots * times.sharding;
    cost.gather_cycles += slots * times.gather_cycle;
    cost.gathers_ahead = std::max(cost.gathers_ahead, chunk.cycle[SlotPhase::Forward].ahead);
    cost.offload += slots * chunk.copy_time;
    if (in.plan.offload_activations) cost.copy_wait += slots * copy_wait(in, chunk, messages);
    if (costs.listed == 0.0) cost.copy_wait += (slots - 1.0) * chunk.reducing[SlotPhase::Backward];
    computing += slots * (times.forward_passing + times.backward_passing);
    gathering += slots * (times.forward_exposed() + times.backward_exposed());
    sending += slots * sending_of(costs, position);
    cost.first_exposed = std::max(cost.first_exposed, times.forward_exposed());
    cost.gradient_exposed = std::max(cost.gradient_exposed, times.backward_exposed());
  }
  // A slot's first gather begins when the slot before has ended, and so does that one's message.
  cost.busy = computing + std::max(gathering, sending);
  return cost;
}

// Stages of like chunks differ in it.
void add_warmup(const StageCosts& costs, StageCost& cost) {
  const StageProfile& profile = costs.profile->stages[cost.stage];
  cost.warmup = cost.warmup_launch = 0.0;
  for (std::size_t i = 0; i < profile.position.size(); ++i) {
    const auto position = static_cast<std::size_t>(profile.position[i]);
    const BlockCost& forward = costs.chunk(position).slot[SlotPhase::Forward];
    cost.warmup += profile.warmup[i] * (forward.time + sending_of(costs, position));
    cost.warmup_launch += profile.warmup[i] * forward.launch;
  }
}

void time_stages(const PlanContext& in, StageCostCache& cache) {
  StageCosts& costs = cache.costs;
  costs.stages.resize(in.layout.ends.size());
  for (std::size_t i = 0; i < costs.stages.size(); ++i) {
    const PipelineLayout::RunEnd& end = in.layout.ends[i];
    StageCost& cost = costs.stages[i];
    cost = in.layout.repeats_stage(i) ? costs.stages[i - 1]
                                      : slots_cost(in, costs, end.stage, cache.messages);
    cost.stage = end.stage;
    cost.like = end.like;
    add_warmup(costs, cost);
  }
}

// Times the part that plans have in common which differ only in their states.
void time_pipeline(const PlanContext& in, StageCostCache& cache) {
  StageCosts& costs = cache.costs;
  MessageTimes& messages = cache.messages;
  const LayerCosts& layers = in.layers;
  messages.use_groups_of(in.plan);
  costs.message = costs.gather = 0.0;
  if (in.plan.pp > 1)
    costs.message = messages.of(OpKind::Send, Group::Pipeline, layers.message_bytes);
  if (in.plan.pp > 1 && layers.message_bytes < layers.boundary_bytes)
    costs.gather = messages.of(OpKind::AllGather, Group::Tensor, layers.boundary_bytes);
  costs.blocking = in.plan.pp > 1 && kernels_wait_for_sends(in.stack, in.plan);
  if (costs.sharded) shard_chunks(in, cache, costs.chunks);
  costs.chains = chain_chunks(in, costs);
  costs.listed = listed_time(in, costs, cache.profiles);
  costs.tie = tie_seconds(in, messages);
  costs.norm_reduce = messages.of(OpKind::AllReduce, Group::ModelParallel, kNormBytes);
  time_stages(in, cache);
}

}  // namespace

double mean_over_stages(const StageCosts& costs, double StageCost::*quantity) {
  double sum = 0.0;
  for (const StageCost& stage : costs.stages)
    sum += stage.*quantity * static_cast<double>(stage.like);
  return sum / static_cast<double>(costs.profile->stages.size());
}

PassTimes pass_times(const ChunkCost& chunk, const ScheduleProfile& profile) {
  const BlockCost& forward = chunk.slot[SlotPhase::Forward];
  const BlockCost& whole = chunk.slot[SlotPhase::Backward];
  const BlockCost& input = chunk.slot[SlotPhase::BackwardInput];
  const BlockCost& weight = chunk.slot[SlotPhase::BackwardWeight];
  const auto backward = [&](double BlockCost::*member) {
    const double split = input.*member + weight.*member;
    return profile.mixes_backward    ? std::min(split, whole.*member)
           : profile.splits_backward ? split
                                     : whole.*member;
  };
  const double split_cycle =
      chunk.cycle[SlotPhase::BackwardInput].next + chunk.cycle[SlotPhase::BackwardWeight].next;
  const double whole_cycle = chunk.cycle[SlotPhase::Backward].next;
  const double cycle = profile.mixes_backward    ? std::min(split_cycle, whole_cycle)
                       : profile.splits_backward ? split_cycle
                                                 : whole_cycle;
  return {forward.time,
          forward.passing,
          backward(&BlockCost::time),
          backward(&BlockCost::passing),
          forward.compute + backward(&BlockCost::compute),
          forward.launch + backward(&BlockCost::launch),
          forward.interference + backward(&BlockCost::interference),
          forward.stalled + backward(&BlockCost::stalled),
          forward.sharding + backward(&BlockCost::sharding),
          chunk.cycle[SlotPhase::Forward].next + cycle};
}

Bytes plan_memory(const CutContext& cut, const Plan& plan, StageCostCache& cache) {
  if (!differs_only_in_states(cut, plan, cache)) begin_pipeline(cut, plan, cache);
  const PlanContext in = context_of(cut, plan, cache);
  StageCostCache::States& known = known_states(plan, cache);
  cache.costs.memory = stage_memory(in, cache.peaks, [&](std::size_t stage) {
    std::optional<double>& bytes = known.bytes[cache.layout.stage_kind[stage]];
    if (!bytes) bytes = state_bytes(in, cache.costs.chunks, stage);
    return *bytes;
  });
  return cache.costs.memory.peak;
}

const StageCosts& stage_costs(const CutContext& cut, const Plan& plan, StageCostCache& cache) {
  StageCosts& costs = cache.costs;
  if (plan.world_size() != cache.ranks) {
    cache.ranks = plan.world_size();
    cache.slowest = slowest_device_factor(cut.cluster.accelerator, cache.ranks);
  }
  const PlanContext in = context_of(cut, plan, cache);
  if (!cache.timed) time_pipeline(in, cache);
  cache.timed = true;
  StageCostCache::States& known = known_states(plan, cache);
  for (std::size_t i = 0; i < costs.stages.size(); ++i) {
    StageCost& cost = costs.stages[i];
    if (cache.layout.repeats_stage(i)) {
      cost.data = costs.stages[i - 1].data;
      cost.states = costs.stages[i - 1].states;
      continue;
    }
    std::optional<StateCost>& states = known.costs[cache.layout.stage_kind[cost.stage]];
    if (!states) states = state_cost(in, costs.chunks, cost.stage, cache.messages, cache.slowest);
    cost.states = *states;
    cost.data = data_parallel_cost(in, costs.chunks, cost.stage, cache.messages);
  }
  costs.paths = find_paths(costs);
  return costs;
}

}  // namespace shardwright::sim
