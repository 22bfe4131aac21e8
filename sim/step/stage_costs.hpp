// What the stages of one plan cost, from the costs of its layers: the ground of the analytic level,
// of the bound, and of the memory that a plan needs.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/units.hpp"
#include "sim/step/chunk_costs.hpp"
#include "sim/step/data_parallel_cost.hpp"
#include "sim/step/message_times.hpp"
#include "sim/step/schedule_profile.hpp"
#include "sim/step/stage_memory.hpp"

namespace shardwright::sim {

// One microbatch in one chunk: forward and backward pass, as the schedule cuts the latter.
struct Passage {
  double forward, forward_passing, backward, backward_passing;
  double compute, launch, interference, stalled, sharding;

  double forward_exposed() const { return forward - forward_passing; }
  double backward_exposed() const { return backward - backward_passing; }
};
Passage passage_of(const ChunkCost& chunk, const ScheduleProfile& profile);

struct StageCost {
  std::size_t stage = 0;          // its number in the pipeline
  std::int64_t like = 1;          // stages that it stands for
  double busy = 0.0;              // of all slots of the step
  double compute = 0.0;           // of this, kernels on the compute stream
  double first_exposed = 0.0;     // of `busy`: gathers that may be through before the first slot
  double launch = 0.0;            // of the host, for all slots
  double warmup = 0.0;            // of `busy`, at most: slots before the first gradient comes back
  double warmup_launch = 0.0;     // of `launch`: slots before the first gradient comes back
  double gradient_exposed = 0.0;  // of `busy`: gathers that may be through before it comes back
  double interference = 0.0;      // likely, that collectives of its blocks cost their kernels
  double stalled = 0.0;           // of `busy`, as BlockCost has it
  double sharding = 0.0;          // FSDP: at least, while gathers or reductions run
  double offload = 0.0;           // copies of activations, one after the other
  double copy_wait = 0.0;  // likely, beyond `busy`: slots that wait for copies and reductions of
                           // slots before
  DataParallelCost data;
  StateCost states;
};

// When a stage's slots begin and end. Seconds from the start of the step.
struct StagePath {
  double filled = 0.0;    // its first slot begins: a microbatch has passed the stages before
  double returned = 0.0;  // its first gradient comes back
  // Its slots are through and, where sends block, their messages: they follow each other from the
  // first one on, and from the first one that a gradient comes back for.
  double slots_end = 0.0;
  double drain = 0.0;             // from its last gradient to that of the first stage
  double trailing_weights = 0.0;  // weight gradients after its last gradient
  // The first stage has the last gradient, of rounds: a stage with one chunk of which w
  // microbatches are in flight starts a forward only after the gradient of w microbatches before
  // has come back from the stages behind it. 0 where stages have several chunks.
  double rounds_drained = 0.0;
};

// By position in forward order, with one more at the end where a chain leads to the end.
struct PipelineChains {
  // From the start of a microbatch's way to its arrival, and from the end of its gradient to the
  // end of the way back.
  std::vector<double> forward, gradient;
  // Until the gradient of the first microbatch has come back.
  std::vector<double> arrival;
};

struct StageCosts {
  const ScheduleProfile* profile = nullptr;
  ChunkCosts chunks;
  // Of the stages at both ends of each run of like ones, in pipeline order. From one stage of a run
  // to the next the paths change by equal steps, so that none inside decides.
  std::vector<StageCost> stages;
  std::vector<StagePath> paths;  // of these
  PipelineChains chains;
  double listed = 0.0;  // likely, the slots in the order of the schedule's list; 0: not timed so
  double microbatches = 0.0;
  double slowdown = 0.0;     // of kernels beside collectives
  double message = 0.0;      // one pipeline message …
  double gather = 0.0;       // … and the gather after it, where each rank receives a part
  bool sharded = false;      // its parameters are gathered before use
  bool blocking = false;     // a stage waits for its messages to be sent
  bool host_waits = false;   // its host waits for them to arrive
  double tie = 0.0;          // all-reduce of a tied embedding's gradient
  double norm_reduce = 0.0;  // all-reduce of the gradient norm
  StageMemory memory;

  const ChunkCost& chunk(std::size_t position) const { return *chunks[position]; }
  const StageProfile& profile_of(std::size_t i) const { return profile->stages[stages[i].stage]; }
};

// Of one quantity, over all stages of the pipeline.
double mean_over_stages(const StageCosts& costs, double StageCost::*quantity);

// What the plans of one cut cost. Everything referred to outlives it.
struct CutContext {
  const ModelSpec& model;
  const ClusterSpec& cluster;
  const StackSpec& stack;
  const LayerCosts& layers;
};

// What neighbouring plans of one cut share, kept from one plan to the next. It serves one
// CutContext.
struct StageCostCache {
  // What ZeRO and the optimizer decide, by run of like stages, as far as it is known.
  struct States {
    std::vector<std::optional<double>> bytes;
    std::vector<std::optional<StateCost>> costs;
  };

  // Both outlive the cache.
  StageCostCache(const ClusterSpec& cluster, const StackSpec& stack, ScheduleProfiles& schedules)
      : profiles(schedules), messages(cluster, stack) {}

  ScheduleProfiles& profiles;
  MessageTimes messages;
  std::optional<Plan> plan;  // the one that was asked for last
  bool timed = false;        // its pipeline is
  PipelineLayout layout;
  // By chunk_key(), and the place of shard groups for sharded ones.
  std::unordered_map<std::uint64_t, ChunkCost> chunks, sharded_chunks;
  std::vector<ActivationPeak> peaks;
  // By ZeRO stage and place of the optimizer.
  std::array<EnumArray<OptimizerOffload, States>, 4> states;
  std::int64_t ranks = 0;  // of the plan that was timed last …
  double slowest = 1.0;    // … and how much longer the slowest of them takes
  StageCosts costs;
};

// What the plan needs, and for plans that fit, what they take. `stage_costs` is for the plan that
// `plan_memory` was asked for last; its value stays valid until the next call.
Bytes plan_memory(const CutContext& cut, const Plan& plan, StageCostCache& cache);
const StageCosts& stage_costs(const CutContext& cut, const Plan& plan, StageCostCache& cache);

}  // namespace shardwright::sim
