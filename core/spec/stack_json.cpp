#include "core/spec/stack_json.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr NumberRange kLaunchTime{0.0, 1.0, false};
constexpr NumberRange kTailSteps{0.0, 10.0, false};
constexpr NumberRange kSlowdown{0.0, 10.0, false};
constexpr NumberRange kKernelRatio{0.0, 2.0, true};
constexpr NumberRange kStateBytes{0.0, 64.0, false};

void describe_lora_capability(LoraCapability& lora, FieldVisitor& fields) {
  fields.text("framework", lora.framework, kOptional,
              "the library that adds the adapters, if it is another one");
  fields.text("source", lora.source, kRequired, "the files or documents that say so");
  fields.choices("targets", lora.targets, kRequired,
                 "projections of attention and of dense blocks that adapters may be added to");
  fields.boolean("keys_with_values", lora.keys_with_values, kOptional,
                 "`k` and `v` have adapters both or neither");
  fields.boolean("experts", lora.experts, kOptional,
                 "so may those of routed experts, which have the targets of dense blocks");
  fields.boolean("separate", lora.separate, kOptional, "each projection may have one of its own");
  fields.boolean("joint", lora.joint, kOptional,
                 "`q`, `k` and `v` may have one together, and so may `gate` and `up`");
  fields.choices("base", lora.base, kOptional, "formats of the frozen weights");
}

void describe_capabilities(StackCapabilities& runs, FieldVisitor& fields) {
  fields.text("framework", runs.framework, kOmissible, "the framework and its version");
  fields.text("source", runs.source, kOmissible, "the files or documents that say what it runs");
  fields.list("combinations", runs.combinations, kOmissible, "axes that restrict the ZeRO stages",
              [&](AxisCombination& combination) {
                fields.choices("axes", combination.axes, kRequired,
                               "the axes; `ep` and `tp` alike have a degree above 1");
                fields.integers("zero_stages", combination.zero_stages, {0, 3}, kRequired,
                                "ZeRO stages that run where all of them have more than one rank; "
                                "empty: they do not go together");
              });
  fields.choices("context_parallel", runs.context_parallel, kOmissible,
                 "kinds of context parallelism; empty: all");
  fields.choices("precisions", runs.precisions, kOmissible,
                 "number formats of matrix products; empty: all");
  fields.choices("optimizer_states", runs.optimizer_states, kOmissible,
                 "formats of the optimizer's states beside of-stack; empty: all");
  fields.integer("narrow_states_zero_stage", runs.narrow_states_zero_stage, {0, 3}, kOmissible,
                 "ZeRO stage from which on it keeps them in fewer bits than fp32");
  fields.choices("offload_optimizer", runs.offload_optimizer, kOmissible,
                 "places of the optimizer states: host memory from ZeRO stage 1 on, NVMe at stage "
                 "3; empty: any at any stage");
  fields.choices("within_shard_group", runs.within_shard_group, kOmissible,
                 "axes (`cp`, `ep`) whose groups lie within a shard group and its tensor-parallel "
                 "ranks");
  fields.choice("layer_splits", runs.layer_splits, kOmissible,
                "splits of the layers over pipeline chunks: any list, or even ones with up to 8 "
                "fewer layers in the first and the last chunk, where more than two chunks of a "
                "rank follow from the layers of one");
  fields.choices("sync", runs.sync, kOmissible, "ways in which replicas agree");
  fields.choices("compression", runs.compression, kOmissible,
                 "forms in which they send gradients, or the outcome of local steps");
  fields.boolean("sequence_parallel", runs.sequence_parallel, kOmissible,
                 "tensor parallelism splits activations along the sequence, too");
  fields.boolean("hybrid_sharding", runs.hybrid_sharding, kOmissible,
                 "ZeRO shards over fewer than all data-parallel ranks");
  fields.boolean("expert_tensor_parallel", runs.expert_tensor_parallel, kOmissible,
                 "experts have a tensor-parallel degree of their own; otherwise it is `tp` without "
                 "expert parallelism and 1 with it");
  fields.boolean("partial_recompute", runs.partial_recompute, kOmissible,
                 "full recomputation may cover the first layers of a chunk alone");
  fields.boolean("recompute_interval", runs.recompute_interval, kOmissible,
                 "it may cover each second, third … layer of a chunk");
  fields.boolean("recompute_group", runs.recompute_group, kOmissible,
                 "layers may be recomputed in groups of which the first one's input is kept; not "
                 "beside layers that predict further tokens");
  fields.boolean("recompute_by_stage", runs.recompute_by_stage, kOmissible,
                 "each stage of a pipeline may recompute a number of layers of its own");
  fields.choices("recompute_modules", runs.recompute_modules, kOmissible,
                 "modules that selective recomputation may cover");
  fields.choices("selective_recompute", runs.selective_recompute, kOmissible,
                 "those of them that it covers where a plan names none");
  fields.choices("offload_modules", runs.offload_modules, kOmissible,
                 "modules whose inputs alone may be offloaded");
  fields.boolean("replicated_kv_heads", runs.replicated_kv_heads, kOmissible,
                 "more tensor-parallel ranks than key/value heads hold copies of them");
  fields.boolean("ulysses_replicates_kv_heads", runs.ulysses_replicates_kv_heads, kOmissible,
                 "more ranks than key/value heads exchange copies of them with Ulysses");
  fields.boolean("shared_embedding_in_pipeline", runs.shared_embedding_in_pipeline, kOmissible,
                 "the first and the last stage of a pipeline may share the embedding, for a tied "
                 "output head or multi-token prediction");
  fields.boolean("pipeline_inside_data", runs.pipeline_inside_data, kOmissible,
                 "ranks may be numbered tp, cp, ep, pp, dp; otherwise the pipeline is the "
                 "outermost axis");
  fields.optional_section("lora", runs.lora,
                          "the adapters that it trains ([model](../models/lora.md)); without this "
                          "section none",
                          [&](LoraCapability& lora) { describe_lora_capability(lora, fields); });
}

void describe_fusion(StackFusion& fusion, FieldVisitor& fields) {
  fields.boolean("flash_attention", fusion.flash_attention, kReported,
                 "attention runs as one kernel; otherwise score matrices are written to memory");
  fields.boolean("norm", fusion.norm, kReported, "norms run as one kernel");
  fields.boolean("rope", fusion.rope, kReported, "rotary positions run as one kernel");
  fields.boolean("activation", fusion.activation, kReported,
                 "bias and activation (GELU, SwiGLU) run as one kernel");
  fields.boolean("dropout_add", fusion.dropout_add, kReported,
                 "bias, dropout and residual run as one kernel");
  fields.boolean("loss", fusion.loss, kReported,
                 "cross-entropy runs without an fp32 copy of the logits");
  fields.boolean("parallel_loss", fusion.parallel_loss, kOptional,
                 "each tensor-parallel rank computes the loss of its part of the vocabulary; "
                 "otherwise the logits are gathered on all of them");
  fields.boolean("library_loss", fusion.library_loss, kOptional,
                 "an unfused loss is PyTorch's cross_entropy: a log-softmax and a likelihood with "
                 "a gradient each");
  fields.integer("loss_chunks", fusion.loss_chunks, {1, 10'000}, kOmissible,
                 "parts of a microbatch whose logits exist at a time, because output head and loss "
                 "work on one part after the other and compute the gradient at once (Liger's fused "
                 "linear cross-entropy, chunked losses)");
  fields.boolean("softmax", fusion.softmax, kReported,
                 "scale, mask and softmax of unfused attention run as one kernel");
  fields.boolean("optimizer", fusion.optimizer, kReported,
                 "the optimizer updates many tensors in one kernel");
  fields.boolean("wgrad_accumulation", fusion.wgrad_accumulation, kReported,
                 "GEMMs add weight gradients to the fp32 sum themselves");
  fields.boolean("grouped_gemm", fusion.grouped_gemm, kOmissible,
                 "one kernel computes the GEMMs of all experts of a rank; otherwise the library "
                 "runs them one by one");
  fields.boolean("grouped_mlp", fusion.grouped_mlp, kOmissible,
                 "in formats of 8 and 4 bits the kernel of a rank's experts also computes their "
                 "activation function, forward and backward, and casts its result for the next "
                 "product");
  fields.boolean("norm_in_projection", fusion.norm_in_projection, kOmissible,
                 "norms before grouped-query attention and dense blocks belong to the projection "
                 "behind them, which keeps their output (Transformer Engine)");
  fields.boolean("expert_bias", fusion.expert_bias, kOmissible,
                 "biases of experts and limits of their activation need no kernels of their own");
  fields.boolean("fp8_attention", fusion.fp8_attention, kOmissible,
                 "training in formats of 8 and 4 bits runs the products of fused attention in FP8 "
                 "(Transformer Engine's `fp8_dpa`), which otherwise stay in 16 bits");
  fields.choice(
      "fp8_recipe", fusion.fp8_recipe, kOmissible,
      "the scales of FP8 operands; those of mxfp8 are kernels of their own for each expert "
      "([model](../models/lowering.md))");
  fields.choice("attention_kernel", fusion.attention_kernel, kOmissible,
                "the kernels of fused attention, which says how far they are from the fastest ones "
                "of the accelerator ([model](../models/attention.md#kernels))");
  fields.number("attention_kernel_ratio", fusion.attention_kernel_ratio, kKernelRatio, kOmissible,
                "speed of fused attention in a step of this stack over that of its "
                "`attention_kernel` in a benchmark, on Ampere and before");
  fields.number("hopper_attention_kernel_ratio", fusion.hopper_attention_kernel_ratio, kKernelRatio,
                kOmissible, "the same on Hopper and later");
  fields.number("linear_attention_kernel_ratio", fusion.linear_attention_kernel_ratio, kKernelRatio,
                kOmissible,
                "speed of the kernels of linear attention over that of the same matrix products "
                "by the library ([model](../models/lowering.md#linear-attention))");
}

void describe_overlap(StackOverlap& overlap, FieldVisitor& fields) {
  fields.boolean("grad_reduce", overlap.grad_reduce, kReported,
                 "gradient buckets are reduced during the backward pass");
  fields.boolean("param_gather", overlap.param_gather, kReported,
                 "ZeRO-1 gathers parameters during the next forward pass");
  fields.boolean("tensor_parallel", overlap.tensor_parallel, kReported,
                 "tensor-parallel collectives are split and hidden behind their GEMMs");
  fields.boolean("input_gradient", overlap.input_gradient, kOptional,
                 "the input gradient of a column-split layer is reduced during its "
                 "weight-gradient GEMM");
  fields.boolean("p2p", overlap.p2p, kReported,
                 "pipeline sends run during compute (interleaved schedules)");
  fields.boolean("expert_parallel", overlap.expert_parallel, kReported,
                 "the all-to-all of experts runs during shared experts or the kernels of another "
                 "microbatch");
  fields.number("tensor_parallel_share_ratio", overlap.tensor_parallel_share, kRatioOrZero,
                kReported, "share of a tensor-parallel collective that overlap hides at most");
  fields.number("slowdown_ratio", overlap.slowdown, kSlowdown, kReported,
                "extra time of kernels while a collective runs, which takes SMs and bandwidth");
  fields.number("collective_slowdown_ratio", overlap.collective_slowdown, kSlowdown, kReported,
                "extra time of a collective while kernels run");
  fields.number("expert_parallel_share_ratio", overlap.expert_parallel_share, kRatioOrZero,
                kOmissible,
                "share of a layer's kernels that hides the all-to-all of another microbatch at "
                "most");
}

void describe_communication(StackCommunication& communication, FieldVisitor& fields) {
  fields.number("collective_ratio", communication.collective_ratio, kRatio, kReported,
                "speed of a collective in a step over that in a benchmark, as far as links in the "
                "nodes limit it: its ranks do not arrive together and its buffers are not cached");
  fields.number("all_to_all_ratio", communication.all_to_all_ratio, kRatio, kReported,
                "the same of an all-to-all that the network between nodes bounds, or whose tokens "
                "the stack's own kernels send: pairs do not wait for late ranks");
  fields.boolean("scatters_messages", communication.scatters_messages, kOptional,
                 "tensor-parallel ranks each send a part of a pipeline message, which the next "
                 "stage gathers (arXiv 2104.04473, section 4.1)");
  fields.boolean("sends_tokens_once_per_node", communication.sends_tokens_once_per_node, kOptional,
                 "tokens cross the network once for all experts of a node, and reach each of its "
                 "ranks once (DeepEP)");
  fields.number("token_bandwidth_bytes_per_s", communication.token_bandwidth, kNonNegative,
                kOmissible,
                "what the kernels that send tokens so move in a domain of up to eight "
                "accelerators, for each of them; 0: as much as its links");
  fields.number("token_s", communication.token_time, kLaunchTime, kOmissible,
                "time of these kernels for a token itself, however many copies it has");
  fields.number(
      "reduction_tail_steps", communication.reduction_tail, kTailSteps, kOmissible,
      "steps of a ring that reduces beyond those that carry data: 0.4 from NCCL 2.27 on, 1 "
      "before ([model](../models/collectives.md#path))");
}

void describe_host(StackHost& host, FieldVisitor& fields) {
  fields.number("launch_s", host.launch_time, kLaunchTime, kReported,
                "time of the host to issue one op, framework included");
  fields.boolean("waits_for_messages", host.waits_for_messages, kOptional,
                 "the host launches what works on a pipeline message only when that has arrived "
                 "and the device is idle");
  fields.boolean("reads_token_counts", host.reads_token_counts, kOptional,
                 "the host reads how many tokens each expert gets before it launches the experts");
  fields.boolean("cuda_graphs", host.cuda_graphs, kReported, "a layer is launched as one op");
  fields.integer("prefetch_layers", host.prefetch_layers, {0, 10'000}, kReported,
                 "layers whose parameters FSDP gathers ahead");
  fields.integer("router_launches", host.router_launches, {0, 10'000}, kOmissible,
                 "launches of small router and dispatcher kernels that no op stands for, in each "
                 "pass of a sparse layer");
  fields.number("module_s", host.module_launch_time, kLaunchTime, kOmissible,
                "time of the host to issue one GEMM or attention kernel through its module, where "
                "that is longer than `launch_s`");
  fields.choices("graph_modules", host.graph_modules, kOmissible,
                 "parts of a sparse layer that CUDA graphs launch as one op");
}

void describe_gradients(StackGradients& gradients, FieldVisitor& fields) {
  fields.choice("buckets", gradients.buckets, kOptional,
                "how the gradient reduction of data parallelism is split into messages");
  fields.number("bucket_elements", gradients.bucket_elements, kPositive, kReported,
                "gradients that are reduced together, or parameters that are gathered together, "
                "as Megatron and DeepSpeed count them");
  fields.boolean("fp32_reduction", gradients.fp32_reduction, kReported,
                 "gradients are reduced in fp32; otherwise in the format of the parameters");
  fields.boolean("fp32_accumulation", gradients.fp32_accumulation, kReported,
                 "gradients are accumulated in an fp32 buffer");
  fields.number("bucket_elements_per_replica", gradients.bucket_elements_per_replica, kNonNegative,
                kOmissible,
                "least elements of a bucket for each rank that reduces it, so that latency does "
                "not dominate on many ranks");
}

void describe_memory(StackMemory& memory, FieldVisitor& fields) {
  fields.number("master_weight_bytes", memory.master_weight_bytes, kStateBytes, kReported,
                "bytes of a parameter's master weight");
  fields.number(
      "narrow_master_weight_bytes", memory.narrow_master_weight_bytes, {0.0, 4.0, false},
      kOmissible,
      "the same in bf16 plans whose moments a plan asks for in fewer bits than fp32: 2 "
      "where only the bits are kept that the weight lacks (Transformer Engine's FusedAdam); "
      "0: no other");
  fields.number("optimizer_state_bytes", memory.optimizer_state_bytes, kStateBytes, kReported,
                "bytes of a parameter's optimizer states (two moments)");
  fields.number("context_bytes", memory.context, kNonNegative, kReported,
                "CUDA context, libraries and their workspaces");
  fields.number("communicator_bytes", memory.communicator, kNonNegative, kReported,
                "NCCL buffers of one communicator");
  fields.number("fragmentation_ratio", memory.fragmentation, {0.0, 0.9, false}, kReported,
                "share of the peak that the allocator cannot hand out");
  fields.boolean("keeps_half_gradients", memory.keeps_half_gradients, kOptional,
                 "the 16-bit gradients of the last microbatch stay beside the fp32 sum");
  fields.boolean("reduction_buffer", memory.reduction_buffer, kOptional,
                 "ZeRO copies gradients into a bucket to reduce them");
  fields.boolean("gradient_placeholders", memory.gradient_placeholders, kOptional,
                 "Transformer Engine allocates an unused tensor of each weight's shape beside the "
                 "gradients that its GEMMs accumulate");
  fields.boolean("fp8_saved_inputs", memory.fp8_saved_inputs, kOptional,
                 "inputs of FP8 GEMMs are kept as FP8 for the backward pass");
  fields.boolean("fp8_expert_activations", memory.fp8_expert_activations, kOmissible,
                 "so are the inputs of the activation functions of experts");
  fields.boolean("dropout_mask_saved", memory.dropout_mask_saved, kReported,
                 "dropout masks are kept, a byte per element; otherwise recomputed from the seed");
  fields.number("fp8_weight_bytes", memory.fp8_weight_bytes, {1.0, 4.0, false}, kOmissible,
                "bytes of a parameter that FP8 plans multiply: 2 with 16-bit weights, or with FP8 "
                "weights and their transpose");
  fields.number("step_gradient_bytes", memory.step_gradient_bytes, {0.0, 16.0, false}, kOmissible,
                "bytes of a parameter's fp32 copy of its 16-bit gradient in the optimizer step");
}

// Earlier profiles say the bytes of a bucket's gradients as they are reduced, and had
// half-precision parameters in mind.
json with_bucket_elements(json document, ProblemList& problems) {
  if (!document.is_object() || !document.contains("gradients")) return document;
  json& gradients = document["gradients"];
  if (!gradients.is_object() || gradients.contains("bucket_elements")) return document;
  StackSpec stack;
  if (const auto fp32 = gradients.find("fp32_reduction"); fp32 != gradients.end())
    stack.gradients.fp32_reduction = *fp32 != false;
  const double element = reduced_gradient_bytes(stack, Precision::Bf16).value();
  for (const std::string ending : {"", "_per_replica"}) {
    const auto earlier = gradients.find("bucket_bytes" + ending);
    if (earlier == gradients.end()) continue;
    json figure = *earlier;
    json& value = figure.is_object() && figure.contains("value") ? figure["value"] : figure;
    if (!value.is_number()) continue;
    const double bytes = value.get<double>();
    gradients.erase(earlier);
    const bool may_be_zero = !ending.empty();
    if (bytes < 0.0 || (bytes == 0.0 && !may_be_zero)) {
      problems.add("/gradients/bucket_bytes" + ending, value.dump(),
                   may_be_zero ? "a number from 0" : "a number above 0");
      continue;
    }
    value = bytes / element;
    gradients["bucket_elements" + ending] = std::move(figure);
  }
  return document;
}

// Earlier profiles say whether graphs hold attention and router together.
json with_graph_modules(json document) {
  if (!document.is_object() || !document.contains("host")) return document;
  json& host = document["host"];
  if (!host.is_object()) return document;
  const auto earlier = host.find("graphs_to_dispatch");
  if (earlier == host.end() || !earlier->is_boolean()) return document;
  const bool both = *earlier == true;
  host.erase(earlier);
  host["graph_modules"] = both ? json(names_of<GraphModule>()) : json::array();
  return document;
}

}  // namespace

void describe(StackSpec& stack, FieldVisitor& fields) {
  fields.header("shardwright/stack", true);
  fields.text("name", stack.name, kRequired, "name of the profile");
  fields.text(
      "family", stack.family, kOptional,
      "megatron, deepspeed, pytorch, …: the name of its generic profile is `generic-FAMILY`");
  fields.boolean("generic", stack.generic, kOmissible,
                 "the profile stands for software without a profile of its own");
  fields.texts("aliases", stack.aliases, kOptional, "other names of the stack");
  fields.choices("schedules", stack.schedules, kOptional,
                 "pipeline schedules that the stack runs; empty: all");
  fields.integers("zero_stages", stack.zero_stages, {0, 3}, kOptional,
                  "ZeRO stages that the stack runs; empty: all");
  fields.choices("recompute", stack.recompute, kOptional,
                 "recomputation policies that the stack runs");
  fields.section("capabilities", kOmissible,
                 "what the framework runs beyond that; a search proposes nothing else",
                 [&] { describe_capabilities(stack.capabilities, fields); });
  fields.section("fusion", kOptional, "what does not run as a kernel of its own",
                 [&] { describe_fusion(stack.fusion, fields); });
  fields.section("overlap", kOptional,
                 "overlap that the stack is able to do, unless a plan "
                 "switches it off",
                 [&] { describe_overlap(stack.overlap, fields); });
  fields.section("communication", kOptional, "how collectives and messages run in a step",
                 [&] { describe_communication(stack.communication, fields); });
  fields.section("host", kOptional, "work of the host", [&] { describe_host(stack.host, fields); });
  fields.section("gradients", kOptional, "gradients of data parallelism",
                 [&] { describe_gradients(stack.gradients, fields); });
  fields.section("memory", kOptional, "memory of states, and memory that no tensor explains",
                 [&] { describe_memory(stack.memory, fields); });
  fields.texts("filled_in", stack.filled_in, kOmissible,
               "lines about fields that a profile left out, as Shardwright writes them");
  fields.text("notes", stack.notes, kOmissible, "where the facts come from, for people");
}

StackSpec read_stack(const json& document, const std::string& source) {
  ProblemList problems(source);
  StackSpec spec;
  std::vector<std::string> lines;
  read_figures(with_graph_modules(with_bucket_elements(document, problems)), "", problems,
               spec.sources, lines, [&](FieldVisitor& fields) { describe(spec, fields); });
  problems.throw_if_any();
  spec.filled_in.insert(spec.filled_in.end(), lines.begin(), lines.end());
  return spec;
}

ordered_json to_json(const StackSpec& spec) {
  ordered_json document = write_spec(spec, spec.sources);
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
