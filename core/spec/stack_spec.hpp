// What a software stack is: which kernels are fused, what overlaps, what the host costs.
//
// The same hardware under another stack is slower or faster; published results cannot be explained
// without it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/precision.hpp"
#include "core/spec/provenance.hpp"

namespace shardwright {

// How the gradient reduction of data parallelism is cut into messages.
enum class GradientBuckets : std::uint8_t {
  Single,     // one message after the last backward
  FixedSize,  // buckets of `bucket_elements`
  PerLayer,   // one message per layer (FSDP)
};
template <>
inline constexpr auto kEnumNames<GradientBuckets> = std::array{"single", "fixed-size", "per-layer"};

struct StackSpec {
  std::string name;
  std::string family;  // "megatron", "deepspeed", "pytorch", "shardwright", …: where an unknown
                       // stack falls back to
  std::vector<std::string> aliases;

  // What it runs, and so what a search tries for it: pipeline schedules and ZeRO stages; empty:
  // all.
  std::vector<ScheduleKind> schedules;
  std::vector<int> zero_stages;

  // Fusion: what does not run as a kernel of its own.
  bool flash_attention = true;          // otherwise score matrices are written to memory
  double attention_kernel_ratio = 1.0;  // speed of the stack's fused attention over the best for
                                        // the device, for which KernelEfficiency stands
  double hopper_attention_kernel_ratio =
      1.0;  // the same on Hopper and later, whose asynchronous matrix units need kernels of their
            // own (FlashAttention-3, cuDNN)
  bool fused_norm = true;
  bool fused_rope = true;
  bool fused_activation = true;   // bias + GELU, SwiGLU
  bool fused_dropout_add = true;  // bias + dropout + residual
  bool fused_loss = true;  // vocabulary-parallel cross-entropy without an fp32 copy of the logits
  bool parallel_loss = true;  // each tensor-parallel rank computes the loss of its part of the
                              // vocabulary; otherwise the logits are gathered on all of them
  bool library_loss = false;  // where it is not fused: PyTorch's cross_entropy, a log-softmax and a
                              // likelihood with a gradient each
  bool fused_softmax = true;  // scale + mask + softmax in one kernel, where attention is unfused
  bool fused_optimizer = true;      // multi-tensor Adam
  bool fused_grouped_gemm = false;  // one kernel for the GEMMs of all experts of a rank; otherwise
                                    // the library runs them one by one
  bool fused_expert_bias = true;  // biases of experts are added, and what their activation reads is
                                  // clamped, inside of other kernels
  bool fused_wgrad_accumulation = true;  // weight gradients are added in fp32 inside the GEMM

  // Overlap that the stack is able to do. A plan may switch each off.
  bool overlap_grad_reduce = true;   // gradient buckets beside the backward pass
  bool overlap_param_gather = true;  // ZeRO-1 parameter gathers beside the next forward pass
  bool overlap_tp = false;  // tensor-parallel collectives cut up and hidden behind their GEMMs
  bool overlap_input_gradient = true;  // a column-split layer's input gradient is reduced beside
                                       // its weight-gradient GEMM
  bool overlap_p2p = true;             // pipeline sends beside compute (interleaved schedules)
  bool overlap_ep = false;  // all-to-all of experts beside shared experts, or beside the kernels of
                            // another microbatch
  double ep_overlap_share = 0.0;  // of the kernels of a layer, what they hide at most of another
                                  // microbatch's all-to-all
  double tp_overlap_share = 0.7;  // of a tensor-parallel collective that overlap_tp hides at most
  double overlap_slowdown =
      0.1;  // relative time that kernels take longer beside a collective (its SMs and traffic)
  double collective_slowdown = 0.1;  // … and that a collective takes longer beside kernels

  double collective_ratio =
      1.0;  // speed of a collective between the kernels of a step over that of a benchmark: its
            // ranks do not arrive together, and its buffers are not in a cache
  double all_to_all_ratio =
      1.0;  // … of an all-to-all that the network between nodes bounds, or whose tokens kernels of
            // the stack's own send: pairs go on without those who are late

  // Where tensor-parallel ranks hold the same hidden state, each sends a part of it to the next
  // stage, which gathers the parts (arXiv 2104.04473, section 4.1).
  bool scatters_messages = false;

  // Tokens cross the network once for all experts of a node (DeepEP).
  bool sends_tokens_once_per_node = false;

  // Host.
  Seconds launch_time =
      microseconds(5.0);  // that the host needs to issue one op, framework included
  Seconds module_launch_time =
      Seconds(0);  // … one GEMM or attention kernel through the module that holds
                   // its weights; `launch_time` where that is longer
  bool waits_for_messages = false;   // it launches what works on a pipeline message only when that
                                     // is there and the device idle
  bool reads_token_counts = false;   // it launches what works on the tokens of the experts only
                                     // when it has read how many each gets
  std::int64_t router_launches = 0;  // of small kernels of router and dispatcher that no op stands
                                     // for, in each pass of a sparse layer
  bool cuda_graphs = false;          // a layer is launched as one op
  bool graphs_to_dispatch = false;   // a sparse layer's attention and router are launched as one op
  std::int64_t prefetch_layers = 1;  // FSDP: parameter gathers issued ahead

  // Data parallelism.
  GradientBuckets buckets = GradientBuckets::FixedSize;
  // As the frameworks count them: gradients of so many elements are reduced together, and as many
  // parameters gathered, whatever an element of either takes.
  double bucket_elements = 40e6;
  double bucket_elements_per_replica = 0.0;  // at least so many for each rank that reduces, so that
                                             // messages of many ranks are not all latency
  bool fp32_gradient_reduction =
      true;  // gradients are reduced in fp32, otherwise in the parameters' format
  bool fp32_main_gradients = true;  // gradients are accumulated in an fp32 buffer

  // Optimizer states: bytes per parameter that the optimizer keeps (fp32 master weight, two fp32
  // moments).
  Bytes master_weight_bytes = Bytes(4);
  Bytes optimizer_state_bytes = Bytes(8);
  Bytes step_gradient_bytes = Bytes(0);  // … and its fp32 copy of half-precision gradients
  bool keeps_half_gradients = false;     // where gradients are added up in fp32, those of the last
                                         // microbatch stay beside the sum
  bool reduction_buffer = false;  // with ZeRO, gradients are copied into a bucket to be reduced

  // Memory that no tensor of the program explains.
  Bytes context_memory = gigabytes(1.0);  // CUDA context, libraries and their workspaces
  Bytes communicator_memory = Bytes(0);   // NCCL buffers, per communicator
  double fragmentation = 0.03;            // of the peak that the allocator cannot hand out
  bool gradient_placeholders = false;  // Transformer Engine: besides the gradients that its GEMMs
                                       // add up, an unused tensor of each weight's shape
  Bytes fp8_weight_bytes = Bytes(2);   // of each parameter that FP8 plans multiply: 16-bit weights,
                                       // or FP8 ones with a transposed copy; 1 without that
  bool fp8_saved_inputs = false;       // inputs of FP8 GEMMs are kept for the backward pass as FP8
  bool dropout_mask_saved = true;      // one byte per element; recomputed from the seed otherwise

  std::string notes;  // where the fusion and overlap facts come from
  Sources sources;
  std::vector<std::string>
      filled_in;  // what the profile left out and the reader filled in, for the report

  bool operator==(const StackSpec&) const = default;
};

// Of a parameter's gradient where those of the microbatches are added up.
inline Bytes main_gradient_bytes(const StackSpec& stack, Precision precision) {
  return stack.fp32_main_gradients ? Bytes(4.0) : storage_bytes(precision);
}

// … and where they go from rank to rank.
inline Bytes reduced_gradient_bytes(const StackSpec& stack, Precision precision) {
  return stack.fp32_gradient_reduction ? Bytes(4.0) : storage_bytes(precision);
}

// Of a gradient bucket, or of the parameters that are gathered together.
inline double elements_per_bucket(const StackSpec& stack, const Plan& plan) {
  return std::max(stack.bucket_elements,
                  stack.bucket_elements_per_replica * static_cast<double>(plan.dp * plan.cp));
}

// FSDP: how many parts ahead of the one that is computed parameters are gathered.
inline std::size_t parts_gathered_ahead(const StackSpec& stack, const Plan& plan) {
  return plan.overlap.param_gather ? static_cast<std::size_t>(stack.prefetch_layers) : 0;
}

}  // namespace shardwright
