// What the stages of one plan cost, from the costs of its layers: the ground of the analytic rung,
// of the bound, and of the memory that a plan needs.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/base/units.hpp"
#include "core/lowering/shard_shape.hpp"
#include "sim/step/layer_costs.hpp"
#include "sim/step/message_times.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/schedule_profile.hpp"

namespace shardwright::sim {

// One part of the model as a pipeline cuts it: the layers of a model chunk, with the embedding or
// the head at the ends.
struct ChunkCost {
  std::array<BlockCost, kSlotCosts> slot;
  PartParameters parameters;
  double copy_time = 0.0;  // of activations to the host and back
  // FSDP, by slot: its reductions go on for so long after it, and the next slot's gathers wait.
  std::array<double, kSlotCosts> reducing{};

  const BlockCost& of(SlotCost which) const { return slot[static_cast<std::size_t>(which)]; }
};

// Gradient reduction and parameter gathers of one stage, in seconds.
struct DataParallelCost {
  double reduce = 0.0;       // all messages of the last microbatch
  double step_reduce = 0.0;  // at least, all messages of the step
  double last_reduce = 0.0;  // the message after the last backward
  // From the start of the last backward slot to the end of the last message, where messages may
  // only begin as the slot fills their buckets.
  double reduce_from_last_slot = 0.0;
  double first_gather = 0.0;   // before the first forward can begin …
  double early_gathers = 0.0;  // … and before it can end
  double late_gathers = 0.0;   // after the optimizer, where nothing hides them
  // Likely, all messages of the step, and how much later those of the last microbatch end than its
  // last slot.
  double likely_reduce = 0.0;
  double likely_tail = 0.0;
  double before_gradients = 0.0;  // slots of the stage before the first that completes a gradient
  double trailing_reduce = 0.0;   // messages of the weight gradients after the last gradient
};

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
  double copies = 0.0;  // adding up gradients over tensor-parallel ranks and mirrored stages
  double norm = 0.0;    // of the gradients
  double optimizer = 0.0;

  // Takes over what ZeRO and the optimizer decide.
  void take_states_of(const StageCost& other) {
    data = other.data;
    copies = other.copies;
    norm = other.norm;
    optimizer = other.optimizer;
  }
};

// When a stage's slots begin and end, as stage_paths.hpp has it. Seconds from the start of the
// step.
struct StagePath {
  double filled = 0.0;            // its first slot begins
  double returned = 0.0;          // its first gradient comes back
  double slots_end = 0.0;         // its slots are through
  double drain = 0.0;             // from its last gradient to that of the first stage
  double trailing_weights = 0.0;  // weight gradients after its last gradient
  double rounds_drained = 0.0;    // the first stage has the last gradient, of rounds
};

struct StageCosts {
  const ScheduleProfile* profile = nullptr;
  std::vector<const ChunkCost*> chunks;  // in forward order
  // Of the stages at both ends of each run of like ones, in pipeline order. From one stage of a run
  // to the next the paths of stage_paths.hpp change by equal steps, so that none inside decides.
  std::vector<StageCost> stages;
  std::vector<StagePath> paths;  // of these
  // By position, with one more at the end: from the start of a microbatch's way to its arrival
  // there, and from the end of its gradient there to the end of the way back.
  std::vector<double> forward_chain, gradient_chain;
  // By position: until the gradient of the first microbatch has come back there.
  std::vector<double> gradient_arrival;
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
  Bytes memory;              // the highest peak of all stages: that of memory_replay.hpp
  std::int32_t fullest = 0;  // the stage that has it

  const ChunkCost& chunk(std::size_t position) const { return *chunks[position]; }
  const StageProfile& profile_of(std::size_t i) const { return profile->stages[stages[i].stage]; }
};

// Of one quantity, over all stages of the pipeline.
double mean_over_stages(const StageCosts& costs, double StageCost::*quantity);

// True if both split the layers to chunks alike.
bool splits_alike(const Plan& a, const Plan& b);

// Costs plans that cut layers alike, one after the other. Keeps what neighbouring plans share.
class StageCoster {
 public:
  // Everything referred to outlives the coster.
  StageCoster(const ModelSpec& model, const ClusterSpec& cluster, const StackSpec& stack,
              ScheduleProfiles& profiles)
      : model_(model),
        cluster_(cluster),
        stack_(stack),
        profiles_(profiles),
        messages_(cluster, stack) {}

  // The costs stay valid until the next call. `layers` are those of the plan's cut, the same at
  // each call.
  const StageCosts& cost(const LayerCosts& layers, const Plan& plan);

  // The same in two steps: what the plan needs, and for plans that fit, what they take. `times` is
  // for the plan that `memory` was asked for last.
  Bytes memory(const LayerCosts& layers, const Plan& plan);
  const StageCosts& times(const LayerCosts& layers, const Plan& plan);

 private:
  // One microbatch in one chunk: forward and backward pass.
  struct Passage {
    double forward, forward_passing, backward, backward_passing;
    double compute, launch, interference, stalled, sharding;

    double forward_exposed() const { return forward - forward_passing; }
    double backward_exposed() const { return backward - backward_passing; }
  };
  // The most that a run of like stages holds of activations, and the stage of the run that does.
  struct HeldPeak {
    std::size_t stage;
    double bytes;
  };
  // The first or the last stage of a run of like ones, and how many of it it stands for.
  struct StageEnd {
    std::size_t stage;
    std::int64_t like;
  };
  // What the time of a slot counts in.
  struct SlotWaits {
    bool gathers = false;  // FSDP's, beside the copies of offloaded activations
    bool begun = false;    // those of the slot's first part are through before it
    double copied = 0.0;   // until then the copies of the slot before run
  };
  // What ZeRO and the optimizer make of the parameters of a stage, whatever is recomputed. Seconds.
  struct StageStates {
    double first_gather = 0.0, early_gathers = 0.0, late_gathers = 0.0;
    double copies = 0.0, norm = 0.0, optimizer = 0.0;
  };
  // Those of the stages of one split, by kind of stage, as far as they are known.
  struct KnownStates {
    std::vector<std::optional<double>> bytes;  // held from step to step
    std::vector<std::optional<StageStates>> times;
  };

  bool differs_only_in_states(const Plan& plan);
  bool differs_only_in_recomputation(const Plan& plan);
  void begin_pipeline(const LayerCosts& layers, const Plan& plan);
  void time_pipeline(const LayerCosts& layers, const Plan& plan);
  KnownStates& known_states(const Plan& plan);
  void forget_states();
  void split(const LayerCosts& layers, const Plan& plan);
  void find_chunks(const LayerCosts& layers, const Plan& plan);
  std::uint64_t chunk_key(const LayerCosts& layers, const Plan& plan, std::size_t position) const;
  const ChunkCost* known_chunk(const LayerCosts& layers, const Plan& plan, std::size_t position);
  void shard_chunks(const LayerCosts& layers, const Plan& plan);
  ChunkCost sharded(ChunkCost chunk, const LayerCosts& layers, const Plan& plan,
                    std::size_t position);
  void find_passages();
  void time_list();
  void find_nominal_times();
  void find_copy_waits(const LayerCosts& layers, const Plan& plan);
  bool are_alike(const LayerCosts& layers, std::size_t a, std::size_t b) const;
  bool is_like_before(std::size_t stage) const;
  void number_stages();
  void chain_chunks();
  double from_message(SlotCost which, std::size_t position) const;
  double forwards_before_gradient() const;
  ChunkCost chunk_cost(const LayerCosts& layers, const Plan& plan, std::size_t position);
  void list_parts(const LayerCosts& layers, const Plan& plan, std::size_t position);
  bool issues_none_ahead(SlotCost which, std::size_t position) const;
  void wait_for_launches(SlotCost which, BlockCost& cost) const;
  BlockCost slot_cost(SlotCost which, const Plan& plan) const;
  bool offloads(std::size_t i) const;
  double offloaded_bytes(std::size_t i) const;
  BlockCost copies_before(SlotCost which, std::size_t i) const;
  BlockCost copies_after(SlotCost which, std::size_t i) const;
  BlockCost copy_cost(double bytes) const;
  const PartCost& part_at(SlotCost which, std::size_t i) const;
  double slot_time(SlotCost which, const Plan& plan, SlotWaits waits);
  void gather_ahead(SlotCost which, const Plan& plan, std::size_t i, double computed,
                    double& gathered);
  double copy_wait(const Plan& plan);
  double copy_wait(const Plan& plan, std::initializer_list<SlotCost> slots);
  void store_before(std::size_t i, double before, double& copied);
  void fetch_ahead(SlotCost which, std::size_t i, double computed, double& copied);
  double gather_time(const PartCost& part, const Plan& plan);
  double reduce_behind(const PartCost& part, const Plan& plan, double computed, double& gathered);
  bool ends_run(std::size_t i) const;
  StageCost slots_cost(std::size_t stage) const;
  double sending_of(std::size_t position) const;
  void add_warmup(StageCost& cost) const;
  const StageStates& states_times(const LayerCosts& layers, const Plan& plan, std::size_t stage);
  StageStates time_states(const LayerCosts& layers, const Plan& plan, std::size_t stage);
  void add_update(const PartParameters& parameters, const Plan& plan, StageStates& states) const;
  Passage passage_of(const ChunkCost& chunk) const;
  double find_completions(std::size_t stage);
  PartParameters chunk_parameters(std::size_t stage) const;
  bool copies_embedding(const Plan& plan, std::size_t stage) const;
  PartParameters stage_parameters(const LayerCosts& layers, const Plan& plan,
                                  std::size_t stage) const;
  double copies_time(const PartParameters& parameters, const Plan& plan);
  DataParallelCost reduce_in_buckets(const LayerCosts& layers, const Plan& plan, std::size_t stage);
  void gather_parameters(const LayerCosts& layers, const Plan& plan, std::size_t stage,
                         StageStates& states);
  double scatter_time(double dense, double expert);
  double reduce_time(double dense, double expert, const Plan& plan);
  double over_parameters(OpKind kind, const Work& work, const Plan& plan) const;
  double placeholders(const LayerCosts& layers, const Plan& plan, std::size_t stage) const;
  double states_bytes(const LayerCosts& layers, const Plan& plan, std::size_t stage);
  double sum_states(const LayerCosts& layers, const Plan& plan, std::size_t stage) const;
  double held_peak(const StageProfile& profile);
  bool has_like_chunks(const StageProfile& profile) const;
  double held_peak_of_like_chunks(const StageProfile& profile) const;
  void find_held_peaks();
  void find_peak(const LayerCosts& layers, const Plan& plan);

  const ModelSpec& model_;
  const ClusterSpec& cluster_;
  const StackSpec& stack_;
  ScheduleProfiles& profiles_;
  StageCosts costs_;
  std::optional<Plan> before_;  // the plan that was asked for last
  bool timed_ = false;          // its pipeline is
  std::vector<LayerRange> ranges_;
  // By chunk_key; those of sharded ones are forgotten as ranks come to lie otherwise.
  std::unordered_map<std::uint64_t, ChunkCost> chunks_, sharded_chunks_;
  std::vector<const PartCost*> parts_;  // of the chunk at hand, in forward order
  std::size_t last_layer_ = 0;          // of these; beyond them if there is no layer
  bool offloads_ = false;               // activations of these
  std::vector<double> ready_;  // by part of the slot at hand: gathers and copies are through
  double copying_ = 0.0;       // copies go on for so long after the slot at hand
  double gathering_ = 0.0;     // all gathers of the slot at hand
  double reducing_ = 0.0;      // its reductions go on for so long after it
  const PartCost* gathered_part_ = nullptr;       // the one of the slot at hand gathered last …
  const PartCost* reduced_part_ = nullptr;        // … and reduced last
  double gather_time_ = 0.0, reduce_time_ = 0.0;  // of these
  NominalTimes nominal_;                          // of the plan at hand
  std::vector<Passage> passages_;                 // by position
  std::vector<double> copy_waits_;                // of one microbatch, by position
  std::vector<double> from_completion_;           // by chunk of the stage at hand
  std::vector<std::size_t> chunk_kind_;  // by position: the first chunk of a run of like ones
  std::vector<std::size_t> stage_kind_;  // by stage: its number among runs of like stages
  std::vector<StageEnd> ends_;           // of these runs
  std::vector<HeldPeak> held_peaks_;
  std::vector<double> forwarded_, half_done_;  // by chunk of the stage at hand: held bytes
  MessageTimes messages_;
  std::int64_t ranks_ = 0;  // of the plan that was timed last …
  double slowest_ = 1.0;    // … and how much longer the slowest of them takes
  // By ZeRO stage and place of the optimizer.
  std::array<KnownStates, std::size_t{4} * kOptimizerOffloads> known_states_;
};

}  // namespace shardwright::sim
