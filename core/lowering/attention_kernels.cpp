// The attention core itself: one fused kernel, a ring of them, or products with the score matrix in
// memory.
//
// A context-parallel rank holds every cp-th part of each sequence, two chunks of it chosen so that
// the causal mask costs all ranks the same (the zig-zag split); its queries meet the keys of the
// whole sequence.
#include <fmt/format.h>

#include "core/lowering/layer_writer.hpp"

namespace shardwright {

AttentionWork LayerWriter::attention_work(double score_share, bool backward) const {
  AttentionWork work;
  work.batch = shape_.sequences;
  work.heads = shape_.heads;
  work.kv_heads = shape_.kv_heads;
  work.q_tokens = shape_.sequence_tokens;
  work.kv_tokens = plan_.seq_len;
  work.qk_head_dim = shape_.head_dim;
  work.v_head_dim = shape_.value_dim;
  work.score_share = score_share;
  work.backward = backward;
  return work;
}

LayerWriter::CoreTensors LayerWriter::core_tensors() {
  const auto rows = static_cast<double>(shape_.tokens);
  const bool latent = model_.attention.kind == AttentionKind::MultiHeadLatent;
  const std::int64_t kv_heads = latent ? shape_.heads : shape_.kv_heads;
  const auto kv_width = static_cast<double>(kv_heads * (shape_.head_dim + shape_.value_dim));
  const auto q_width = static_cast<double>(shape_.heads * shape_.head_dim);
  CoreTensors core;
  core.kv_elements = rows * kv_width;
  core.qkv = activation("attention.qkv.out", rows * (q_width + kv_width));
  core.qkv_gradient = temporary("attention.qkv.gradient", rows * (q_width + kv_width));
  core.out =
      activation("attention.core.out", rows * static_cast<double>(shape_.heads * shape_.value_dim));
  core.out_gradient = temporary("attention.core.gradient",
                                rows * static_cast<double>(shape_.heads * shape_.value_dim));
  // Log of the sum of exponentials, one fp32 number per head and token.
  core.statistics = bytes_tensor("attention.core.statistics", MemoryCategory::Activations,
                                 rows * static_cast<double>(shape_.heads) * 4.0);
  return core;
}

void LayerWriter::fused_attention(double score_share, Phase phase, bool backward) {
  const CoreTensors core = core_tensors();
  const bool gathers = plan_.cp > 1 && plan_.context_parallel == ContextParallelKind::AllGather;
  const bool exchanges = plan_.cp > 1 && plan_.context_parallel == ContextParallelKind::Ulysses;
  const auto cp = static_cast<double>(plan_.cp);
  const double out_bytes =
      static_cast<double>(shape_.tokens * shape_.heads * shape_.value_dim) * shape_.element;
  const double q_bytes =
      static_cast<double>(shape_.tokens * shape_.heads * shape_.head_dim) * shape_.element;
  const double kv_bytes = core.kv_elements * shape_.element;
  std::vector<TensorRef> reads = {core.qkv};
  if (backward) reads = {core.qkv, core.out, core.statistics, core.out_gradient};
  if (gathers) {
    const TensorRef gathered = temporary("attention.kv.gathered", core.kv_elements * cp);
    collective("attention.kv.all_gather", OpKind::AllGather, Group::Context, phase, kv_bytes * cp,
               {core.qkv}, {gathered});
    reads.push_back(gathered);
  }
  if (exchanges) {
    const TensorRef swapped =
        temporary("attention.heads", core.kv_elements + q_bytes / shape_.element);
    collective("attention.heads.all_to_all", OpKind::AllToAll, Group::Context, phase,
               backward ? out_bytes : q_bytes + kv_bytes, {backward ? core.out_gradient : core.qkv},
               {swapped});
    reads.push_back(swapped);
  }
  const bool reduces = backward && (gathers || exchanges);
  const TensorRef partial =
      temporary("attention.kv.gradient.partial",
                core.kv_elements * (gathers ? cp : 1.0) + q_bytes / shape_.element);
  std::vector<TensorRef> writes = {core.out, core.statistics};
  if (backward) writes = {reduces ? partial : core.qkv_gradient};
  Op& op = append(backward ? "attention.core.backward" : "attention.core", OpKind::Attention, phase,
                  reads, writes);
  op.work = attention_work(score_share, backward);
  if (reduces) {
    collective(gathers ? "attention.kv.reduce_scatter" : "attention.heads.gradient.all_to_all",
               gathers ? OpKind::ReduceScatter : OpKind::AllToAll, Group::Context, phase,
               gathers ? kv_bytes * cp : q_bytes + kv_bytes, {partial}, {core.qkv_gradient});
  } else if (exchanges) {
    collective("attention.sequence.all_to_all", OpKind::AllToAll, Group::Context, phase, out_bytes,
               {core.out}, {core.out});
  }
}

void LayerWriter::ring_attention(double score_share, Phase phase, bool backward) {
  const CoreTensors core = core_tensors();
  const std::string name = backward ? "attention.core.backward" : "attention.core";
  // Backward passes on keys and values and, with them, their gradients.
  const double passed = core.kv_elements * (backward ? 2.0 : 1.0);
  TensorRef block = core.qkv;
  for (std::int64_t step = 0; step < plan_.cp; ++step) {
    TensorRef next = block;
    // Two buffers take turns: one is used while the other one fills.
    if (step + 1 < plan_.cp) {
      next = temporary(fmt::format("{}.ring_buffer.{}", name, step % 2), passed);
      collective(fmt::format("{}.ring_shift.{}", name, step), OpKind::RingShift, Group::Context,
                 phase, passed * shape_.element, {block}, {next});
    }
    std::vector<TensorRef> reads = {core.qkv, block};
    if (backward) reads.insert(reads.end(), {core.out, core.statistics, core.out_gradient});
    std::vector<TensorRef> writes = {core.out, core.statistics};
    if (backward) writes = {core.qkv_gradient};
    // Later steps add to what the first one wrote.
    if (step > 0) reads.insert(reads.end(), writes.begin(), writes.end());
    Op& op = append(fmt::format("{}.{}", name, step), OpKind::Attention, phase, reads, writes);
    AttentionWork work = attention_work(score_share, backward);
    work.kv_tokens = shape_.sequence_tokens;
    op.work = work;
    block = next;
  }
}

LayerWriter::UnfusedTensors LayerWriter::unfused_tensors() {
  const double scores = static_cast<double>(shape_.sequences * shape_.heads) *
                        static_cast<double>(shape_.sequence_tokens) *
                        static_cast<double>(plan_.seq_len);
  UnfusedTensors unfused;
  unfused.elements = scores;
  unfused.scores = temporary("attention.scores", scores);
  unfused.probabilities = activation("attention.probabilities", scores);
  const bool drops = model_.dropout > 0.0;
  unfused.dropped =
      drops ? activation("attention.probabilities.dropped", scores) : unfused.probabilities;
  if (drops)
    unfused.mask = bytes_tensor("attention.dropout_mask", MemoryCategory::Activations, scores);
  unfused.gradient = temporary("attention.scores.gradient", scores);
  return unfused;
}

TensorRef LayerWriter::gather_keys_and_values(Phase phase) {
  const CoreTensors core = core_tensors();
  if (plan_.cp == 1) return core.qkv;
  const double elements = core.kv_elements * static_cast<double>(plan_.cp);
  const TensorRef gathered = temporary("attention.kv.gathered", elements);
  collective("attention.kv.all_gather", OpKind::AllGather, Group::Context, phase,
             elements * shape_.element, {core.qkv}, {gathered});
  return gathered;
}

void LayerWriter::unfused_forward(Phase phase) {
  const CoreTensors core = core_tensors();
  const UnfusedTensors unfused = unfused_tensors();
  const std::int64_t batch = shape_.sequences * shape_.heads;
  const TensorRef kv = gather_keys_and_values(phase);
  // Selective recomputation is after the probabilities alone: the output of the first run is kept.
  const TensorRef out =
      phase == phase_
          ? core.out
          : temporary("attention.core.recomputed",
                      static_cast<double>(shape_.tokens * shape_.heads * shape_.value_dim));
  gemm("attention.scores", phase,
       {.m = shape_.sequence_tokens, .n = plan_.seq_len, .k = shape_.head_dim, .batch = batch},
       {core.qkv, kv}, {unfused.scores});
  memory_op("attention.softmax", OpKind::Softmax, phase, unfused.elements, unfused.elements,
            {unfused.scores}, {unfused.probabilities}, stack_.fused_softmax ? 1 : 4);
  if (model_.dropout > 0.0) {
    memory_op("attention.dropout", OpKind::Dropout, phase, unfused.elements, 1.5 * unfused.elements,
              {unfused.probabilities}, {unfused.dropped, unfused.mask});
  }
  gemm("attention.context", phase,
       {.m = shape_.sequence_tokens, .n = shape_.value_dim, .k = plan_.seq_len, .batch = batch},
       {kv, unfused.dropped}, {out});
}

void LayerWriter::unfused_backward() {
  const CoreTensors core = core_tensors();
  const UnfusedTensors unfused = unfused_tensors();
  const std::int64_t batch = shape_.sequences * shape_.heads;
  const std::int64_t q = shape_.sequence_tokens, kv = plan_.seq_len;
  const Phase phase = Phase::BackwardInput;
  const bool gathers = plan_.cp > 1;
  const TensorRef keys_values = gather_keys_and_values(phase);
  const double gathered_elements = core.kv_elements * static_cast<double>(plan_.cp);
  const TensorRef kv_gradient =
      gathers ? temporary("attention.kv.gathered.gradient", gathered_elements) : core.qkv_gradient;
  gemm("attention.context.probabilities_gradient", phase,
       {.m = q, .n = kv, .k = shape_.value_dim, .batch = batch}, {core.out_gradient, keys_values},
       {unfused.gradient});
  gemm("attention.context.value_gradient", phase,
       {.m = kv, .n = shape_.value_dim, .k = q, .batch = batch},
       {core.out_gradient, unfused.dropped}, {kv_gradient});
  if (model_.dropout > 0.0) {
    memory_op("attention.dropout.backward", OpKind::Dropout, phase, 1.5 * unfused.elements,
              unfused.elements, {unfused.gradient, unfused.mask}, {unfused.gradient});
  }
  memory_op("attention.softmax.backward", OpKind::Softmax, phase, 2.0 * unfused.elements,
            unfused.elements, {unfused.gradient, unfused.probabilities}, {unfused.gradient},
            stack_.fused_softmax ? 1 : 4);
  gemm("attention.scores.key_gradient", phase,
       {.m = kv, .n = shape_.head_dim, .k = q, .batch = batch},
       {unfused.gradient, core.qkv, kv_gradient}, {kv_gradient});
  std::vector<TensorRef> query_reads = {unfused.gradient, keys_values};
  if (!gathers) query_reads.push_back(core.qkv_gradient);
  gemm("attention.scores.query_gradient", phase,
       {.m = q, .n = shape_.head_dim, .k = kv, .batch = batch}, query_reads, {core.qkv_gradient});
  if (gathers) {
    collective("attention.kv.reduce_scatter", OpKind::ReduceScatter, Group::Context, phase,
               gathered_elements * shape_.element, {kv_gradient, core.qkv_gradient},
               {core.qkv_gradient});
  }
}

}  // namespace shardwright
