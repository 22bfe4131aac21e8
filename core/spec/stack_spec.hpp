// A software stack: the kernels that it fuses, the overlaps, the costs of the host.
//
// The same hardware under another stack is slower or faster; published results cannot be explained
// without it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/precision.hpp"
#include "core/spec/provenance.hpp"

namespace shardwright {

// The messages into which data parallelism cuts the reduction of gradients.
enum class GradientBuckets : std::uint8_t {
  Single,     // one message after the last backward
  FixedSize,  // buckets of `bucket_elements`
  PerLayer,   // one message per layer (FSDP)
};
constexpr auto enum_names(GradientBuckets) {
  return std::array{"single", "fixed-size", "per-layer"};
}

// The parts of a sparse layer that a CUDA graph may hold: modules of Megatron Core's
// --cuda-graph-modules.
enum class GraphModule : std::uint8_t {
  Attention,  // attention or a state-space layer, with its norms
  Router,     // the router and what precedes the first permutation of tokens
};
constexpr auto enum_names(GraphModule) {
  return std::array{"attn", "moe_router"};
}

// The kernels of fused attention that stacks call.
enum class AttentionKernel : std::uint8_t {
  FlashAttention1,
  FlashAttention2,
  FlashAttention3,
  Cudnn
};
constexpr auto enum_names(AttentionKernel) {
  return std::array{"flash-attention-1", "flash-attention-2", "flash-attention-3", "cudnn"};
}

// The ops that do not run as kernels of their own.
struct StackFusion {
  bool flash_attention = true;
  bool norm = true;
  bool norm_in_projection = false;
  bool rope = true;
  bool activation = true;
  bool dropout_add = true;
  bool loss = true;
  bool parallel_loss = true;
  bool library_loss = false;
  std::int64_t loss_chunks = 1;
  bool softmax = true;
  bool optimizer = true;
  bool wgrad_accumulation = true;
  bool grouped_gemm = false;
  bool grouped_mlp = false;
  bool expert_bias = true;
  bool fp8_attention = false;
  Fp8Recipe fp8_recipe = Fp8Recipe::Delayed;
  double attention_kernel_ratio = 1.0;
  double hopper_attention_kernel_ratio = 1.0;
  double linear_attention_kernel_ratio = 0.22;
  AttentionKernel attention_kernel = AttentionKernel::FlashAttention3;

  bool operator==(const StackFusion&) const = default;
};

// Overlap that the stack is able to do. A plan may switch each off.
struct StackOverlap {
  bool grad_reduce = true;
  bool param_gather = true;
  bool tensor_parallel = false;
  bool input_gradient = true;
  bool p2p = true;
  bool expert_parallel = false;
  double tensor_parallel_share = 0.7;
  double slowdown = 0.1;
  double collective_slowdown = 0.1;
  double expert_parallel_share = 0.0;

  bool operator==(const StackOverlap&) const = default;
};

struct StackCommunication {
  double collective_ratio = 1.0;
  double all_to_all_ratio = 1.0;
  bool scatters_messages = false;
  bool sends_tokens_once_per_node = false;
  BytesPerSecond token_bandwidth;
  Seconds token_time;
  double reduction_tail = 0.4;

  bool operator==(const StackCommunication&) const = default;
};

struct StackHost {
  Seconds launch_time = microseconds(5.0);
  Seconds module_launch_time;
  bool waits_for_messages = false;
  bool reads_token_counts = false;
  std::int64_t router_launches = 0;
  bool cuda_graphs = false;
  EnumSet<GraphModule> graph_modules;
  std::int64_t prefetch_layers = 1;

  bool operator==(const StackHost&) const = default;
};

// Gradients of data parallelism.
struct StackGradients {
  GradientBuckets buckets = GradientBuckets::FixedSize;
  double bucket_elements = 40e6;
  double bucket_elements_per_replica = 0.0;
  bool fp32_reduction = true;
  bool fp32_accumulation = true;

  bool operator==(const StackGradients&) const = default;
};

// Optimizer states, and memory that no tensor of the program explains.
struct StackMemory {
  Bytes master_weight_bytes = Bytes(4);
  Bytes narrow_master_weight_bytes;
  Bytes optimizer_state_bytes = Bytes(8);
  Bytes step_gradient_bytes;
  bool keeps_half_gradients = false;
  bool reduction_buffer = false;
  Bytes context = gigabytes(1.0);
  Bytes communicator;
  double fragmentation = 0.03;
  bool gradient_placeholders = false;
  Bytes fp8_weight_bytes = Bytes(2);
  bool fp8_saved_inputs = false;
  bool fp8_expert_activations = false;
  bool dropout_mask_saved = true;

  bool operator==(const StackMemory&) const = default;
};

// The ways in which a framework splits the layers over the chunks of a pipeline.
enum class LayerSplits : std::uint8_t {
  Any,
  // Evenly, the first chunks taking the remainder, with up to kMostFewerLayers fewer in the first
  // and in the last chunk; more than two chunks of a rank follow from the layers of one
  // (torchtitan).
  FewerAtEnds,
};
constexpr auto enum_names(LayerSplits) {
  return std::array{"any", "fewer-at-ends"};
}
inline constexpr std::int64_t kMostFewerLayers = 8;

// The ZeRO stages that run where all of these axes have more than one rank; none: the axes do not
// go together.
struct AxisCombination {
  std::vector<Axis> axes;
  std::vector<int> zero_stages;

  bool operator==(const AxisCombination&) const = default;
};

// The adapters that a stack's framework trains.
struct LoraCapability {
  std::string framework;
  std::string source;
  LoraTargetSet targets;
  bool keys_with_values = false;
  bool experts = false;
  bool separate = true;
  bool joint = false;
  std::vector<FrozenFormat> base = {FrozenFormat::Plain};

  bool operator==(const LoraCapability&) const = default;
};

// The capabilities of a stack's framework besides schedules and ZeRO stages, for the search and for
// exports. Empty lists of choices mean all.
struct StackCapabilities {
  std::string framework;
  std::string source;
  std::vector<AxisCombination> combinations;
  std::vector<ContextParallelKind> context_parallel;
  std::vector<Precision> precisions;
  std::vector<OptimizerStates> optimizer_states;
  int narrow_states_zero_stage = 0;
  std::vector<OptimizerOffload> offload_optimizer;
  std::vector<Axis> within_shard_group;
  LayerSplits layer_splits = LayerSplits::Any;
  std::vector<ReplicaSync> sync = {ReplicaSync::AllReduce};
  std::vector<ReplicaCompression> compression = {ReplicaCompression::None};
  bool sequence_parallel = true;
  bool hybrid_sharding = true;
  bool expert_tensor_parallel = true;
  bool partial_recompute = true;
  bool recompute_interval = true;
  bool recompute_group = true;
  bool recompute_by_stage = false;
  RecomputeModuleSet recompute_modules = {RecomputeModule::CoreAttention};
  RecomputeModuleSet selective_recompute = {RecomputeModule::CoreAttention};
  OffloadModuleSet offload_modules;
  bool replicated_kv_heads = true;
  bool ulysses_replicates_kv_heads = true;
  bool shared_embedding_in_pipeline = true;
  bool pipeline_inside_data = true;
  // Without it the framework trains no adapters.
  std::optional<LoraCapability> lora;

  bool operator==(const StackCapabilities&) const = default;
};

// Grouped as its JSON is; `describe` (core/spec/stack_json.cpp) says what each field means.
struct StackSpec {
  std::string name;
  std::string family;
  bool generic = false;
  std::vector<std::string> aliases;
  std::vector<ScheduleKind> schedules;
  std::vector<int> zero_stages;
  std::vector<RecomputePolicy> recompute = {RecomputePolicy::None, RecomputePolicy::Selective,
                                            RecomputePolicy::Full};
  StackCapabilities capabilities;
  StackFusion fusion;
  StackOverlap overlap;
  StackCommunication communication;
  StackHost host;
  StackGradients gradients;
  StackMemory memory;
  std::string notes;
  Sources sources;
  // The values that the reader filled in because the profile leaves them out, for the report.
  std::vector<std::string> filled_in;

  bool operator==(const StackSpec&) const = default;
};

// The modules that the backward pass of the plan runs again: those of the plan, or what the stack
// means by selective recomputation. Without it there are none.
inline RecomputeModuleSet recomputed_modules(const StackCapabilities& stack, const Plan& plan) {
  if (plan.recompute != RecomputePolicy::Selective) return {};
  return plan.recompute_modules.empty() ? stack.selective_recompute : plan.recompute_modules;
}

// True if the gradients of the microbatches are added up in fp32.
inline bool sums_in_fp32(const StackSpec& stack, const Plan& plan) {
  return stack.gradients.fp32_accumulation && !is_pure(plan.optimizer_states);
}

// Bytes of a parameter's gradient in the sum over the microbatches.
inline Bytes main_gradient_bytes(const StackSpec& stack, const Plan& plan) {
  return sums_in_fp32(stack, plan) ? Bytes(4.0) : storage_bytes(plan.precision);
}

// Bytes of a parameter's gradient on its way from rank to rank.
inline Bytes reduced_gradient_bytes(const StackSpec& stack, Precision precision) {
  return stack.gradients.fp32_reduction ? Bytes(4.0) : storage_bytes(precision);
}

// Elements of a gradient bucket, or of the parameters that are gathered together.
inline double elements_per_bucket(const StackSpec& stack, const Plan& plan) {
  return std::max(stack.gradients.bucket_elements, stack.gradients.bucket_elements_per_replica *
                                                       static_cast<double>(plan.dp * plan.cp));
}

// FSDP: the number of parts whose parameters are gathered ahead of the one that is computed.
inline std::size_t parts_gathered_ahead(const StackSpec& stack, const Plan& plan) {
  return plan.overlap.param_gather ? static_cast<std::size_t>(stack.host.prefetch_layers) : 0;
}

}  // namespace shardwright
