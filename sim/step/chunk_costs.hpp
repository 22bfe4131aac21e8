// The time of one microbatch in the model chunks of a plan, from the costs of the parts of the
// model.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/lowering/slot_walk.hpp"
#include "core/program/shard_shape.hpp"
#include "sim/step/layer_costs.hpp"
#include "sim/step/message_times.hpp"
#include "sim/step/schedule_profile.hpp"

namespace shardwright::sim {

// The chunks and stages that a plan cuts the model into, and which of these are alike.
struct PipelineLayout {
  // The first or the last stage of a run of like ones.
  struct RunEnd {
    std::size_t stage = 0;
    // The stages of the run that it stands for.
    std::int64_t like = 1;
  };

  const ScheduleProfile* profile = nullptr;
  // The layers of each chunk, by position in forward order.
  std::vector<LayerRange> ranges;
  // The first chunk of the run of like ones that each chunk is in, by position.
  std::vector<std::size_t> chunk_kind;
  // The number of the run of like stages that each stage is in.
  std::vector<std::size_t> stage_kind;
  // Both ends of each run of like stages, in pipeline order.
  std::vector<RunEnd> ends;
  // The pools of stages, and of chunks by position, as pool_of_stage() numbers them; empty where
  // the plan names none.
  std::vector<std::size_t> stage_pools, chunk_pools;
  // The stage of each chunk, by position; empty where the plan says nothing of single stages.
  std::vector<std::int64_t> chunk_stages;

  std::size_t pool_of(std::size_t stage) const {
    return stage_pools.empty() ? 0 : stage_pools[stage];
  }
  std::size_t pool_of_chunk(std::size_t position) const {
    return chunk_pools.empty() ? 0 : chunk_pools[position];
  }

  // 0 where all stages are treated as one.
  std::int64_t stage_of_chunk(std::size_t position) const {
    return chunk_stages.empty() ? 0 : chunk_stages[position];
  }

  bool repeats_chunk(std::size_t position) const { return chunk_kind[position] < position; }
  // True if ends[i] is the last stage of the run that ends[i - 1] begins.
  bool repeats_stage(std::size_t i) const {
    return i > 0 && stage_kind[ends[i].stage] == stage_kind[ends[i - 1].stage];
  }
  const StageProfile& stage(std::size_t stage) const { return profile->stages[stage]; }
};

// True if both plans split the layers into chunks alike.
bool splits_alike(const Plan& a, const Plan& b);

PipelineLayout lay_out(const ModelSpec& model, const LayerCosts& layers, const Plan& plan,
                       const ScheduleProfile& profile);

// One of the pools that the stages of plans lie on. Where stages on one pool exchange with replicas
// on different pools, there is one of these for each choice of such pools.
struct PoolCosts {
  ClusterSpec cluster;
  // The pool as messages to other pools find it.
  ClusterSpec outside;
  // The layers of the plans' cut on its accelerators.
  LayerCosts layers;
  // The pools of the stages' replicas, as messages to other pools find them; empty where all lie on
  // this one.
  std::vector<ClusterSpec> replica_pools{};
};

// The inputs of the costs of one plan. Everything referred to outlives it.
struct PlanContext {
  const ModelSpec& model;
  // Those of the pool at hand.
  const ClusterSpec& cluster;
  const StackSpec& stack;
  // Those of the pool at hand.
  const LayerCosts& layers;
  const Plan& plan;
  const PipelineLayout& layout;
  // By number of the pool; empty where the plan names none.
  std::span<const PoolCosts> pools;
  // FSDP: parameters are gathered before use.
  bool sharded = false;
  // The host waits at a receive until the message is there.
  bool host_waits = false;

  // The same with another pool at hand.
  PlanContext of_pool(std::size_t pool) const {
    if (pools.empty()) return *this;
    return {model,   pools[pool].cluster, stack, pools[pool].layers, plan, layout, pools,
            sharded, host_waits};
  }
};

// FSDP: lower bounds of the times of a slot from the start of its first gather on.
struct GatherCycle {
  // The time until the next slot's first gather may start: that one waits for the kernels of this
  // slot, and for its gathers and reductions, behind which it is on their stream.
  double next = 0.0;
  // The time until the slot's last kernel ends.
  double computed = 0.0;
  // The time of the gathers that do not wait for the slot's kernels.
  double ahead = 0.0;
};

// One part of the model as a pipeline cuts it: the layers of a model chunk, with the embedding or
// the head at the ends.
struct ChunkCost {
  EnumArray<SlotPhase, BlockCost> slot;
  PartParameters parameters;
  // The parts in forward order.
  std::vector<ChunkPart<PartCost>> parts;
  // Copies of activations to the host and back, in seconds.
  double copy_time = 0.0;
  // The `passing` of each slot if the host has issued it long before.
  EnumArray<SlotPhase, double> issued_ahead{};
  // FSDP, by slot: its reductions go on for so long after it, and the next slot's gathers wait.
  EnumArray<SlotPhase, double> reducing{};
  // FSDP, by slot.
  EnumArray<SlotPhase, GatherCycle> cycle{};
};

// Leaves out the time of FSDP's gathers and reductions.
ChunkCost chunk_cost(const PlanContext& in, std::size_t position);

// FSDP: `chunk` with the gathers and reductions of the plan's groups.
ChunkCost sharded_chunk_cost(ChunkCost chunk, const PlanContext& in, std::size_t position,
                             MessageTimes& messages);

// The key of a chunk among those with the same layer costs on the same pool, so that plans share
// its cost. It tells which layers the chunk has, which of its ends is an end of the model or lies
// on its own stage, what is recomputed and sharded, and, if it is sharded, which slots are timed.
std::uint64_t chunk_key(const PlanContext& in, std::size_t position);
inline constexpr int kChunkKeyBits = 46;
using ChunkCostsByKey = std::unordered_map<std::uint64_t, ChunkCost>;

// True if the slot begins with a message that the host waits for.
bool issues_none_ahead(const PlanContext& in, SlotPhase phase, std::size_t position);

// The time that a microbatch takes in the chunk in addition to that of each slot alone, because the
// copies of activations of one slot are still on their way in the next.
double copy_wait(const PlanContext& in, const ChunkCost& chunk, MessageTimes& messages);

}  // namespace shardwright::sim
