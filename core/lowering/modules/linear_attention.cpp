// Linear attention: Mamba-2 (arXiv 2405.21060) and the gated delta rule (arXiv 2412.06464).
//
// One projection gives values, keys, queries, a gate and the step sizes. A short convolution over
// the tokens follows, then the recurrence, whose kernels work on chunks: within a chunk as matrix
// products, from chunk to chunk on the states of the heads. A gated norm and a projection end it.
//
// Heads are split over the tensor-parallel ranks. Context-parallel ranks exchange sequence for
// heads before and after the recurrence, as in Megatron Core
// (megatron/core/ssm/mamba_context_parallel.py). Mamba-2 keeps the output of the projection and of
// the recurrence alone and computes convolution and states again in the backward pass
// (mamba_ssm/ops/triton/ssd_combined.py, MambaSplitConv1dScanCombinedFn); the delta rule keeps the
// output of the convolution, too (fla/ops/gated_delta_rule/chunk.py).
#include <algorithm>

#include "core/lowering/modules/modules.hpp"

namespace shardwright {
namespace {

// The sizes and tensors of a rank's part of the mixer.
struct Mixer {
  std::int64_t heads = 0, key_heads = 0;
  double tokens = 0.0;
  // Elements of the values, of what the convolution reads, and of the input projection's output.
  double values = 0.0, channels = 0.0, projected = 0.0;
  std::int64_t in_width = 0, value_width = 0;
  // Bytes of the states at the ends of all chunks, which are fp32.
  double state_bytes = 0.0;
  bool keeps_channels = false;
  TensorRef in, conv_out, states, core_out, normed;
};

Mixer mixer_of(const BlockWriter& w) {
  const LinearAttentionSpec& linear = *w.model.linear_attention;
  Mixer m;
  m.heads = linear.heads / w.plan.tp;
  m.key_heads = std::max<std::int64_t>(1, linear.key_heads / w.plan.tp);
  m.in_width = linear.in_width() / w.plan.tp;
  m.value_width = linear.value_width() / w.plan.tp;
  m.tokens = static_cast<double>(w.shape.tokens);
  m.values = m.tokens * static_cast<double>(m.value_width);
  m.channels = m.tokens * static_cast<double>(linear.conv_channels() / w.plan.tp);
  m.projected = m.tokens * static_cast<double>(m.in_width);
  const double chunks = m.tokens / static_cast<double>(std::min(linear.chunk, w.plan.seq_len));
  m.state_bytes = chunks * static_cast<double>(m.value_width * linear.state_dim) * 4.0;
  m.keeps_channels = linear.kind == LinearAttentionKind::GatedDeltaNet;
  m.in = w.activation("mixer.in.out", m.projected);
  m.conv_out = m.keeps_channels ? w.activation("mixer.conv.out", m.channels)
                                : w.temporary("mixer.conv.out", m.channels);
  m.states = w.tensor("mixer.states", MemoryCategory::Temporaries, m.state_bytes);
  m.core_out = w.activation("mixer.core.out", m.values);
  m.normed = w.gemm_input("mixer.norm.out", m.values);
  return m;
}

Linear in_projection(const BlockWriter& w, const Mixer& m, TensorRef in) {
  return {"mixer.in", LinearSplit::Column,          w.shape.hidden, m.in_width, in,
          m.in,       w.of_layer({"mixer.in_proj"})};
}

Linear out_projection(const BlockWriter& w, const Mixer& m, TensorRef out) {
  return {"mixer.out",
          LinearSplit::Row,
          m.value_width,
          w.shape.hidden,
          m.normed,
          out,
          w.of_layer({"mixer.out_proj"})};
}

std::vector<std::string> recurrence_parameters(const BlockWriter& w) {
  std::vector<std::string> names = {"mixer.a_log", "mixer.dt_bias"};
  if (w.model.linear_attention->kind == LinearAttentionKind::Mamba2)
    names.emplace_back("mixer.skip");
  return w.of_layer(std::move(names));
}

// The products of the recurrence run in 16 bits where the projections run in 8 or 4.
BlockWriter in_core_precision(BlockWriter w) {
  if (casts_operands(w.precision)) w.precision = Precision::Bf16;
  return w;
}

std::vector<LinearAttentionProduct> products_of(const BlockWriter& w, const Mixer& m) {
  return linear_attention_products(*w.model.linear_attention, m.heads, m.key_heads, w.shape.tokens,
                                   w.plan.seq_len);
}

// Exchanges sequence for heads, or back; returns the tensor with the result.
TensorRef exchange_heads(const BlockWriter& w, const std::string& name, double elements,
                         TensorRef tensor) {
  if (w.plan.cp == 1) return tensor;
  const TensorRef exchanged = w.temporary(name + ".exchanged", elements);
  w.collective(name + ".all_to_all", OpKind::AllToAll, Group::Context, elements, {tensor},
               {exchanged});
  return exchanged;
}

// Convolution and activation in one kernel (causal_conv1d).
void write_convolution(const BlockWriter& w, const Mixer& m, TensorRef in) {
  w.apply(w.memory_op("mixer.conv", OpKind::Activation, m.channels, m.channels, {in}, {m.conv_out}),
          w.of_layer({"mixer.conv"}));
}

// Hands the states on from chunk to chunk: reads and writes each once.
Op& write_state_passing(const BlockWriter& w, const Mixer& m, const std::string& name,
                        std::vector<TensorRef> reads, TensorRef states) {
  const double elements = m.state_bytes / w.shape.element;
  reads.push_back(states);
  return w.memory_op(name, OpKind::Activation, elements, elements, std::move(reads), {states});
}

// The states at the ends of the chunks, which the backward pass computes anew.
void write_states(const BlockWriter& w, const Mixer& m) {
  bool first = true;
  for (const LinearAttentionProduct& product : products_of(w, m)) {
    if (!product.makes_states) continue;
    Op& op = w.gemm("mixer.core." + product.name, product.work, {m.conv_out}, {m.states});
    if (!first) op.reads.push_back(m.states);
    first = false;
  }
  w.apply(write_state_passing(w, m, "mixer.core.passing", {m.conv_out}, m.states),
          recurrence_parameters(w));
}

void write_core_forward(const BlockWriter& w, const Mixer& m, TensorRef out) {
  write_states(w, m);
  bool first = true;
  for (const LinearAttentionProduct& product : products_of(w, m)) {
    if (product.makes_states) continue;
    Op& op = w.gemm("mixer.core." + product.name, product.work, {m.conv_out, m.states}, {out});
    if (!first) op.reads.push_back(out);
    first = false;
  }
}

// Each product has a gradient for either operand. All of them are added into that of the channels.
void write_core_backward(const BlockWriter& w, const Mixer& m, TensorRef out_gradient,
                         TensorRef channels_gradient) {
  const TensorRef state_gradient =
      w.tensor("mixer.states.gradient", MemoryCategory::Temporaries, m.state_bytes);
  bool first = true;
  const auto write = [&](const std::string& name, const GemmWork& work) {
    Op& op = w.gemm(name, work, {out_gradient, m.conv_out, m.states},
                    {channels_gradient, state_gradient});
    if (!first) op.reads.insert(op.reads.end(), {channels_gradient, state_gradient});
    first = false;
  };
  for (const LinearAttentionProduct& product : products_of(w, m)) {
    const auto& [rows, columns, inner, batch] =
        std::tuple(product.work.m, product.work.n, product.work.k, product.work.batch);
    write("mixer.core." + product.name + ".left_gradient",
          {.m = rows, .n = inner, .k = columns, .batch = batch, .in_recurrence = true});
    write("mixer.core." + product.name + ".right_gradient",
          {.m = inner, .n = columns, .k = rows, .batch = batch, .in_recurrence = true});
  }
  write_state_passing(w, m, "mixer.core.passing.backward", {m.states, channels_gradient},
                      state_gradient)
      .writes.push_back(channels_gradient);
}

// Sums over the tokens, which one kernel computes from `reads`.
void write_parameter_sums(const BlockWriter& w, const std::string& name, double elements,
                          std::vector<TensorRef> reads, std::vector<std::string> parameters) {
  if (w.freezes()) return;
  Op& op = w.memory_op(name, OpKind::Activation, elements, 0.0, std::move(reads), {});
  op.phase = Phase::BackwardWeight;
  op.parameters = std::move(parameters);
  if (w.gathered) op.writes.push_back(w.gathered->gradient);
}

}  // namespace

std::vector<LinearAttentionProduct> linear_attention_products(const LinearAttentionSpec& linear,
                                                              std::int64_t heads,
                                                              std::int64_t key_heads,
                                                              std::int64_t tokens,
                                                              std::int64_t seq_len) {
  const std::int64_t chunk = std::min(linear.chunk, seq_len);
  const std::int64_t keys = linear.state_dim, values = linear.head_dim;
  const std::int64_t chunks = (tokens + chunk - 1) / chunk;
  const std::int64_t by_head = chunks * heads, by_group = chunks * key_heads;
  const auto product = [](const char* name, std::int64_t m, std::int64_t n, std::int64_t k,
                          std::int64_t batch, bool makes_states = false) {
    return LinearAttentionProduct{
        name, {.m = m, .n = n, .k = k, .batch = batch, .in_recurrence = true}, makes_states};
  };
  if (linear.kind == LinearAttentionKind::Mamba2) {
    return {product("states", values, keys, chunk, by_head, true),
            product("scores", chunk, chunk, keys, by_group),
            product("within_chunk", chunk, values, chunk, by_head),
            product("from_states", chunk, values, keys, by_head)};
  }
  return {product("key_scores", chunk, chunk, keys, by_head, true),
          product("rewritten", chunk, keys + values, chunk, by_head, true),
          product("forgotten", chunk, values, keys, by_head, true),
          product("states", values, keys, chunk, by_head, true),
          product("scores", chunk, chunk, keys, by_head),
          product("within_chunk", chunk, values, chunk, by_head),
          product("from_states", chunk, values, keys, by_head)};
}

void write_linear_attention_forward(const BlockWriter& w, TensorRef in, TensorRef out) {
  const Mixer m = mixer_of(w);
  const BlockWriter core = in_core_precision(w);
  write_linear_forward(w, in_projection(w, m, in));
  write_convolution(w, m, exchange_heads(w, "mixer.in", m.projected, m.in));
  const bool exchanges = w.plan.cp > 1;
  const TensorRef core_out =
      exchanges ? w.temporary("mixer.core.out.of_heads", m.values) : m.core_out;
  write_core_forward(core, m, core_out);
  if (exchanges) {
    w.collective("mixer.core.all_to_all", OpKind::AllToAll, Group::Context, m.values, {core_out},
                 {m.core_out});
  }
  // The norm of the gated output reads the gate from the projection's output.
  w.apply(w.memory_op("mixer.norm", OpKind::Norm, 2.0 * m.values, m.values, {m.core_out, m.in},
                      {m.normed}),
          w.of_layer({"mixer.norm"}));
  write_linear_forward(w, out_projection(w, m, out));
}

void write_linear_attention_backward(const BlockWriter& w, TensorRef in, TensorRef out_gradient,
                                     TensorRef in_gradient) {
  const Mixer m = mixer_of(w);
  const BlockWriter core = in_core_precision(w);
  const TensorRef normed_gradient = w.temporary("mixer.norm.gradient", m.values);
  const TensorRef core_gradient = w.temporary("mixer.core.gradient", m.values);
  const TensorRef channels_gradient = w.temporary("mixer.channels.gradient", m.channels);
  const TensorRef projected_gradient = w.temporary("mixer.in.out.gradient", m.projected);
  write_linear_backward(w, out_projection(w, m, {}), out_gradient, normed_gradient);
  w.apply(w.memory_op("mixer.norm.backward", OpKind::Norm, 3.0 * m.values, 2.0 * m.values,
                      {normed_gradient, m.core_out, m.in}, {core_gradient, projected_gradient}),
          w.of_layer({"mixer.norm"}));

  BlockWriter again = core;
  again.phase = Phase::Recompute;
  const TensorRef exchanged = exchange_heads(w, "mixer.in.again", m.projected, m.in);
  if (!m.keeps_channels) write_convolution(again, m, exchanged);
  write_states(again, m);
  const TensorRef gradient = exchange_heads(w, "mixer.core.gradient", m.values, core_gradient);
  write_core_backward(core, m, gradient, channels_gradient);
  write_parameter_sums(w, "mixer.core.parameters", m.channels, {channels_gradient, m.conv_out},
                       recurrence_parameters(w));
  const TensorRef before =
      w.plan.cp > 1 ? w.temporary("mixer.in.gradient.of_heads", m.projected) : projected_gradient;
  w.apply(w.memory_op("mixer.conv.backward", OpKind::Activation, 2.0 * m.channels, m.channels,
                      {channels_gradient, exchanged, projected_gradient}, {before}),
          w.of_layer({"mixer.conv"}));
  write_parameter_sums(w, "mixer.conv.wgrad", 2.0 * m.channels, {channels_gradient, exchanged},
                       w.of_layer({"mixer.conv"}));
  if (w.plan.cp > 1) {
    w.collective("mixer.in.gradient.all_to_all", OpKind::AllToAll, Group::Context, m.projected,
                 {before, projected_gradient}, {projected_gradient});
  }
  write_linear_backward(w, in_projection(w, m, in), projected_gradient, in_gradient);
}

}  // namespace shardwright
