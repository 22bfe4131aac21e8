// One operation of a training step: what runs, where, on which shape, and what it touches.
#pragma once

#include <cstdint>
#include <variant>

#include "core/base/enum_names.hpp"
#include "core/base/units.hpp"

namespace shardwright {

// The computation of an op follows from kind and phase, the parameters, and the operands in the
// order of Op::reads and Op::writes:
//
//   Gemm        forward (x) -> (y): y = x W^T + b
//               backward by input (dy) -> (dx)
//               backward by weight (dy, x) -> (): adds to the gradients of W and b
//               Where a collective adds up the outputs of several ranks, b is meant once. One that
//               reads what it writes adds to it. Those of experts multiply the rows of each expert.
//   Attention   (qkv) -> (out, statistics); a row holds the heads' queries, keys, values
//               backward (qkv, out, statistics, dout) -> (dqkv)
//               A ring has one for the keys and values of each rank, which it reads behind qkv (of
//               the first one they lie in qkv). It adds to what the first one wrote; backward it
//               writes their gradients behind dqkv (of the last one they belong there). The last
//               one of a forward pass writes them into qkv, too, where the backward pass begins.
//   Norm        (x) -> (y)
//               backward (dy, [gradients that go around the norm and are added,] x) -> (dx)
//               of the heads of queries and keys, in place (qkv) -> (qkv, queries and keys before)
//               backward (dqkv, queries and keys before) -> (dqkv)
//   GradientAccumulation  (sum, summand) -> (sum)
//   Rope        in place
//   Activation  (up) -> (out), a row of `up` holding the gate before the rest
//               backward (up, dout) -> (dup)
//               of experts: the output is multiplied by the expert's share in the token
//               of shared experts' gate (x, gate) -> (y); backward (dy, x, gate) -> (dx, dgate)
//   Router      in place: logits -> probabilities of the experts
//               backward (probabilities) -> (gradient of the logits)
//   Permute     (x, ..) -> (rows): a row for each expert of a token
//               (rows, scores, [summand]) -> (y): the sum of a token's rows
//               in place: rows by sender <-> rows by expert
//   AllToAll    (rows) -> (rows) to the ranks of their experts, or back
//   Residual    (branch, skip) -> (sum)
//   Embedding   () -> (hidden)
//               backward (gradient) -> ()
//   Loss        (logits) -> (statistics: of each token maximum, sum of exponentials, its logit)
//               (logits, statistics) -> (probabilities)
//               backward (probabilities) -> (gradient of the logits)
enum class OpKind : std::uint8_t {
  // GemmWork.
  Gemm,
  // GemmWork of `groups` experts at once.
  GroupedGemm,
  // AttentionWork.
  Attention,
  // The softmax of unfused attention. MemoryWork from here on.
  Softmax,
  Norm,
  Rope,
  Activation,
  Dropout,
  Residual,
  Embedding,
  Router,
  // Moves tokens into expert order and back.
  Permute,
  Loss,
  // Converts to and from FP8.
  Cast,
  // Compresses, adds up or restores what replicas exchange, or applies it.
  Compression,
  GradientAccumulation,
  GradientNorm,
  Optimizer,
  // Copies between device and host memory.
  Offload,
  // HostUpdateWork.
  HostOptimizer,
  // The optimizer's step on parameter servers, for which the rank waits: MemoryWork of its
  // parameters.
  ServerOptimizer,
  // CommunicationWork from here on.
  AllReduce,
  AllGather,
  ReduceScatter,
  AllToAll,
  Broadcast,
  // Each member passes its buffers on to the next one of the group, backward to the one before.
  RingShift,
  // Each member sends gradients to the parameter servers, or receives parameters from them.
  Push,
  Pull,
  Send,
  Receive,
};

constexpr auto enum_names(OpKind) {
  return std::array{"gemm",
                    "grouped_gemm",
                    "attention",
                    "softmax",
                    "norm",
                    "rope",
                    "activation",
                    "dropout",
                    "residual",
                    "embedding",
                    "router",
                    "permute",
                    "loss",
                    "cast",
                    "compression",
                    "gradient_accumulation",
                    "gradient_norm",
                    "optimizer",
                    "offload",
                    "host_optimizer",
                    "server_optimizer",
                    "all_reduce",
                    "all_gather",
                    "reduce_scatter",
                    "all_to_all",
                    "broadcast",
                    "ring_shift",
                    "push",
                    "pull",
                    "send",
                    "receive"};
}
inline constexpr int kOpKinds = kEnumCount<OpKind>;

constexpr bool is_matrix_product(OpKind kind) {
  return kind == OpKind::Gemm || kind == OpKind::GroupedGemm;
}

constexpr bool is_communication(OpKind kind) {
  return kind >= OpKind::AllReduce;
}

// True for computations whose time goes with the bytes that they read and write.
constexpr bool is_memory_bound(OpKind kind) {
  return !is_matrix_product(kind) && kind != OpKind::Attention && !is_communication(kind);
}

// True for traffic between a rank and the parameter servers.
constexpr bool is_server_transfer(OpKind kind) {
  return kind == OpKind::Push || kind == OpKind::Pull;
}

// The in-order queues of a device. Ops of different streams run beside each other unless one waits
// for the other.
enum class Stream : std::uint8_t {
  Compute,
  TensorParallel,
  ContextParallel,
  ExpertParallel,
  GradientReduce,
  ParameterGather,
  SendActivation,
  ReceiveActivation,
  SendGradient,
  ReceiveGradient,
  Offload,
};
constexpr auto enum_names(Stream) {
  return std::array{"compute",         "tensor_parallel",  "context_parallel", "expert_parallel",
                    "gradient_reduce", "parameter_gather", "send_activation",  "receive_activation",
                    "send_gradient",   "receive_gradient", "offload"};
}
inline constexpr int kStreams = kEnumCount<Stream>;

enum class Phase : std::uint8_t { Forward, Recompute, BackwardInput, BackwardWeight, Optimizer };
constexpr auto enum_names(Phase) {
  return std::array{"forward", "recompute", "backward_input", "backward_weight", "optimizer"};
}
inline constexpr int kPhases = kEnumCount<Phase>;

// The communicators of a plan. Ranks that differ only along the named axes are members of one
// group.
enum class Group : std::uint8_t {
  Tensor,
  Context,
  Expert,
  ExpertTensor,
  // All ranks that hold the same dense parameters: dp x cp.
  Data,
  // All ranks that hold the same experts.
  ExpertData,
  // The ranks of hybrid sharding that share one copy of the states.
  ShardInner,
  // The ranks of hybrid sharding that hold the same shard.
  ShardOuter,
  ExpertShardInner,
  ExpertShardOuter,
  // Neighbours along the pipeline; point-to-point only.
  Pipeline,
  // The first and the last stage, which both hold a shared embedding.
  EmbeddingTie,
  // The tp x pp ranks of one replica, for the gradient norm.
  ModelParallel,
  // The two stages of DualPipe that hold copies of the same parts of the model.
  Mirror,
};
constexpr auto enum_names(Group) {
  return std::array{"tensor",
                    "context",
                    "expert",
                    "expert_tensor",
                    "data",
                    "expert_data",
                    "shard_inner",
                    "shard_outer",
                    "expert_shard_inner",
                    "expert_shard_outer",
                    "pipeline",
                    "embedding_tie",
                    "model_parallel",
                    "mirror"};
}
inline constexpr int kGroups = kEnumCount<Group>;

// True for collectives between the stages of a pipeline.
constexpr bool joins_stages(Group group) {
  return group == Group::EmbeddingTie || group == Group::ModelParallel || group == Group::Mirror;
}

// C[m, n] (+)= A[m, k] B[k, n], `batch` times; or `groups` experts that share m rows in total, or
// (weight gradients) k rows.
struct GemmWork {
  std::int64_t m = 0, n = 0, k = 0;
  std::int64_t batch = 1;
  std::int64_t groups = 1;
  bool groups_share_k = false;
  // True if it adds into an fp32 output (weight gradients).
  bool accumulate_fp32 = false;
  // True inside of a kernel of linear attention, which multiplies by decays between its products.
  bool in_recurrence = false;

  Flop flop() const {
    return Flop(2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                static_cast<double>(batch));
  }
  bool operator==(const GemmWork&) const = default;
};

// Fused attention of `batch` sequences. `score_share` is the part of the q_tokens x kv_tokens score
// matrix that is computed: 0.5 for a causal mask over equal lengths, 1 without a mask, less with a
// sliding window.
struct AttentionWork {
  std::int64_t batch = 0;
  std::int64_t heads = 0, kv_heads = 0;
  std::int64_t q_tokens = 0, kv_tokens = 0;
  std::int64_t qk_head_dim = 0, v_head_dim = 0;
  double score_share = 1.0;
  bool backward = false;

  // Two products forward; five backward (scores are recomputed inside of the kernel:
  // FlashAttention).
  Flop flop() const {
    const double scores = static_cast<double>(batch * heads) * static_cast<double>(q_tokens) *
                          static_cast<double>(kv_tokens) * score_share;
    const auto qk = static_cast<double>(qk_head_dim), v = static_cast<double>(v_head_dim);
    return Flop(2.0 * scores * (backward ? 3.0 * qk + 2.0 * v : qk + v));
  }
  bool operator==(const AttentionWork&) const = default;
};

// A kernel that is limited by memory traffic: bytes read and written, and the few FLOP that come
// with it. `kernels` is how many launches it takes where it is not fused.
struct MemoryWork {
  Bytes read, written;
  Flop flop;
  std::int64_t kernels = 1;

  bool operator==(const MemoryWork&) const = default;
};

// The optimizer's step on the host: gradients come from the device and weights go back to it. The
// states, from disk or in memory, are read and written once.
struct HostUpdateWork {
  Bytes gradients, weights, states;
  bool on_disk = false;

  bool operator==(const HostUpdateWork&) const = default;
};

// `bytes` follows nccl-tests: the buffer of an all-reduce, all-to-all, broadcast, ring shift, push,
// pull, send or receive; the gathered output of an all-gather; the input of a reduce-scatter.
struct CommunicationWork {
  Group group = Group::Tensor;
  Bytes bytes;
  // Point-to-point only: the peer's stage minus this rank's.
  std::int32_t peer_offset = 0;
  // The share of the collective that can be hidden where a stack overlaps it with the GEMM that it
  // belongs to.
  double hidden_share = 0.0;
  // All-to-all of a stack that sends a node one copy of a token, which the node spreads over its
  // ranks: copies of a token in `bytes`, the most nodes that they go to (0: any number), and the
  // tokens of the rank.
  std::int64_t copies = 1, most_nodes = 0, tokens = 0;
  // All-to-all that runs beside the kernels of another microbatch: of these, which are taken to
  // last as long as those of its own block, the share that it can hide behind.
  double partner_share = 0.0;

  bool operator==(const CommunicationWork&) const = default;
};

// The data that a collective carries, where it is not only the values of the tensors that it reads
// and writes: mostly states that a rank holds from step to step.
enum class Payload : std::uint8_t {
  Tensors,
  // Parameters of the parts that the call covers, or with FSDP of the call's part, into the tensor
  // that the op writes.
  Parameters,
  // Gradients of the parts that the call covers, or with FSDP of the call's part, from the tensor
  // that the op reads.
  Gradients,
  // Gradients of parameters that each tensor-parallel rank holds whole and applies to its part of
  // the sequence (norms, router, latent attention's projections down), and of key/value heads that
  // some of them share.
  ReplicatedGradients,
  // The gradient of the embedding that the first and the last stage both hold.
  TiedGradient,
  // The sum of the gradients' squares.
  GradientNorm,
  // Maxima in the tensor, sums of exponentials relative to them and logits of the ranks' parts of
  // the vocabulary, which become those of the whole.
  SoftmaxStatistics,
  // Compressed gradients of the parts that the call covers, on their way through the ops of the
  // block.
  CompressedGradients,
  // The outcome of local steps.
  LocalSteps,
};

using Work = std::variant<GemmWork, AttentionWork, MemoryWork, HostUpdateWork, CommunicationWork>;

// FLOP that a model's formula counts for this work: the matrix products. Memory-bound kernels count
// as none.
Flop model_flop(const Work& work);

}  // namespace shardwright
