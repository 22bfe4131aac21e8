#include "sim/step/stage_costs.hpp"

#include <algorithm>
#include <limits>

#include "core/lowering/message_waits.hpp"
#include "core/program/groups.hpp"
#include "sim/step/pipeline_paths.hpp"
#include "sim/step/server_use.hpp"

namespace shardwright::sim {
namespace {

enum class Shared { Nothing, States, Pipeline };

// What a plan shares with the one before it. Neighbours in the space often differ in their ZeRO
// stage alone, or in what they recompute.
Shared shared_with(const Plan& before, Plan plan) {
  plan.zero_stage = before.zero_stage;
  if (plan == before) return Shared::Pipeline;
  plan.recompute = before.recompute;
  plan.recompute_layers = before.recompute_layers;
  plan.stage_recompute_layers = before.stage_recompute_layers;
  plan.recompute_interval = before.recompute_interval;
  plan.recompute_group = before.recompute_group;
  return plan == before ? Shared::States : Shared::Nothing;
}

// Replaces the chunk of each position by the known one of its pool and key; `compute(in, position)`
// returns a chunk of the pool that is not known yet.
template <class Compute>
void find_chunks(const PlanContext& in, std::uint64_t further_key,
                 std::vector<ChunkCostsByKey>& known, ChunkCosts& chunks, Compute compute) {
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (in.layout.repeats_chunk(i)) {
      chunks[i] = chunks[i - 1];
      continue;
    }
    const std::size_t pool = in.layout.pool_of_chunk(i);
    const auto [found, is_new] = known[pool].try_emplace(chunk_key(in, i) | further_key);
    if (is_new) found->second = compute(in.of_pool(pool), i);
    chunks[i] = &found->second;
  }
}

// Messages of one microbatch that a chunk's stage waits for.
double sending_of(const StageCosts& costs, std::size_t position) {
  if (!costs.blocking) return 0.0;
  return costs.handovers[position].message + costs.handovers[position + 1].message;
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

std::vector<StageCost> time_stages(const PlanContext& in, const StageCosts& costs,
                                   StageMessages& messages) {
  std::vector<StageCost> stages;
  stages.reserve(in.layout.ends.size());
  for (std::size_t i = 0; i < in.layout.ends.size(); ++i) {
    const PipelineLayout::RunEnd& end = in.layout.ends[i];
    const std::size_t pool = in.layout.pool_of(end.stage);
    StageCost cost = in.layout.repeats_stage(i)
                         ? stages.back()
                         : slots_cost(in.of_pool(pool), costs, end.stage, messages.inside(pool));
    cost.stage = end.stage;
    cost.like = end.like;
    add_warmup(costs, cost);
    stages.push_back(cost);
  }
  return stages;
}

Handover time_handover(const PlanContext& in, std::size_t from, std::size_t to,
                       StageMessages& messages) {
  const LayerCosts& layers = in.layers;
  Handover times;
  times.message = messages.between(from, to, OpKind::Send, Group::Pipeline, layers.message_bytes);
  if (layers.message_bytes < layers.boundary_bytes)
    times.gather =
        messages.between(from, to, OpKind::AllGather, Group::Tensor, layers.boundary_bytes);
  return times;
}

void time_handovers(const PlanContext& in, StageMessages& messages, StageCosts& costs) {
  const std::size_t count = costs.chunks.size();
  const Handover first = in.plan.pp > 1 ? time_handover(in, 0, 0, messages) : Handover();
  costs.handovers.assign(count + 1, first);
  costs.handovers.front() = costs.handovers.back() = {};
  costs.least_handover = first.total();
  if (in.pools.empty()) return;
  costs.least_handover = std::numeric_limits<double>::infinity();
  for (std::size_t i = 1; i < count; ++i) {
    costs.handovers[i] = {};
    if (in.layout.profile->joined[i]) continue;
    costs.handovers[i] =
        time_handover(in, in.layout.pool_of_chunk(i - 1), in.layout.pool_of_chunk(i), messages);
    costs.least_handover = std::min(costs.least_handover, costs.handovers[i].total());
  }
}

// Times what plans have in common that differ only in their states.
void time_pipeline(const PlanContext& in, StageMessages& messages, ScheduleProfiles& schedules,
                   StageCosts& costs) {
  time_handovers(in, messages, costs);
  costs.blocking = in.plan.pp > 1 && kernels_wait_for_sends(in.stack, in.plan);
  costs.chains = chain_chunks(in, costs);
  costs.listed = listed_time(in, costs, schedules);
  costs.tie =
      messages.between(in.layout.pool_of(0), in.layout.pool_of(in.layout.stage_kind.size() - 1),
                       OpKind::AllReduce, Group::EmbeddingTie, tied_bytes(in));
  costs.norm_reduce = messages.over_all(OpKind::AllReduce, Group::ModelParallel, kNormBytes);
  costs.stages = time_stages(in, costs, messages);
  costs.served = 0.0;
  if (in.plan.replicas.stale()) {
    double parameters = 0.0;
    for (std::size_t stage = 0; stage < in.layout.stage_kind.size(); ++stage)
      parameters += stage_parameters(in, costs.chunks, stage).total();
    costs.served = served_step(parameters, in.plan, in.cluster, in.stack).value();
  }
}

}  // namespace

double update_time(const StageCosts& costs, const Plan& plan, double before) {
  double update = 0.0, exposed = 0.0;
  for (const StageCost& stage : costs.stages) update = std::max(update, stage.states.after_norm());
  if (plan.replicas.overlap_steps == 0) return update;
  for (const StageCost& stage : costs.stages)
    exposed = std::max(
        exposed, stage.states.after_norm() + stage.states.exposed(plan.replicas, before + update));
  return exposed;
}

double mean_over_stages(const StageCosts& costs, double StageCost::*quantity) {
  double sum = 0.0;
  for (const StageCost& stage : costs.stages)
    sum += stage.*quantity * static_cast<double>(stage.like);
  return sum / static_cast<double>(costs.profile->stages.size());
}

std::vector<Seconds> computing_of_stages(const StageCosts& costs) {
  std::vector<Seconds> times;
  for (const StageCost& stage : costs.stages)
    times.insert(times.end(), static_cast<std::size_t>(stage.like), Seconds(stage.compute));
  return times;
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

StageMessages::StageMessages(const CutContext& cut) {
  if (cut.pools.empty()) inside_.emplace_back(cut.cluster, cut.stack);
  if (!cut.replica_pools.empty()) inside_.front().join_replicas_on(cut.replica_pools);
  for (const PoolCosts& pool : cut.pools) {
    inside_.emplace_back(pool.cluster, cut.stack);
    if (!pool.replica_pools.empty()) inside_.back().join_replicas_on(pool.replica_pools);
    outside_.emplace_back(pool.outside, cut.stack, true);
    const auto same = std::ranges::find(cut.pools, pool.cluster.name,
                                        [](const PoolCosts& each) { return each.cluster.name; });
    first_of_pool_.push_back(static_cast<std::size_t>(same - cut.pools.begin()));
  }
}

void StageMessages::use_groups_of(const Plan& plan) {
  for (MessageTimes& pool : inside_) pool.use_groups_of(plan);
  for (MessageTimes& pool : outside_) pool.use_groups_of(plan);
}

double StageMessages::between(std::size_t a, std::size_t b, OpKind kind, Group group,
                              double bytes) {
  if (a == b || first_of_pool_[a] == first_of_pool_[b]) return inside_[a].of(kind, group, bytes);
  return std::max(outside_[a].of(kind, group, bytes), outside_[b].of(kind, group, bytes));
}

double StageMessages::over_all(OpKind kind, Group group, double bytes) {
  const bool on_one =
      std::ranges::all_of(first_of_pool_, [](std::size_t pool) { return pool == 0; });
  if (on_one) return inside_.front().of(kind, group, bytes);
  double slowest = 0.0;
  for (MessageTimes& pool : outside_) slowest = std::max(slowest, pool.of(kind, group, bytes));
  return slowest;
}

StageCostCache::StageCostCache(const CutContext& cut, ScheduleProfiles& schedules)
    : cut_(cut),
      schedules_(schedules),
      messages_(cut),
      chunks_(std::max<std::size_t>(cut.pools.size(), 1)),
      sharded_chunks_(chunks_.size()) {}

PlanContext StageCostCache::context() const {
  return {cut_.model, cut_.cluster, cut_.stack,     cut_.layers,      plan_,
          layout_,    cut_.pools,   costs_.sharded, costs_.host_waits};
}

void StageCostCache::cut_pipeline(const Plan& plan) {
  const ScheduleProfile* profile = &schedules_.of(plan.schedule, shape_of(plan));
  if (profile != costs_.profile || !splits_alike(plan_, plan))
    layout_ = lay_out(cut_.model, cut_.layers, plan, *profile);
  if (!ranks_alike(plan_, plan)) {
    for (ChunkCostsByKey& pool : sharded_chunks_) pool.clear();
  }
  plan_ = plan;
  timed_ = false;
  costs_.profile = profile;
  costs_.microbatches = static_cast<double>(plan.microbatches());
  costs_.slowdown = cut_.stack.overlap.slowdown;
  costs_.sharded = shards_parameters(cut_.model, plan);
  costs_.host_waits = plan.pp > 1 && host_waits_for_receives(cut_.stack, plan);
  costs_.chunks.resize(layout_.ranges.size());
  const PlanContext in = context();
  find_chunks(in, 0, chunks_, costs_.chunks, chunk_cost);
  peaks_ = activation_peaks(layout_, costs_.chunks);
}

Bytes StageCostCache::memory(const Plan& plan) {
  const Shared shared = costs_.profile ? shared_with(plan_, plan) : Shared::Nothing;
  if (shared != Shared::Pipeline) cut_pipeline(plan);
  plan_.zero_stage = plan.zero_stage;
  if (shared == Shared::Nothing) states_ = {};
  std::vector<RunStates>& known = states_[static_cast<std::size_t>(plan.zero_stage)];
  known.resize(layout_.stage_kind.back() + 1);
  const PlanContext in = context();
  costs_.memory = stage_memory(in, peaks_, [&](std::size_t stage) {
    std::optional<double>& bytes = known[layout_.stage_kind[stage]].bytes;
    if (!bytes) bytes = state_bytes(in, costs_.chunks, stage);
    return *bytes;
  });
  return costs_.memory.peak;
}

const StageCosts& StageCostCache::costs() {
  const PlanContext in = context();
  if (!timed_) {
    messages_.use_groups_of(plan_);
    // FSDP: the slots' times with the gathers of this plan's groups.
    const auto group = static_cast<std::uint64_t>(plan_.shard_group) << kChunkKeyBits;
    if (in.sharded) {
      const auto compute = [&](const PlanContext& on_pool, std::size_t i) {
        MessageTimes& messages = messages_.inside(layout_.pool_of_chunk(i));
        return sharded_chunk_cost(*costs_.chunks[i], on_pool, i, messages);
      };
      find_chunks(in, group, sharded_chunks_, costs_.chunks, compute);
    }
    time_pipeline(in, messages_, schedules_, costs_);
    timed_ = true;
  }
  std::vector<RunStates>& known = states_[static_cast<std::size_t>(plan_.zero_stage)];
  for (std::size_t i = 0; i < costs_.stages.size(); ++i) {
    StageCost& cost = costs_.stages[i];
    if (layout_.repeats_stage(i)) {
      cost.data = costs_.stages[i - 1].data;
      cost.states = costs_.stages[i - 1].states;
      continue;
    }
    const std::size_t pool = layout_.pool_of(cost.stage);
    const PlanContext on_pool = in.of_pool(pool);
    MessageTimes& messages = messages_.inside(pool);
    std::optional<StateCost>& states = known[layout_.stage_kind[cost.stage]].cost;
    if (!states) states = state_cost(on_pool, costs_.chunks, cost.stage, messages);
    cost.states = *states;
    cost.data = data_parallel_cost(on_pool, costs_.chunks, cost.stage, messages);
  }
  costs_.paths = find_paths(costs_);
  return costs_;
}

}  // namespace shardwright::sim
