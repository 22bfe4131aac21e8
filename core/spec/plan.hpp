// A plan: the distribution of one training step of a model over a cluster. The meanings of the
// fields stand in the table for files, in plan_json.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/enum_set.hpp"
#include "core/schedule/schedule_kind.hpp"
#include "core/spec/precision.hpp"

namespace shardwright {

enum class RecomputePolicy : std::uint8_t {
  None,
  // The backward pass runs some modules of each layer again: `recompute_modules`.
  Selective,
  // Each layer keeps only its input.
  Full,
  // The backward pass runs each layer again but for its attention kernels and every other matrix
  // product, whose outputs are kept: torchtitan's selective activation checkpointing.
  PerOp,
};
constexpr auto enum_names(RecomputePolicy) {
  return std::array{"none", "selective", "full", "per-op"};
}

// The modules that selective recomputation may cover: those of Megatron Core's --recompute-modules,
// and the activation function of dense blocks (Megatron-Kwai, USENIX ATC 2024).
enum class RecomputeModule : std::uint8_t {
  CoreAttention,    // scores, softmax and context, or the fused kernel (arXiv 2205.05198)
  MoeActivation,    // the activation function of routed experts
  LayerNorm,        // norms before attention and feed-forward, but those inside of projections
  MlaUpProjection,  // MLA's projections up, with their norms and the encoding of positions
  Mlp,              // dense feed-forward blocks
  Moe,              // router, exchanges, routed and shared experts
  SharedExperts,
  MlpActivation,
};
constexpr auto enum_names(RecomputeModule) {
  return std::array{"core_attn", "moe_act", "layernorm",      "mla_up_proj",
                    "mlp",       "moe",     "shared_experts", "mlp_act"};
}
using RecomputeModuleSet = EnumSet<RecomputeModule>;

// The modules whose inputs alone may wait on the host: those of Megatron Core's --offload-modules
// that are no input of a layer and need no fused experts.
enum class OffloadModule : std::uint8_t {
  QkvLinear,            // the projections of queries, keys and values, with MLA's bottlenecks
  CoreAttention,        // scores, softmax and context, or the fused kernel
  AttentionProjection,  // the output projection of attention
  MlpNorm,              // the norm before feed-forward blocks, but one inside of a projection
  ExpertFc1,            // the first projection of routed experts
  MoeActivation,        // their activation function
};
constexpr auto enum_names(OffloadModule) {
  return std::array{"qkv_linear", "core_attn", "attn_proj", "mlp_norm", "expert_fc1", "moe_act"};
}
using OffloadModuleSet = EnumSet<OffloadModule>;

// The way in which context parallelism moves keys and values.
enum class ContextParallelKind : std::uint8_t {
  Ring,       // key/value blocks are passed along a ring beside the attention of the block at hand
  AllGather,  // keys and values are gathered first
  Ulysses,    // all-to-all between sequence and heads
};
constexpr auto enum_names(ContextParallelKind) {
  return std::array{"ring", "all-gather", "ulysses"};
}

// The memory that holds the optimizer's states. Off the device the host does the step: gradients
// travel to it, weights back. From NVMe the states pass through the host's memory (ZeRO-Infinity,
// arXiv 2104.07857, 5).
enum class OptimizerOffload : std::uint8_t { None, Host, Nvme };
constexpr auto enum_names(OptimizerOffload) {
  return std::array{"none", "host", "nvme"};
}

// What Adam keeps of each parameter beside its weight. Only the pure ones change anything but the
// moments.
enum class OptimizerStates : std::uint8_t {
  OfStack,           // as the stack's profile says
  Fp32,              // moments in fp32
  Bf16,              // moments in bf16
  EightBit,          // moments in 8 bits (arXiv 2110.02861)
  PureBf16,          // no master weights; moments and gradients in bf16, as the weights
  PureBf16EightBit,  // the same with moments in 8 bits
};
constexpr auto enum_names(OptimizerStates) {
  return std::array{"of-stack", "fp32", "bf16", "8-bit", "pure-bf16", "pure-bf16-8-bit"};
}

// True if a plan asks for moments of fewer bits than fp32.
constexpr bool is_narrow(OptimizerStates states) {
  return states != OptimizerStates::OfStack && states != OptimizerStates::Fp32;
}

// True if no state of the optimizer is more exact than the weights.
constexpr bool is_pure(OptimizerStates states) {
  return states == OptimizerStates::PureBf16 || states == OptimizerStates::PureBf16EightBit;
}

// Bytes of a parameter's states there: its master copy and both moments in fp32.
inline constexpr double kHostStateBytes = 12.0;

// The projections that low-rank adapters are added to. MLA's queries, and its keys and values, take
// those of `Q`, and of `K` or `V`, at both ends of their bottleneck.
enum class LoraTarget : std::uint8_t { Q, K, V, O, Gate, Up, Down };
constexpr auto enum_names(LoraTarget) {
  return std::array{"q", "k", "v", "o", "gate", "up", "down"};
}
using LoraTargetSet = EnumSet<LoraTarget>;

// The format in which the frozen weights of a layer's projections lie in memory.
enum class FrozenFormat : std::uint8_t {
  Plain,  // that of all weights
  Nf4,    // 4 bits, converted before each product (QLoRA, arXiv 2305.14314)
};
constexpr auto enum_names(FrozenFormat) {
  return std::array{"plain", "nf4"};
}

// Low-rank fine-tuning (LoRA, arXiv 2106.09685).
struct Lora {
  std::int64_t rank = 16;
  double alpha = 32.0;
  LoraTargetSet targets;
  bool joint = false;
  FrozenFormat base = FrozenFormat::Plain;

  bool operator==(const Lora&) const = default;
};

// The way in which the replicas of a model agree on its parameters.
enum class ReplicaSync : std::uint8_t {
  AllReduce,        // each step applies the gradients of all replicas
  LocalSteps,       // each replica makes steps of its own; every so many they agree on the outcome
  ParameterServer,  // servers hold the parameters; replicas push gradients to them and pull parameters
};
constexpr auto enum_names(ReplicaSync) {
  return std::array{"all-reduce", "local-steps", "parameter-server"};
}

// The nodes that run parameter servers.
enum class ServerPlace : std::uint8_t {
  Colocated,  // those of the workers
  Dedicated,  // nodes of the cluster beside those of the workers
};
constexpr auto enum_names(ServerPlace) {
  return std::array{"colocated", "dedicated"};
}

// The time at which parameter servers apply gradients.
enum class ServerUpdates : std::uint8_t {
  Synchronous,       // once in a step, the sum of all replicas
  BoundedStaleness,  // as each replica pushes; none runs further ahead than so many steps (SSP)
  Asynchronous,      // as each replica pushes; none waits for another
};
constexpr auto enum_names(ServerUpdates) {
  return std::array{"synchronous", "bounded-staleness", "asynchronous"};
}

// What replicas do with the outcome of their local steps.
enum class OuterOptimizer : std::uint8_t {
  Average,  // take the mean of the parameters (local SGD, arXiv 1805.09767)
  Nesterov,  // take their mean change as the gradient of an outer optimizer (DiLoCo, arXiv 2311.08105)
};
constexpr auto enum_names(OuterOptimizer) {
  return std::array{"average", "nesterov"};
}

// The layers of a stage that the fragments of local steps hold (arXiv 2501.18512).
enum class FragmentOrder : std::uint8_t {
  Sequential,  // neighbouring layers
  Strided,     // layers at equal distances
};
constexpr auto enum_names(FragmentOrder) {
  return std::array{"sequential", "strided"};
}

// The form in which replicas send gradients, or the outcome of local steps.
enum class ReplicaCompression : std::uint8_t {
  None,
  Bf16,
  Fp16,
  Int8,      // 8 bits, with a scale for each block of elements
  Fp8,       // E4M3 (arXiv 2209.05433), with a scale for each block of elements
  Fp4,       // E3M0, 4 bits (arXiv 2501.18512), with a scale for each block of elements
  OneBit,    // signs, with a scale for each block and error feedback (arXiv 1901.09847)
  TopK,      // the largest elements, with error feedback (arXiv 1712.01887)
  PowerSgd,  // the product of two thin matrices, with error feedback (arXiv 1905.13727)
};
constexpr auto enum_names(ReplicaCompression) {
  return std::array{"none", "bf16", "fp16", "int8", "fp8", "fp4", "1bit", "topk", "powersgd"};
}

struct ReplicaAgreement {
  ReplicaSync sync = ReplicaSync::AllReduce;
  // The steps that a replica makes by itself. The outer Nesterov optimizer's learning rate and
  // momentum default to those that DiLoCo found (arXiv 2311.08105, section 3.1).
  std::int64_t inner_steps = 1;
  OuterOptimizer outer = OuterOptimizer::Average;
  double outer_learning_rate = 0.7;
  double outer_momentum = 0.9;
  // Server processes; 0: one on each node of the workers. `staleness` bounds the steps by which a
  // replica may be ahead of the slowest one.
  std::int64_t servers = 0;
  ServerPlace server_place = ServerPlace::Colocated;
  ServerUpdates server_updates = ServerUpdates::Synchronous;
  std::int64_t staleness = 0;
  ReplicaCompression compression = ReplicaCompression::None;
  // The share of elements that top-k sends, and the columns of PowerSGD's matrices.
  double topk_ratio = 0.01;
  std::int64_t powersgd_rank = 4;
  // Streaming DiLoCo: the parts of a stage's layers that are exchanged one after another, the steps
  // that a replica makes beside the exchange of one, and the weight of its own parameters when it
  // takes over the outcome.
  std::int64_t fragments = 1;
  FragmentOrder fragment_order = FragmentOrder::Sequential;
  std::int64_t overlap_steps = 0;
  double local_share = 0.0;

  bool local() const { return sync == ReplicaSync::LocalSteps; }
  bool has_servers() const { return sync == ReplicaSync::ParameterServer; }
  // True if replicas push to servers without an agreement in each step. A bound of 0 steps is one.
  bool stale() const {
    return has_servers() && (server_updates == ServerUpdates::Asynchronous ||
                             (server_updates == ServerUpdates::BoundedStaleness && staleness > 0));
  }
  bool operator==(const ReplicaAgreement&) const = default;
};

// The nesting of the rank axes, innermost first. Ranks of one group of the innermost axis are
// neighbours.
enum class Axis : std::uint8_t { Tensor, Context, Expert, Data, Pipeline };
constexpr auto enum_names(Axis) {
  return std::array{"tp", "cp", "ep", "dp", "pp"};
}

struct OverlapSwitches {
  bool grad_reduce = true;
  bool param_gather = true;
  bool tensor_parallel = false;
  bool p2p = true;
  bool expert_parallel = false;
  bool expert_microbatches = false;

  bool operator==(const OverlapSwitches&) const = default;
};

// Data-parallel replicas that lie alike on pools, and the microbatches that each of them runs in a
// step.
struct PoolReplicas {
  // The pool of all their stages; empty where `stage_pools` names one for each.
  std::string pool;
  std::int64_t replicas = 1;
  std::int64_t microbatches = 1;
  std::vector<std::string> stage_pools{};
  // The routed experts of each rank of these replicas, where groups of experts span several parts;
  // 0: all ranks hold as many.
  std::int64_t experts = 0;

  const std::string& pool_of(std::size_t stage) const {
    return stage_pools.empty() ? pool : stage_pools[stage];
  }
  bool operator==(const PoolReplicas&) const = default;
};

// Degrees are at least 1. The world has dp * tp * pp * cp ranks; experts are spread over ep of the
// dp * cp (* tp / expert_tp) ranks of a stage.
struct Plan {
  std::int64_t dp = 1;
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t cp = 1;
  std::int64_t ep = 1;
  std::int64_t expert_tp = 1;
  std::int64_t vpp = 1;
  bool sequence_parallel = true;

  int zero_stage = 1;
  std::int64_t shard_group = 0;
  ReplicaAgreement replicas;

  std::int64_t micro_batch = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 2048;

  ScheduleKind schedule = ScheduleKind::OneFOneB;
  ContextParallelKind context_parallel = ContextParallelKind::Ring;
  RecomputePolicy recompute = RecomputePolicy::None;
  RecomputeModuleSet recompute_modules;
  std::int64_t recompute_layers = 0;
  std::int64_t recompute_interval = 1;
  std::int64_t recompute_group = 1;
  Precision precision = Precision::Bf16;
  OverlapSwitches overlap;
  std::vector<Axis> rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data,
                                  Axis::Pipeline};

  std::vector<std::int64_t> stage_layers;
  std::vector<std::int64_t> stage_recompute_layers;
  std::vector<std::string> stage_pools;
  std::vector<PoolReplicas> replica_pools;
  bool embedding_counts_as_layer = false;
  bool head_counts_as_layer = false;
  OptimizerStates optimizer_states = OptimizerStates::OfStack;
  OptimizerOffload offload_optimizer = OptimizerOffload::None;
  bool offload_activations = false;
  OffloadModuleSet offload_modules;
  std::int64_t offload_layers = 0;
  double offload_ratio = 1.0;
  bool multi_token_prediction = true;
  // Without it all parameters are trained.
  std::optional<Lora> lora;

  std::int64_t world_size() const { return dp * tp * pp * cp; }
  std::int64_t chunks() const { return pp * vpp; }
  // True if the backward pass runs whole layers again, all ops of them or some.
  bool reruns_layers() const {
    return recompute == RecomputePolicy::Full || recompute == RecomputePolicy::PerOp;
  }
  // True if full recomputation covers layer number `i` of a chunk of the stage.
  bool recomputes_layer_of_chunk(std::int64_t i, std::int64_t stage) const {
    if (!stage_recompute_layers.empty())
      return i < stage_recompute_layers[static_cast<std::size_t>(stage % pp)];
    return reruns_layers() && (recompute_layers == 0 || i < recompute_layers) &&
           (i + 1) % recompute_interval == 0;
  }
  bool offloads_optimizer() const { return offload_optimizer != OptimizerOffload::None; }
  // The layers of the largest chunk if `layers` are split evenly.
  std::int64_t even_chunk(std::int64_t layers) const { return (layers + chunks() - 1) / chunks(); }
  // Microbatches that each data-parallel replica runs per step; of replicas on pools, the most.
  std::int64_t microbatches() const {
    std::int64_t most = replica_pools.empty() ? global_batch / (dp * micro_batch) : 1;
    for (const PoolReplicas& part : replica_pools) most = std::max(most, part.microbatches);
    return most;
  }

  bool operator==(const Plan&) const = default;
};

// The size of the plan's schedule.
inline ScheduleShape shape_of(const Plan& plan) {
  return {plan.pp, plan.vpp, plan.microbatches()};
}

}  // namespace shardwright
