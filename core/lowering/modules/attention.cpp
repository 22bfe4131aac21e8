// Attention: its projections, and between them the core, which is one fused kernel, a ring of them,
// or products with the score matrix in memory.
//
// A context-parallel rank holds two chunks of each sequence, chosen so that the causal mask costs
// all ranks the same (the zig-zag split). Its queries meet the keys of the whole sequence: a ring
// passes blocks of keys and values on while the block at hand is used, an all-gather collects them
// first, and Ulysses exchanges sequence for heads before and after the core.
#include <fmt/format.h>

#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

bool is_backward(const BlockWriter& w) {
  return w.phase == Phase::BackwardInput;
}

// The share of the q x kv score matrix that is computed: below the causal diagonal, and within the
// layer's sliding window if it has one.
double score_share(const BlockWriter& w, std::int64_t layer) {
  constexpr double kCausal = 0.5;
  const std::int64_t window = w.model.sliding_window_of(layer);
  if (window == 0 || window >= w.plan.seq_len) return kCausal;
  const double seen = static_cast<double>(window) / static_cast<double>(w.plan.seq_len);
  return seen * (1.0 - seen / 2.0);
}

struct Core {
  // The gate's are 0 unless a second query projection gates the output.
  double q_elements = 0.0, kv_elements = 0.0, out_elements = 0.0, gate_elements = 0.0;
  TensorRef qkv, qkv_gradient, out, out_gradient, statistics;
};

Core attention_core(const BlockWriter& w) {
  const ShardShape& shape = w.shape;
  const bool latent = w.model.attention.kind == AttentionKind::MultiHeadLatent;
  const std::int64_t kv_heads = latent ? shape.heads : shape.kv_heads;
  Core core;
  core.q_elements = static_cast<double>(shape.tokens * shape.heads * shape.head_dim);
  core.kv_elements =
      static_cast<double>(shape.tokens * kv_heads * (shape.head_dim + shape.value_dim));
  core.out_elements = static_cast<double>(shape.tokens * shape.heads * shape.value_dim);
  core.gate_elements = w.model.attention.output_gate ? core.q_elements : 0.0;
  const double projected = core.q_elements + core.kv_elements + core.gate_elements;
  core.qkv = w.activation("attention.qkv.out", projected);
  core.qkv_gradient = w.temporary("attention.qkv.gradient", projected);
  // Selective recomputation needs what the core keeps for itself: the output of the first run,
  // which the projection behind it keeps, serves the backward pass.
  const bool reruns_core =
      w.phase == Phase::Recompute && w.plan.recompute == RecomputePolicy::Selective;
  core.out = reruns_core ? w.temporary("attention.core.recomputed", core.out_elements)
                         : w.activation("attention.core.out", core.out_elements);
  core.out_gradient = w.temporary("attention.core.gradient", core.out_elements);
  // The logarithm of the sum of exponentials: one fp32 number per head and token.
  core.statistics = w.tensor("attention.core.statistics", MemoryCategory::Activations,
                             static_cast<double>(shape.tokens * shape.heads) * 4.0);
  return core;
}

// The fused kernel: backward it reads what its forward pass wrote.
Op& write_kernel(const BlockWriter& w, std::int64_t layer, const std::string& name,
                 std::int64_t kv_tokens, std::vector<TensorRef> reads,
                 std::vector<TensorRef> writes) {
  AttentionWork work;
  work.batch = w.shape.sequences;
  work.heads = w.shape.heads;
  work.kv_heads = w.shape.kv_heads;
  work.q_tokens = w.shape.sequence_tokens;
  work.kv_tokens = kv_tokens;
  work.qk_head_dim = w.shape.head_dim;
  work.v_head_dim = w.shape.value_dim;
  work.score_share = score_share(w, layer);
  work.backward = is_backward(w);
  return w.attention(name, work, std::move(reads), std::move(writes));
}

std::string kernel_name(const BlockWriter& w) {
  return is_backward(w) ? "attention.core.backward" : "attention.core";
}

TensorRef gather_keys_and_values(const BlockWriter& w, const Core& core) {
  if (w.plan.cp == 1) return core.qkv;
  const double elements = core.kv_elements * static_cast<double>(w.plan.cp);
  const TensorRef gathered = w.temporary("attention.kv.gathered", elements);
  w.collective("attention.kv.all_gather", OpKind::AllGather, Group::Context, elements, {core.qkv},
               {gathered});
  return gathered;
}

void write_fused(const BlockWriter& w, std::int64_t layer) {
  const Core core = attention_core(w);
  const bool backward = is_backward(w);
  const bool gathers = w.plan.cp > 1 && w.plan.context_parallel == ContextParallelKind::AllGather;
  const bool exchanges = w.plan.cp > 1 && w.plan.context_parallel == ContextParallelKind::Ulysses;
  const double qkv_elements = core.q_elements + core.kv_elements;
  std::vector<TensorRef> reads = {core.qkv};
  if (backward) reads.insert(reads.end(), {core.out, core.statistics, core.out_gradient});
  if (gathers) reads.push_back(gather_keys_and_values(w, core));
  if (exchanges) {
    const TensorRef heads = w.temporary("attention.heads", qkv_elements);
    w.collective("attention.heads.all_to_all", OpKind::AllToAll, Group::Context,
                 backward ? core.out_elements : qkv_elements,
                 {backward ? core.out_gradient : core.qkv}, {heads});
    reads.push_back(heads);
  }
  const double gathered_elements =
      core.kv_elements * (gathers ? static_cast<double>(w.plan.cp) : 1.0);
  const TensorRef partial =
      w.temporary("attention.kv.gradient.partial", gathered_elements + core.q_elements);
  std::vector<TensorRef> writes = {core.out, core.statistics};
  if (backward) writes = {gathers || exchanges ? partial : core.qkv_gradient};
  write_kernel(w, layer, kernel_name(w), w.plan.seq_len, reads, writes);
  if (backward && gathers) {
    w.collective("attention.kv.reduce_scatter", OpKind::ReduceScatter, Group::Context,
                 gathered_elements, {partial}, {core.qkv_gradient});
  } else if (backward && exchanges) {
    w.collective("attention.heads.gradient.all_to_all", OpKind::AllToAll, Group::Context,
                 qkv_elements, {partial}, {core.qkv_gradient});
  } else if (exchanges) {
    w.collective("attention.sequence.all_to_all", OpKind::AllToAll, Group::Context,
                 core.out_elements, {core.out}, {core.out});
  }
}

// The ring of Transformer Engine (AttnFuncWithCPAndKVP2P of its context_parallel.py): the blocks of
// keys and values go around, and the backward pass sends them the same way back. It starts with the
// block that came last, which takes the place of the rank's own keys and values, and ends with
// these, whose gradients from the other ranks have come home by then.
void write_ring_forward(const BlockWriter& w, std::int64_t layer) {
  const Core core = attention_core(w);
  // A core that runs again before the backward pass starts with the rank's own block.
  const bool keeps_last = w.phase == Phase::Recompute || !w.reruns(RecomputeModule::CoreAttention);
  TensorRef block = core.qkv;
  for (std::int64_t step = 0; step < w.plan.cp; ++step) {
    const bool is_last = step + 1 == w.plan.cp;
    TensorRef next = block;
    // Two buffers take turns: one is used while the other one fills.
    if (!is_last) {
      next = w.temporary(fmt::format("attention.core.ring_buffer.{}", step % 2), core.kv_elements);
      w.collective(fmt::format("attention.core.ring_shift.{}", step), OpKind::RingShift,
                   Group::Context, core.kv_elements, {block}, {next});
    }
    std::vector<TensorRef> reads = {core.qkv, block};
    std::vector<TensorRef> writes = {core.out, core.statistics};
    // Later steps add to what the first one wrote.
    if (step > 0) reads.insert(reads.end(), writes.begin(), writes.end());
    if (is_last && keeps_last) writes.push_back(core.qkv);
    write_kernel(w, layer, fmt::format("attention.core.{}", step), w.shape.sequence_tokens, reads,
                 writes);
    block = next;
  }
}

// A shift carries the block at hand together with the gradients of the block before, so the first
// one has no gradients and the last one no block.
void write_ring_backward(const BlockWriter& w, std::int64_t layer) {
  const Core core = attention_core(w);
  const auto tensor = [&](const std::string& name) {
    return w.temporary("attention.core.backward." + name, core.kv_elements);
  };
  const TensorRef received = tensor("ring_gradient");
  TensorRef block = core.qkv, next, gradient;
  for (std::int64_t step = 0; step < w.plan.cp; ++step) {
    const bool is_first = step == 0, is_last = step + 1 == w.plan.cp;
    std::vector<TensorRef> sent, arrived;
    if (!is_last) {
      next = tensor(fmt::format("ring_buffer.{}", step % 2));
      sent.push_back(block);
      arrived.push_back(next);
    }
    if (!is_first) {
      sent.push_back(gradient);
      arrived.push_back(received);
    }
    w.collective(fmt::format("attention.core.backward.ring_shift.{}", step), OpKind::RingShift,
                 Group::Context, core.kv_elements * static_cast<double>(sent.size()), sent, arrived)
        .after_kernels = is_first;
    gradient =
        is_last ? core.qkv_gradient : tensor(fmt::format("ring_gradient.partial.{}", step % 2));
    std::vector<TensorRef> reads = {core.qkv, block, core.out, core.statistics, core.out_gradient};
    std::vector<TensorRef> writes = {core.qkv_gradient};
    if (!is_first) reads.push_back(core.qkv_gradient);
    if (!is_last) writes.push_back(gradient);
    write_kernel(w, layer, fmt::format("attention.core.backward.{}", step), w.shape.sequence_tokens,
                 reads, writes);
    if (!is_first) {
      w.memory_op(fmt::format("attention.core.backward.ring_sum.{}", step),
                  OpKind::GradientAccumulation, 2.0 * core.kv_elements, core.kv_elements,
                  {gradient, received}, {gradient});
    }
    block = next;
  }
}

// Products with the score matrix in memory. They know no ring: keys and values are gathered first.
struct Scores {
  double elements = 0.0;
  TensorRef scores, probabilities, dropped, mask, gradient;
};

Scores score_tensors(const BlockWriter& w) {
  Scores s;
  s.elements = static_cast<double>(w.shape.sequences * w.shape.heads) *
               static_cast<double>(w.shape.sequence_tokens) * static_cast<double>(w.plan.seq_len);
  s.scores = w.temporary("attention.scores", s.elements);
  s.probabilities = s.dropped = w.activation("attention.probabilities", s.elements);
  if (w.model.dropout > 0.0) {
    s.dropped = w.activation("attention.probabilities.dropped", s.elements);
    s.mask = w.tensor("attention.dropout_mask", MemoryCategory::Activations, s.elements);
  }
  s.gradient = w.temporary("attention.scores.gradient", s.elements);
  return s;
}

void write_unfused_forward(const BlockWriter& w) {
  const Core core = attention_core(w);
  const Scores s = score_tensors(w);
  const std::int64_t batch = w.shape.sequences * w.shape.heads;
  const std::int64_t q = w.shape.sequence_tokens, kv = w.plan.seq_len;
  const TensorRef keys_values = gather_keys_and_values(w, core);
  w.gemm("attention.scores", {.m = q, .n = kv, .k = w.shape.head_dim, .batch = batch},
         {core.qkv, keys_values}, {s.scores});
  w.memory_op("attention.softmax", OpKind::Softmax, s.elements, s.elements, {s.scores},
              {s.probabilities}, w.stack.fusion.softmax ? 1 : 4);
  if (w.model.dropout > 0.0) {
    w.memory_op("attention.dropout", OpKind::Dropout, s.elements, 1.5 * s.elements,
                {s.probabilities}, {s.dropped, s.mask});
  }
  w.gemm("attention.context", {.m = q, .n = w.shape.value_dim, .k = kv, .batch = batch},
         {keys_values, s.dropped}, {core.out});
}

void write_unfused_backward(const BlockWriter& w) {
  const Core core = attention_core(w);
  const Scores s = score_tensors(w);
  const std::int64_t batch = w.shape.sequences * w.shape.heads;
  const std::int64_t q = w.shape.sequence_tokens, kv = w.plan.seq_len;
  const bool gathers = w.plan.cp > 1;
  const TensorRef keys_values = gather_keys_and_values(w, core);
  const double gathered_elements = core.kv_elements * static_cast<double>(w.plan.cp);
  const TensorRef kv_gradient =
      gathers ? w.temporary("attention.kv.gathered.gradient", gathered_elements)
              : core.qkv_gradient;
  w.gemm("attention.context.probabilities_gradient",
         {.m = q, .n = kv, .k = w.shape.value_dim, .batch = batch},
         {core.out_gradient, keys_values}, {s.gradient});
  w.gemm("attention.context.value_gradient",
         {.m = kv, .n = w.shape.value_dim, .k = q, .batch = batch}, {core.out_gradient, s.dropped},
         {kv_gradient});
  if (w.model.dropout > 0.0) {
    w.memory_op("attention.dropout.backward", OpKind::Dropout, 1.5 * s.elements, s.elements,
                {s.gradient, s.mask}, {s.gradient});
  }
  w.memory_op("attention.softmax.backward", OpKind::Softmax, 2.0 * s.elements, s.elements,
              {s.gradient, s.probabilities}, {s.gradient}, w.stack.fusion.softmax ? 1 : 4);
  w.gemm("attention.scores.key_gradient", {.m = kv, .n = w.shape.head_dim, .k = q, .batch = batch},
         {s.gradient, core.qkv, kv_gradient}, {kv_gradient});
  std::vector<TensorRef> query_reads = {s.gradient, keys_values};
  if (!gathers) query_reads.push_back(core.qkv_gradient);
  w.gemm("attention.scores.query_gradient",
         {.m = q, .n = w.shape.head_dim, .k = kv, .batch = batch}, query_reads,
         {core.qkv_gradient});
  if (gathers) {
    w.collective("attention.kv.reduce_scatter", OpKind::ReduceScatter, Group::Context,
                 gathered_elements, {kv_gradient, core.qkv_gradient}, {core.qkv_gradient});
  }
}

void write_core(const BlockWriter& w, std::int64_t layer) {
  if (!w.stack.fusion.flash_attention) {
    is_backward(w) ? write_unfused_backward(w) : write_unfused_forward(w);
  } else if (w.plan.cp > 1 && w.plan.context_parallel == ContextParallelKind::Ring) {
    is_backward(w) ? write_ring_backward(w, layer) : write_ring_forward(w, layer);
  } else {
    write_fused(w, layer);
  }
}

// The input of the output projection: the core's output, gated or as it is.
TensorRef projected_output(const BlockWriter& w, double elements) {
  return w.activation(w.model.attention.output_gate ? "attention.gated" : "attention.core.out",
                      elements);
}

Linear output_projection(const BlockWriter& w, TensorRef out) {
  const std::int64_t width = w.shape.heads * w.shape.value_dim;
  const TensorRef core_out = projected_output(w, static_cast<double>(w.shape.tokens * width));
  return {"attention.out",
          LinearSplit::Row,
          width,
          w.shape.hidden,
          core_out,
          out,
          w.of_layer({"attention.o_proj"})};
}

void write_output_gate_forward(const BlockWriter& w) {
  const Core core = attention_core(w);
  w.memory_op("attention.gate", OpKind::Activation, 2.0 * core.out_elements, core.out_elements,
              {core.out, core.qkv}, {projected_output(w, core.out_elements)});
}

// Goes from the gradient of the gated output to that of the core's output, and returns the gate's.
TensorRef write_output_gate_backward(const BlockWriter& w, TensorRef gated_gradient) {
  const Core core = attention_core(w);
  const TensorRef gradient = w.temporary("attention.gate.gradient", core.gate_elements);
  w.memory_op("attention.gate.backward", OpKind::Activation, 3.0 * core.out_elements,
              2.0 * core.out_elements, {gated_gradient, core.out, core.qkv},
              {core.out_gradient, gradient});
  return gradient;
}

}  // namespace

void write_attention_forward(const BlockWriter& w, std::int64_t layer, TensorRef in,
                             TensorRef out) {
  write_projections_forward(w, in);
  write_core(w, layer);
  if (w.model.attention.output_gate) write_output_gate_forward(w);
  write_linear_forward(w, output_projection(w, out));
}

void write_attention_backward(const BlockWriter& w, std::int64_t layer, TensorRef in,
                              TensorRef out_gradient, TensorRef in_gradient) {
  const Linear projection = output_projection(w, {});
  const std::size_t first = w.ops.size();
  if (w.reruns(RecomputeModule::MlaUpProjection)) write_latent_up_forward(w.again(), in);
  w.start_at_gradient(first, out_gradient);
  const std::size_t first_of_core = w.ops.size();
  if (w.reruns(RecomputeModule::CoreAttention)) write_core(w.again(), layer);
  w.start_at_gradient(first_of_core, out_gradient);
  const bool gated = w.model.attention.output_gate;
  const TensorRef core_gradient =
      w.temporary(gated ? "attention.gated.gradient" : "attention.core.gradient",
                  static_cast<double>(w.shape.tokens * projection.in));
  write_linear_backward(w, projection, out_gradient, core_gradient);
  std::vector<TensorRef> gate;
  if (gated) gate = {write_output_gate_backward(w, core_gradient)};
  write_core(w, layer);
  // The projections read the gradient of the gate beside that of queries, keys and values.
  w.ops.back().reads.insert(w.ops.back().reads.end(), gate.begin(), gate.end());
  write_projections_backward(w, in, in_gradient);
}

}  // namespace shardwright
