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
constexpr NumberRange kSlowdown{0.0, 10.0, false};
constexpr NumberRange kKernelRatio{0.0, 2.0, true};
constexpr NumberRange kStateBytes{0.0, 64.0, false};

void describe_fusion(StackSpec& stack, FieldVisitor& fields) {
  fields.boolean("flash_attention", stack.flash_attention, kReported,
                 "attention runs as one kernel; otherwise score matrices are written to memory");
  fields.boolean("norm", stack.fused_norm, kReported, "norms run as one kernel");
  fields.boolean("rope", stack.fused_rope, kReported, "rotary positions run as one kernel");
  fields.boolean("activation", stack.fused_activation, kReported,
                 "bias and activation (GELU, SwiGLU) run as one kernel");
  fields.boolean("dropout_add", stack.fused_dropout_add, kReported,
                 "bias, dropout and residual run as one kernel");
  fields.boolean("loss", stack.fused_loss, kReported,
                 "cross-entropy runs without an fp32 copy of the logits");
  fields.boolean("parallel_loss", stack.parallel_loss, kOptional,
                 "each tensor-parallel rank computes the loss of its part of the vocabulary; "
                 "otherwise the logits are gathered on all of them");
  fields.boolean("library_loss", stack.library_loss, kOptional,
                 "an unfused loss is PyTorch's cross_entropy: a log-softmax and a likelihood with "
                 "a gradient each");
  fields.boolean("softmax", stack.fused_softmax, kReported,
                 "scale, mask and softmax of unfused attention run as one kernel");
  fields.boolean("optimizer", stack.fused_optimizer, kReported,
                 "the optimizer updates many tensors in one kernel");
  fields.boolean("wgrad_accumulation", stack.fused_wgrad_accumulation, kReported,
                 "GEMMs add weight gradients to the fp32 sum themselves");
  fields.boolean("grouped_gemm", stack.fused_grouped_gemm, kOmissible,
                 "one kernel computes the GEMMs of all experts of a rank; otherwise the library "
                 "runs them one by one");
  fields.boolean("expert_bias", stack.fused_expert_bias, kOmissible,
                 "biases of experts and limits of their activation need no kernels of their own");
  fields.number("attention_kernel_ratio", stack.attention_kernel_ratio, kKernelRatio, kOmissible,
                "speed of the stack's fused attention over the accelerator's "
                "`attention_*_ratio`");
  fields.number("hopper_attention_kernel_ratio", stack.hopper_attention_kernel_ratio, kKernelRatio,
                kOmissible,
                "the same on Hopper and later, whose asynchronous matrix units need kernels of "
                "their own (FlashAttention-3, cuDNN)");
}

void describe_overlap(StackSpec& stack, FieldVisitor& fields) {
  fields.boolean("grad_reduce", stack.overlap_grad_reduce, kReported,
                 "gradient buckets are reduced during the backward pass");
  fields.boolean("param_gather", stack.overlap_param_gather, kReported,
                 "ZeRO-1 gathers parameters during the next forward pass");
  fields.boolean("tensor_parallel", stack.overlap_tp, kReported,
                 "tensor-parallel collectives are split and hidden behind their GEMMs");
  fields.boolean("input_gradient", stack.overlap_input_gradient, kOptional,
                 "the input gradient of a column-split layer is reduced during its "
                 "weight-gradient GEMM");
  fields.boolean("p2p", stack.overlap_p2p, kReported,
                 "pipeline sends run during compute (interleaved schedules)");
  fields.boolean("expert_parallel", stack.overlap_ep, kReported,
                 "the all-to-all of experts runs during shared experts or the kernels of another "
                 "microbatch");
  fields.number("tensor_parallel_share_ratio", stack.tp_overlap_share, kRatioOrZero, kReported,
                "share of a tensor-parallel collective that overlap hides at most");
  fields.number("slowdown_ratio", stack.overlap_slowdown, kSlowdown, kReported,
                "extra time of kernels while a collective runs, which takes SMs and bandwidth");
  fields.number("collective_slowdown_ratio", stack.collective_slowdown, kSlowdown, kReported,
                "extra time of a collective while kernels run");
  fields.number("expert_parallel_share_ratio", stack.ep_overlap_share, kRatioOrZero, kOmissible,
                "share of a layer's kernels that hides the all-to-all of another microbatch at "
                "most");
}

void describe_communication(StackSpec& stack, FieldVisitor& fields) {
  fields.number("collective_ratio", stack.collective_ratio, kRatio, kReported,
                "speed of a collective in a step over that in a benchmark: its ranks do not "
                "arrive together and its buffers are not cached");
  fields.number("all_to_all_ratio", stack.all_to_all_ratio, kRatio, kReported,
                "the same of an all-to-all that the network between nodes bounds, or whose tokens "
                "the stack's own kernels send: pairs do not wait for late ranks");
  fields.boolean("scatters_messages", stack.scatters_messages, kOptional,
                 "tensor-parallel ranks each send a part of a pipeline message, which the next "
                 "stage gathers (arXiv 2104.04473, section 4.1)");
  fields.boolean("sends_tokens_once_per_node", stack.sends_tokens_once_per_node, kOptional,
                 "tokens cross the network once for all experts of a node (DeepEP)");
}

void describe_host(StackSpec& stack, FieldVisitor& fields) {
  fields.number("launch_s", stack.launch_time, kLaunchTime, kReported,
                "time of the host to issue one op, framework included");
  fields.boolean("waits_for_messages", stack.waits_for_messages, kOptional,
                 "the host launches what works on a pipeline message only when that has arrived "
                 "and the device is idle");
  fields.boolean("reads_token_counts", stack.reads_token_counts, kOptional,
                 "the host reads how many tokens each expert gets before it launches the experts");
  fields.boolean("cuda_graphs", stack.cuda_graphs, kReported, "a layer is launched as one op");
  fields.integer("prefetch_layers", stack.prefetch_layers, {0, 10'000}, kReported,
                 "layers whose parameters FSDP gathers ahead");
  fields.integer("router_launches", stack.router_launches, {0, 10'000}, kOmissible,
                 "launches of small router and dispatcher kernels that no op stands for, in each "
                 "pass of a sparse layer");
  fields.number("module_s", stack.module_launch_time, kLaunchTime, kOmissible,
                "time of the host to issue one GEMM or attention kernel through its module, where "
                "that is longer than `launch_s`");
  fields.boolean("graphs_to_dispatch", stack.graphs_to_dispatch, kOmissible,
                 "attention and router of a sparse layer are launched as one op");
}

void describe_gradients(StackSpec& stack, FieldVisitor& fields) {
  fields.choice("buckets", stack.buckets, kOptional,
                "how the gradient reduction of data parallelism is split into messages");
  fields.number("bucket_elements", stack.bucket_elements, kPositive, kReported,
                "gradients that are reduced together, or parameters that are gathered together, "
                "as Megatron and DeepSpeed count them");
  fields.boolean("fp32_reduction", stack.fp32_gradient_reduction, kReported,
                 "gradients are reduced in fp32; otherwise in the format of the parameters");
  fields.boolean("fp32_accumulation", stack.fp32_main_gradients, kReported,
                 "gradients are accumulated in an fp32 buffer");
  fields.number("bucket_elements_per_replica", stack.bucket_elements_per_replica, kNonNegative,
                kOmissible,
                "least elements of a bucket for each rank that reduces it, so that latency does "
                "not dominate on many ranks");
}

void describe_memory(StackSpec& stack, FieldVisitor& fields) {
  fields.number("master_weight_bytes", stack.master_weight_bytes, kStateBytes, kReported,
                "bytes of a parameter's master weight");
  fields.number("optimizer_state_bytes", stack.optimizer_state_bytes, kStateBytes, kReported,
                "bytes of a parameter's optimizer states (two moments)");
  fields.number("context_bytes", stack.context_memory, kNonNegative, kReported,
                "CUDA context, libraries and their workspaces");
  fields.number("communicator_bytes", stack.communicator_memory, kNonNegative, kReported,
                "NCCL buffers of one communicator");
  fields.number("fragmentation_ratio", stack.fragmentation, {0.0, 0.9, false}, kReported,
                "share of the peak that the allocator cannot hand out");
  fields.boolean("keeps_half_gradients", stack.keeps_half_gradients, kOptional,
                 "the 16-bit gradients of the last microbatch stay beside the fp32 sum");
  fields.boolean("reduction_buffer", stack.reduction_buffer, kOptional,
                 "ZeRO copies gradients into a bucket to reduce them");
  fields.boolean("gradient_placeholders", stack.gradient_placeholders, kOptional,
                 "Transformer Engine allocates an unused tensor of each weight's shape beside the "
                 "gradients that its GEMMs accumulate");
  fields.boolean("fp8_saved_inputs", stack.fp8_saved_inputs, kOptional,
                 "inputs of FP8 GEMMs are kept as FP8 for the backward pass");
  fields.boolean("dropout_mask_saved", stack.dropout_mask_saved, kReported,
                 "dropout masks are kept, a byte per element; otherwise recomputed from the seed");
  fields.number("fp8_weight_bytes", stack.fp8_weight_bytes, {1.0, 4.0, false}, kOmissible,
                "bytes of a parameter that FP8 plans multiply: 2 with 16-bit weights, or with FP8 "
                "weights and their transpose");
  fields.number("step_gradient_bytes", stack.step_gradient_bytes, {0.0, 16.0, false}, kOmissible,
                "bytes of a parameter's fp32 copy of its 16-bit gradient in the optimizer step");
}

// Earlier profiles say the bytes of a bucket's gradients as they are reduced, and had
// half-precision parameters in mind.
json with_bucket_elements(json document) {
  if (!document.is_object() || !document.contains("gradients")) return document;
  json& gradients = document["gradients"];
  if (!gradients.is_object() || gradients.contains("bucket_elements")) return document;
  StackSpec stack;
  if (const auto fp32 = gradients.find("fp32_reduction"); fp32 != gradients.end())
    stack.fp32_gradient_reduction = *fp32 != false;
  const double element = reduced_gradient_bytes(stack, Precision::Bf16).value();
  for (const std::string ending : {"", "_per_replica"}) {
    const auto earlier = gradients.find("bucket_bytes" + ending);
    if (earlier == gradients.end()) continue;
    json figure = *earlier;
    json& value = figure.is_object() && figure.contains("value") ? figure["value"] : figure;
    if (!value.is_number()) continue;
    value = value.get<double>() / element;
    gradients.erase(earlier);
    gradients["bucket_elements" + ending] = std::move(figure);
  }
  return document;
}

}  // namespace

void describe(StackSpec& stack, FieldVisitor& fields) {
  fields.header("shardwright/stack", true);
  fields.text("name", stack.name, kRequired, "name of the profile");
  fields.text("family", stack.family, kOptional,
              "megatron, deepspeed, pytorch, …: an unknown stack falls back to `generic-FAMILY`");
  fields.texts("aliases", stack.aliases, kOptional, "other names of the stack");
  fields.choices("schedules", stack.schedules, kOptional,
                 "pipeline schedules that the stack runs; empty: all");
  fields.integers("zero_stages", stack.zero_stages, {0, 3}, kOptional,
                  "ZeRO stages that the stack runs; empty: all");
  fields.section("fusion", kOptional, "what does not run as a kernel of its own",
                 [&] { describe_fusion(stack, fields); });
  fields.section("overlap", kOptional,
                 "overlap that the stack is able to do, unless a plan "
                 "switches it off",
                 [&] { describe_overlap(stack, fields); });
  fields.section("communication", kOptional, "how collectives and messages run in a step",
                 [&] { describe_communication(stack, fields); });
  fields.section("host", kOptional, "work of the host", [&] { describe_host(stack, fields); });
  fields.section("gradients", kOptional, "gradients of data parallelism",
                 [&] { describe_gradients(stack, fields); });
  fields.section("memory", kOptional, "memory of states, and memory that no tensor explains",
                 [&] { describe_memory(stack, fields); });
  fields.texts("filled_in", stack.filled_in, kOmissible,
               "lines about fields that a profile left out, as Shardwright writes them");
  fields.text("notes", stack.notes, kOmissible, "where the facts come from, for people");
}

StackSpec read_stack(const json& document, const std::string& source) {
  ProblemList problems(source);
  StackSpec spec;
  std::vector<std::string> lines;
  read_figures(with_bucket_elements(document), "", problems, spec.sources, lines,
               [&](FieldVisitor& fields) { describe(spec, fields); });
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
