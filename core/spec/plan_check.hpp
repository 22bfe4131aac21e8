// The rules of divisibility and shape by which a plan fits a model and a cluster.
//
// One table of rules serves the check of plan files, with a text for each broken rule, and the
// search, which asks millions of times and only counts. The rules do not look at the memory of
// devices.
//
// Allowed on purpose: vocabularies that tp does not divide (they are padded), ZeRO-2 and ZeRO-3
// with pipeline parallelism (PyTorch's FSDP runs it by keeping gradients, or gathering parameters,
// per microbatch; the capabilities of a stack exclude it where its framework does not), more ZeRO
// ranks than a node has accelerators, tp across nodes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// Limits of a plan's numbers, wide enough for any machine that will be built and narrow enough that
// their products (ranks, tokens of a batch) fit in 64 bits.
inline constexpr std::int64_t kMaxDegree = 1'000'000;
inline constexpr std::int64_t kMaxWorld = 10'000'000;
inline constexpr std::int64_t kMaxBatch = 1'000'000'000;
inline constexpr std::int64_t kMaxSeqLen = 1'000'000'000;
inline constexpr std::int64_t kMaxLoraRank = 65'536;
inline constexpr std::int64_t kMaxInnerSteps = 1'000'000;
inline constexpr std::int64_t kMaxStaleness = 1'000'000;

// An integer of a plan: its key in files, and its range.
struct PlanNumber {
  const char* key;
  std::int64_t Plan::*member;
  std::int64_t least, most;
};
inline constexpr std::array kPlanNumbers = {
    PlanNumber{"dp", &Plan::dp, 1, kMaxDegree},
    PlanNumber{"tp", &Plan::tp, 1, kMaxDegree},
    PlanNumber{"pp", &Plan::pp, 1, kMaxDegree},
    PlanNumber{"cp", &Plan::cp, 1, kMaxDegree},
    PlanNumber{"ep", &Plan::ep, 1, kMaxDegree},
    PlanNumber{"expert_tp", &Plan::expert_tp, 1, kMaxDegree},
    PlanNumber{"vpp", &Plan::vpp, 1, kMaxDegree},
    PlanNumber{"micro_batch", &Plan::micro_batch, 1, kMaxBatch},
    PlanNumber{"global_batch", &Plan::global_batch, 1, kMaxBatch},
    PlanNumber{"seq_len", &Plan::seq_len, 1, kMaxSeqLen},
    PlanNumber{"shard_group", &Plan::shard_group, 0, kMaxWorld},
    PlanNumber{"recompute_layers", &Plan::recompute_layers, 0, kMaxDegree},
    PlanNumber{"recompute_interval", &Plan::recompute_interval, 1, kMaxDegree},
    PlanNumber{"recompute_group", &Plan::recompute_group, 1, kMaxDegree},
    PlanNumber{"offload_layers", &Plan::offload_layers, 0, kMaxDegree}};

constexpr const PlanNumber& plan_number(std::int64_t Plan::*member) {
  std::size_t i = 0;
  while (kPlanNumbers[i].member != member) ++i;
  return kPlanNumbers[i];
}

// The most layers x microbatches of a step. The event simulation replays each of them, at about a
// kilobyte: far more than any published run has, and a second's work.
inline constexpr std::int64_t kMostMicrobatchLayers = 1'000'000;

// True if dp * tp * pp * cp is at most kMaxWorld; does not overflow.
bool world_size_in_range(const Plan& plan);

// The rules in the order in which they are tried: a plan is counted under the first that it breaks.
enum class PlanRule : std::uint8_t {
  Range,              // every number within the limits above
  WorldSize,          // dp * tp * pp * cp is the number of accelerators asked for
  ClusterSize,        // the cluster has as many accelerators
  Precision,          // the accelerator multiplies in the plan's format
  Heads,              // heads % tp
  KvHeads,            // kv_heads % tp, or tp % kv_heads where they are replicated
  FfnHidden,          // width of dense feed-forward blocks and of shared experts % tp
  ExpertParallel,     // only with experts
  Experts,            // experts % ep
  ExpertFfn,          // width of one expert % expert_tp
  ExpertGroups,       // dp * cp * tp % (ep * expert_tp)
  ContextParallel,    // seq_len % (2 * cp): causal halves are paired; Ulysses: seq_len % cp
  UlyssesHeads,       // Ulysses also splits the heads of a tensor-parallel rank over cp
  SequenceParallel,   // seq_len / cp % tp
  Positions,          // learned position embeddings reach as far as seq_len
  GlobalBatch,        // global_batch % (dp * micro_batch), or what replica_pools add up to
  StepSize,           // layers * microbatches at most kMostMicrobatchLayers
  VirtualStages,      // vpp is what the schedule runs
  ScheduleShape,      // the schedule runs this many stages and microbatches
  Layers,             // enough layers for an even split over pp * vpp chunks
  StageLayers,        // stage_layers: pp * vpp numbers that add up to the layers
  StagePools,         // stage_pools: pools of the cluster, one per stage, that hold their ranks
  ReplicaPools,       // replica_pools: pools that hold their replicas, which are dp together
  RecomputeModules,   // only with selective recomputation, and modules that the model has
  RecomputeLayers,    // only with full recomputation, and no more than the layers
  StageRecompute,     // stage_recompute_layers: pp numbers, beside full recomputation alone
  RecomputePattern,   // intervals or groups only with full recomputation, one or the other
  ZeroStage,          // 0 to 3
  ShardGroup,         // divides dp * cp and nests with them; only where something is sharded
  DataParallel,       // local steps and compression only between whole replicas
  RankOrder,          // each axis once; the pipeline axis cuts no group of experts unevenly
  ExpertOverlap,      // only where the exchange of tokens has something to hide behind
  ActivationOffload,  // only of activations that are kept: not with full recomputation; of modules
                      // that the model has and that do not run again
  OptimizerStates,    // of fewer bits only on the device; pure ones only with 16-bit weights
  OptimizerOffload,   // the host has the memory for the states, or disks
  Lora,               // adapters of projections that the model has, and no narrower than they
  Stack,              // the stack's capabilities; only where a stack is given
};

// Multi-token-prediction layers that the plan trains: all that the model has, or none, as with
// adapters.
std::int64_t trained_mtp_layers(const ModelSpec& model, const Plan& plan);

// True if the output head (tied to it) or the multi-token-prediction layers (which embed the next
// token) use the embedding: a last stage that is not the first one then holds a copy of it, and the
// two add up their gradients.
bool shares_embedding(const ModelSpec& model, const Plan& plan);

// True if these two stages add up the gradients themselves. Parameter servers do it for them.
inline bool ties_embedding_gradients(const ModelSpec& model, const Plan& plan) {
  return !plan.replicas.has_servers() && shares_embedding(model, plan);
}

// The bytes that an offloaded optimizer keeps off the devices, on all nodes together.
Bytes offloaded_states(const ModelSpec& model, const Plan& plan);

// The modules that the layers of the model have.
RecomputeModuleSet recomputable_modules(const ModelSpec& model);

// The modules that the layers of the model have.
OffloadModuleSet offloadable_modules(const ModelSpec& model);

// "world_size", "kv_heads", …: for counts and tables.
const char* name_of(PlanRule rule);

// All rules, in order.
std::vector<PlanRule> all_plan_rules();

// The first rule that the plan breaks. Takes tens of nanoseconds and allocates nothing, but for
// plans that offload the optimizer, whose states are counted.
// `accelerators`: that the plan has to use; 0: any number. `stack`: null if it may run any plan.
std::optional<PlanRule> first_broken_rule(const ModelSpec& model, const ClusterSpec& cluster,
                                          const Plan& plan, std::int64_t accelerators = 0,
                                          const StackSpec* stack = nullptr);

struct BrokenRule {
  PlanRule rule;
  Problem problem;
};

// Every rule that the plan breaks, with what was found and expected. `cluster` may be null: its
// rules are skipped. `pointer`: JSON pointer of the plan in its file. After a number out of range
// nothing else is looked at.
std::vector<BrokenRule> broken_rules(const ModelSpec& model, const ClusterSpec* cluster,
                                     const Plan& plan, std::int64_t accelerators = 0,
                                     const std::string& pointer = "");

// Returns a sentence for each choice of the plan that the stack's profile does not list as
// supported; empty if the stack runs the plan. A search proposes no such plan; a simulation of one
// predicts what it would take on the same kernels.
std::vector<std::string> unsupported_by(const StackSpec& stack, const ModelSpec& model,
                                        const Plan& plan);

// Returns what the stack's framework lacks to train such adapters of the model, as the end of a
// sentence that begins with the stack's name: "trains no adapters …". Empty if it trains them.
std::string adapters_refused_by(const StackSpec& stack, const ModelSpec& model, const Lora& lora);

// The layers fewer that the first and the last chunk of a split have under
// LayerSplits::FewerAtEnds; none if it is no such split.
struct FewerLayers {
  std::int64_t first = 0, last = 0;

  bool operator==(const FewerLayers&) const = default;
};
std::optional<FewerLayers> fewer_layers_at_ends(const ModelSpec& model, const Plan& plan);

// The overlap of a plan that does not say otherwise: what the stack can hide, it hides, which never
// makes a step longer.
OverlapSwitches usual_overlap(const StackSpec& stack, const ModelSpec& model);

}  // namespace shardwright
