// The costs of the stages of one plan, from the costs of its layers: the ground of the analytic
// level, of the bound, and of the memory that a plan needs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "sim/step/chunk_costs.hpp"
#include "sim/step/data_parallel_cost.hpp"
#include "sim/step/message_times.hpp"
#include "sim/step/schedule_profile.hpp"
#include "sim/step/stage_memory.hpp"

namespace shardwright::sim {

// One microbatch in one chunk: forward and backward pass, as the schedule cuts the latter.
struct PassTimes {
  double forward, forward_passing, backward, backward_passing;
  double compute, launch, interference, stalled, sharding;
  // FSDP: from the first gather of each slot to that of the next one.
  double gather_cycle;

  double forward_exposed() const { return forward - forward_passing; }
  double backward_exposed() const { return backward - backward_passing; }
};
PassTimes pass_times(const ChunkCost& chunk, const ScheduleProfile& profile);

struct StageCost {
  // Its number in the pipeline.
  std::size_t stage = 0;
  // The number of stages that it stands for.
  std::int64_t like = 1;
  // The time of all slots of the step.
  double busy = 0.0;
  // The part of this in which kernels run on the compute stream.
  double compute = 0.0;
  // The part of `busy` in gathers that may end before the first slot.
  double first_exposed = 0.0;
  // The host's time for all slots.
  double launch = 0.0;
  // An upper bound of the part of `busy` in slots before the first gradient comes back.
  double warmup = 0.0;
  // The part of `launch` for these slots.
  double warmup_launch = 0.0;
  // The part of `busy` in gathers that may end before the first gradient comes back.
  double gradient_exposed = 0.0;
  // The likely time that collectives of its blocks cost their kernels.
  double interference = 0.0;
  // The part of `busy` that BlockCost has as `stalled`.
  double stalled = 0.0;
  // A lower bound of its time while FSDP's gathers or reductions run.
  double sharding = 0.0;
  // FSDP: the cycles of all slots, one after the other.
  double gather_cycles = 0.0;
  // An upper bound of the gathers that may end before its first slot.
  double gathers_ahead = 0.0;
  // Copies of activations, one after the other.
  double offload = 0.0;
  // The likely time, not included in `busy`, of slots that wait for copies and reductions of slots
  // before.
  double copy_wait = 0.0;
  DataParallelCost data;
  StateCost states;
};

// The begin and the end of a stage's slots, in seconds from the start of the step.
struct StagePath {
  // The begin of its first slot: a microbatch has passed the stages before.
  double filled = 0.0;
  // The time at which its first gradient comes back.
  double returned = 0.0;
  // The end of its slots and, where sends block, of their messages: they follow each other from the
  // first one on, and from the first one that a gradient comes back for.
  double slots_end = 0.0;
  // The same where no host delays kernels.
  double computed = 0.0;
  // The time from its last gradient to that of the first stage.
  double drain = 0.0;
  // The time of weight gradients after its last gradient.
  double trailing_weights = 0.0;
  // The time at which the first stage has the last gradient, by rounds: a stage with one chunk that
  // has w microbatches in flight starts a forward only after the gradient of the microbatch w
  // before it has come back from the stages behind. 0 where stages have several chunks.
  double rounds_drained = 0.0;
};

// Times by position in forward order, with one more at the end where a chain leads to the end.
struct PipelineChains {
  // The time from the start of a microbatch to its arrival, and from the end of its gradient to the
  // end of the gradient of the model's first part.
  std::vector<double> forward, gradient;
  // The time until the gradient of the first microbatch has come back.
  std::vector<double> arrival;
};

// What a microbatch and its gradient take from one chunk to the next.
struct Handover {
  // The time of the pipeline message.
  double message = 0.0;
  // The time of the gather after it, where each rank receives a part.
  double gather = 0.0;

  double total() const { return message + gather; }
};

struct StageCosts {
  // None before the first plan.
  const ScheduleProfile* profile = nullptr;
  ChunkCosts chunks;
  // The stages at both ends of each run of like ones, in pipeline order. From one stage of a run to
  // the next the paths change by equal steps, so that none inside decides.
  std::vector<StageCost> stages;
  // The paths of these stages.
  std::vector<StagePath> paths;
  PipelineChains chains;
  // The likely time of the slots in the order of the schedule's list; 0 if they are not timed so.
  double listed = 0.0;
  double microbatches = 0.0;
  // The slowdown of kernels beside collectives.
  double slowdown = 0.0;
  // handovers[i] leads from chunk i - 1 to chunk i in forward order. The first and the last entry
  // stand for the ends of the model and are zero. An entry between two chunks of the same stage is
  // not used.
  std::vector<Handover> handovers;
  // The shortest time of those between stages.
  double least_handover = 0.0;
  // True if its parameters are gathered before use.
  bool sharded = false;
  // True if a stage waits for its messages to be sent.
  bool blocking = false;
  // True if its host waits for them to arrive.
  bool host_waits = false;
  // The all-reduce of a tied embedding's gradient.
  double tie = 0.0;
  // The all-reduce of the gradient norm.
  double norm_reduce = 0.0;
  // The time that parameter servers need for all replicas, where no replica waits for another one.
  double served = 0.0;
  StageMemory memory;

  const ChunkCost& chunk(std::size_t position) const { return *chunks[position]; }
  // Where sends block, the message that the stage stages[i] sends its gradients by.
  double blocking_gradient(std::size_t i) const {
    return blocking ? handovers[stages[i].stage].message : 0.0;
  }
  const StageProfile& profile_of(std::size_t i) const { return profile->stages[stages[i].stage]; }
};

// The time from the end of the gradient norm to that of the step, where it takes `before` seconds
// up to there. Of exchanges beside steps it has what these do not hide.
double update_time(const StageCosts& costs, const Plan& plan, double before);

// The mean of one quantity over all stages of the pipeline.
double mean_over_stages(const StageCosts& costs, double StageCost::*quantity);

// The compute of each stage in a step, on average over its accelerators.
std::vector<Seconds> computing_of_stages(const StageCosts& costs);

// The inputs of the plans of one cut, which agree in all that layer_costs() reads. Everything
// referred to outlives it.
struct CutContext {
  const ModelSpec& model;
  const ClusterSpec& cluster;
  const StackSpec& stack;
  const LayerCosts& layers;
  // Where plans place stages on pools, the costs of each pool replace `cluster` and `layers`. They
  // are in the order of pools_of().
  std::span<const PoolCosts> pools = {};
  // Where plans place replicas on pools, `cluster` and `layers` are those of one pool; all of these
  // pools as messages to other pools find them.
  std::span<const ClusterSpec> replica_pools = {};
};

// The messages of stages that may lie on several pools.
class StageMessages {
 public:
  explicit StageMessages(const CutContext& cut);

  // Prices the groups of `plan` from now on.
  void use_groups_of(const Plan& plan);
  // Messages that stay on the pool.
  MessageTimes& inside(std::size_t pool) { return inside_[pool]; }
  // Seconds of a message between stages on these pools: as long as between nodes of the slower one.
  double between(std::size_t a, std::size_t b, OpKind kind, Group group, double bytes);
  // Seconds of a collective in which all stages take part.
  double over_all(OpKind kind, Group group, double bytes);

 private:
  std::vector<MessageTimes> inside_;
  // Messages to other pools; empty where there are none.
  std::vector<MessageTimes> outside_;
  // For each entry, the first one of the same pool.
  std::vector<std::size_t> first_of_pool_;
};

// The costs of the plans of one cut, one plan after the other. It keeps those that neighbours
// share.
class StageCostCache {
 public:
  StageCostCache(const CutContext& cut, ScheduleProfiles& schedules);

  // The memory that the plan needs.
  Bytes memory(const Plan& plan);
  // The same, with what the stages on each pool need.
  const StageMemory& memory_of_pools() const { return costs_.memory; }
  // The costs of the plan that memory() was asked for last. They are valid until the next plan.
  const StageCosts& costs();

 private:
  // What ZeRO and the optimizer decide of a run of like stages, as far as it is known.
  struct RunStates {
    std::optional<double> bytes;
    std::optional<StateCost> cost;
  };

  PlanContext context() const;
  void cut_pipeline(const Plan& plan);

  CutContext cut_;
  ScheduleProfiles& schedules_;
  StageMessages messages_;
  // For each pool, the known chunks by chunk_key(). The key of sharded chunks also has the size of
  // the shard groups; they are kept while the ranks of plans lie alike.
  std::vector<ChunkCostsByKey> chunks_, sharded_chunks_;
  Plan plan_;
  PipelineLayout layout_;
  std::vector<ActivationPeak> peaks_;
  // True if the pipeline of the plan is timed.
  bool timed_ = false;
  // By ZeRO stage and run.
  std::array<std::vector<RunStates>, 4> states_;
  StageCosts costs_;
};

}  // namespace shardwright::sim
