#include "tests/executor/kernels/op_table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "executor/data/hash.hpp"

namespace shardwright::executor {
namespace {

std::uint16_t to_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + ((bits >> 16U) & 1U)) >> 16U);
}

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::vector<std::int32_t> tokens_of(std::int64_t count, std::int64_t vocabulary,
                                    std::uint64_t key) {
  std::vector<std::int32_t> tokens;
  for (std::int64_t i = 0; i < count; ++i)
    tokens.push_back(static_cast<std::int32_t>(random_unit(key, static_cast<std::uint64_t>(i)) *
                                               static_cast<double>(vocabulary)));
  return tokens;
}

std::vector<OpResult> linear(OpBench& bench, const LinearShape& shape, bool has_bias) {
  const auto x = bench.activations(values_of(shape.rows * shape.inputs, 1));
  const auto weight = bench.activations(values_of(shape.outputs * shape.inputs, 2));
  const auto bias = has_bias ? bench.activations(values_of(shape.outputs, 3)) : nullptr;
  const auto dy = bench.activations(values_of(shape.rows * shape.outputs, 4));
  const auto y = bench.activations(zeros(shape.rows * shape.outputs));
  const auto dx = bench.activations(zeros(shape.rows * shape.inputs));
  const auto dweight = bench.states(values_of(shape.outputs * shape.inputs, 5));
  const auto dbias = has_bias ? bench.states(values_of(shape.outputs, 6)) : nullptr;
  bench.kernels.linear(shape, x, weight, bias, y, bench.queue);
  bench.kernels.linear_input_gradient(shape, dy, weight, dx, bench.queue);
  bench.kernels.linear_weight_gradient(shape, dy, x, dweight, dbias, bench.queue);
  std::vector<OpResult> results = {
      {"y", bench.read_activations(y, shape.rows * shape.outputs), kRoundedOnce},
      {"dx", bench.read_activations(dx, shape.rows * shape.inputs), kRoundedOnce},
      {"dweight", bench.read_states(dweight, shape.outputs * shape.inputs), kExact}};
  if (has_bias) results.push_back({"dbias", bench.read_states(dbias, shape.outputs), kExact});
  return results;
}

std::vector<OpResult> norm(OpBench& bench, const NormShape& shape, bool has_bias,
                           bool has_residual) {
  const std::int64_t elements = shape.rows * shape.width;
  const auto x = bench.activations(values_of(elements, 1, 3.0));
  const auto weight = bench.activations(values_of(shape.width, 2));
  const auto bias = has_bias ? bench.activations(values_of(shape.width, 3)) : nullptr;
  const auto dy = bench.activations(values_of(elements, 4));
  const auto residual = has_residual ? bench.activations(values_of(elements, 5)) : nullptr;
  const auto y = bench.activations(zeros(elements)), dx = bench.activations(zeros(elements));
  const auto dweight = bench.states(values_of(shape.width, 6));
  const auto dbias = has_bias ? bench.states(values_of(shape.width, 7)) : nullptr;
  bench.kernels.norm(shape, x, weight, bias, y, bench.queue);
  bench.kernels.norm_backward(shape, dy, residual, x, weight, dx, dweight, dbias, bench.queue);
  std::vector<OpResult> results = {{"y", bench.read_activations(y, elements), kRoundedOnce},
                                   {"dx", bench.read_activations(dx, elements), kRoundedOnce},
                                   {"dweight", bench.read_states(dweight, shape.width), kExact}};
  if (has_bias) results.push_back({"dbias", bench.read_states(dbias, shape.width), kExact});
  return results;
}

std::vector<OpResult> rope(OpBench& bench, const RopeShape& shape, bool inverse) {
  const std::int64_t elements = shape.rows * shape.row_width;
  const auto data = bench.activations(values_of(elements, 1));
  bench.kernels.rope(shape, inverse, data, bench.queue);
  return {{"data", bench.read_activations(data, elements), kRoundedOnce}};
}

std::vector<OpResult> activation(OpBench& bench, const ActivationShape& shape) {
  const std::int64_t out_elements = shape.rows * shape.width;
  const std::int64_t up_elements = out_elements * (shape.gated ? 2 : 1);
  const auto up = bench.activations(values_of(up_elements, 1, 4.0));
  const auto dout = bench.activations(values_of(out_elements, 2));
  const auto out = bench.activations(zeros(out_elements));
  const auto dup = bench.activations(zeros(up_elements));
  bench.kernels.activation(shape, up, out, bench.queue);
  bench.kernels.activation_backward(shape, up, dout, dup, bench.queue);
  return {{"out", bench.read_activations(out, out_elements), kRoundedOnce},
          {"dup", bench.read_activations(dup, up_elements), kRoundedOnce}};
}

std::vector<OpResult> add(OpBench& bench, std::int64_t elements) {
  const auto a = bench.activations(values_of(elements, 1));
  const auto b = bench.activations(values_of(elements, 2));
  const auto sum = bench.activations(zeros(elements));
  bench.kernels.add(elements, a, b, sum, bench.queue);
  return {{"sum", bench.read_activations(sum, elements), kRoundedOnce}};
}

AttentionWork attention_work(std::int64_t heads, std::int64_t kv_heads, std::int64_t tokens,
                             std::int64_t dim) {
  AttentionWork work;
  work.batch = 2;
  work.heads = heads;
  work.kv_heads = kv_heads;
  work.q_tokens = work.kv_tokens = tokens;
  work.qk_head_dim = work.v_head_dim = dim;
  return work;
}

// The backward pass gets the forward pass's own results.
std::vector<OpResult> attention(OpBench& bench, const AttentionWork& work) {
  const std::int64_t rows = work.batch * work.q_tokens;
  const std::int64_t in = rows * (work.heads + 2 * work.kv_heads) * work.qk_head_dim;
  const std::int64_t out_elements = rows * work.heads * work.v_head_dim;
  const auto qkv = bench.activations(values_of(in, 1, 2.0));
  const auto dout = bench.activations(values_of(out_elements, 2));
  const auto out = bench.activations(zeros(out_elements));
  const auto statistics = bench.states(zeros(rows * work.heads));
  const auto dqkv = bench.activations(zeros(in));
  bench.kernels.attention(work, qkv, out, statistics, bench.queue);
  bench.kernels.attention_backward(work, qkv, out, statistics, dout, dqkv, bench.queue);
  return {{"out", bench.read_activations(out, out_elements), kRoundedOften},
          {"statistics", bench.read_states(statistics, rows * work.heads), kRoundedOnce},
          {"dqkv", bench.read_activations(dqkv, in), kRoundedOften}};
}

// Some of the 600 tokens occur often, and a fifth lies outside of the shard.
std::vector<OpResult> embedding(OpBench& bench, std::int64_t width, bool has_positions) {
  const EmbeddingShape shape{{10, 37, 40}, width, 100};
  constexpr std::int64_t kTokens = 600;
  const auto tokens = bench.tokens(tokens_of(kTokens, 58, 9));
  const auto table = bench.activations(values_of(40 * width, 1));
  const auto positions = has_positions ? bench.activations(values_of(100 * width, 2)) : nullptr;
  const auto gradient = bench.activations(values_of(kTokens * width, 3));
  const auto out = bench.activations(zeros(kTokens * width));
  const auto dtable = bench.states(values_of(40 * width, 4));
  const auto dpositions = has_positions ? bench.states(values_of(100 * width, 5)) : nullptr;
  bench.kernels.embedding(shape, tokens, table, positions, out, bench.queue);
  bench.kernels.embedding_backward(shape, tokens, gradient, dtable, dpositions, bench.queue);
  std::vector<OpResult> results = {
      {"out", bench.read_activations(out, kTokens * width), kRoundedOnce},
      {"dtable", bench.read_states(dtable, 40 * width), kExact}};
  if (has_positions)
    results.push_back({"dpositions", bench.read_states(dpositions, 100 * width), kExact});
  return results;
}

std::vector<OpResult> loss(OpBench& bench, std::int64_t first, std::int64_t tokens,
                           std::int64_t padded) {
  const VocabularyShard shard{first, tokens, padded};
  const LossShape shape{shard, 20};
  const std::int64_t elements = shape.rows * shard.rows;
  const auto targets = bench.tokens(tokens_of(shape.rows, shard.first + shard.count + 4, 9));
  const auto logits = bench.activations(values_of(elements, 1, 6.0));
  const auto statistics = bench.states(zeros(3 * shape.rows));
  const auto own_maxima = bench.states(values_of(shape.rows, 2));
  const auto probabilities = bench.activations(zeros(elements));
  const auto dlogits = bench.activations(zeros(elements));
  double* sum = bench.number(1.5);
  bench.kernels.loss_statistics(shape, targets, logits, statistics, bench.queue);
  bench.kernels.loss_probabilities(shape, logits, statistics, probabilities, sum, bench.queue);
  bench.kernels.loss_backward(shape, targets, 0.25F, probabilities, dlogits, bench.queue);
  std::vector<OpResult> results = {
      {"statistics", bench.read_states(statistics, 3 * shape.rows), kExact},
      {"sum", {bench.read_number(sum)}, kExact},
      {"probabilities", bench.read_activations(probabilities, elements), kRoundedOnce},
      {"dlogits", bench.read_activations(dlogits, elements), kRoundedOnce}};
  bench.kernels.loss_rescale(shape.rows, own_maxima, statistics, bench.queue);
  results.push_back({"rescaled", bench.read_states(statistics, 3 * shape.rows), kExact});
  return results;
}

std::vector<OpResult> optimizer(OpBench& bench, std::int64_t elements, float clip_norm) {
  const auto gradient = bench.states(values_of(elements, 1));
  const auto weight = bench.states(values_of(elements, 2));
  const auto first = bench.states(values_of(elements, 3, 0.1));
  std::vector<float> squares = values_of(elements, 4, 0.1);
  for (float& value : squares) value *= value;
  const auto second = bench.states(squares);
  const auto applied = bench.activations(zeros(elements));
  double* sum = bench.number(0.25);
  const AdamStep step{
      .learning_rate = 0.01F, .weight_decay = 0.1F, .clip_norm = clip_norm, .step = 3};
  const bool is_reference = bench.kernels.element() == bench.kernels.state_element();
  bench.kernels.add_squares(elements, gradient, sum, bench.queue);
  bench.kernels.adamw(elements, step,
                      {gradient, weight, first, second, is_reference ? nullptr : applied}, sum,
                      bench.queue);
  std::vector<float> rounded = is_reference ? bench.read_states(weight, elements)
                                            : bench.read_activations(applied, elements);
  return {{"squares", {bench.read_number(sum)}, kExact},
          {"weight", bench.read_states(weight, elements), kExact},
          {"first moment", bench.read_states(first, elements), kExact},
          {"second moment", bench.read_states(second, elements), kExact},
          {"applied weight", std::move(rounded), kRoundedOnce}};
}

// If the gradient norm is not finite, AdamW changes nothing.
std::vector<OpResult> not_finite(OpBench& bench) {
  constexpr std::int64_t kElements = 3000;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  std::vector<float> values = values_of(kElements, 1);
  values[7] = kNan;
  values[1200] = kInfinity;
  values[2999] = -kInfinity;
  const auto gradient = bench.states(values), weight = bench.states(values_of(kElements, 2));
  const auto first = bench.states(values_of(kElements, 3));
  const auto second = bench.states(values_of(kElements, 4));
  const auto applied = bench.activations(values);
  double *in_states = bench.number(0.0), *in_activations = bench.number(1.0),
         *in_number = bench.number(0.0), *sum = bench.number(0.0);
  const bool is_reference = bench.kernels.element() == bench.kernels.state_element();
  const auto count = [&](const void* data, std::int64_t elements, Element format, double* found) {
    bench.kernels.count_not_finite(elements, format, data, found, bench.queue);
  };
  count(gradient, kElements, bench.kernels.state_element(), in_states);
  count(applied, kElements, bench.kernels.element(), in_activations);
  bench.kernels.add_squares(kElements, gradient, sum, bench.queue);
  count(sum, 1, Element::Float64, in_number);
  bench.kernels.adamw(kElements, {.learning_rate = 0.01F},
                      {gradient, weight, first, second, is_reference ? nullptr : applied}, sum,
                      bench.queue);
  const std::vector<float> counts = {bench.read_number(in_states),
                                     bench.read_number(in_activations),
                                     bench.read_number(in_number)};
  EXPECT_EQ(counts, (std::vector<float>{3, 4, 1}));
  EXPECT_EQ(bench.read_states(weight, kElements), values_of(kElements, 2));
  return {{"counts", counts, 0.0},
          {"weight", bench.read_states(weight, kElements), 0.0},
          {"second moment", bench.read_states(second, kElements), 0.0}};
}

std::vector<OpResult> memory(OpBench& bench) {
  const auto from = bench.states(values_of(100, 1)), to = bench.states(values_of(100, 2));
  bench.kernels.copy(to, from, 60 * sizeof(float), bench.queue);
  bench.kernels.zero(from, 50 * sizeof(float), bench.queue);
  const auto sum = bench.states(values_of(100, 3));
  bench.kernels.accumulate(99, from, sum, bench.queue);
  return {{"copied", bench.read_states(to, 100), 0.0},
          {"accumulated", bench.read_states(sum, 100), 0.0},
          {"zeroed", bench.read_states(from, 100), 0.0}};
}

std::vector<OpCase> norm_cases() {
  std::vector<OpCase> cases;
  for (const NormKind kind : {NormKind::LayerNorm, NormKind::RmsNorm}) {
    // One or eight elements per access; one or several accesses per thread and row, up to the
    // maximum.
    for (const std::int64_t width : {20, 300, 768, 1032, 2047, 5120, 16'384}) {
      const bool bias = kind == NormKind::LayerNorm;
      cases.push_back({fmt::format("{}_{}", bias ? "layer_norm" : "rms_norm", width), false,
                       [=](OpBench& bench) {
                         return norm(bench, {kind, 7, width}, bias, width != 300);
                       }});
    }
  }
  // More rows than blocks.
  cases.push_back({"rms_norm_many_rows", false, [](OpBench& bench) {
                     return norm(bench, {NormKind::RmsNorm, 600, 16, 0.01}, false, true);
                   }});
  return cases;
}

std::vector<OpCase> activation_cases() {
  std::vector<OpCase> cases;
  for (const Activation kind : {Activation::Gelu, Activation::Relu, Activation::Silu}) {
    for (const bool gated : {false, true}) {
      for (const std::int64_t width : {13, 48}) {
        cases.push_back({fmt::format("{}{}_{}", gated ? "gated_" : "", name_of(kind), width), false,
                         [=](OpBench& bench) {
                           return activation(bench, {kind, gated, 33, width});
                         }});
      }
    }
  }
  return cases;
}

std::vector<OpCase> library_cases() {
  std::vector<OpCase> cases;
  for (const bool bias : {false, true}) {
    const std::string end = bias ? "_bias" : "";
    cases.push_back({"linear" + end, true, [=](OpBench& bench) {
                       return linear(bench, {96, 64, 160}, bias);
                     }});
    // Rows without 16-byte alignment.
    cases.push_back({"linear_odd" + end, true, [=](OpBench& bench) {
                       return linear(bench, {33, 20, 14}, bias);
                     }});
  }
  for (const std::int64_t dim : {8, 64, 128}) {
    for (const std::int64_t kv_heads : {4, 2, 1}) {
      for (const std::int64_t tokens : {32, 192}) {
        cases.push_back(
            {fmt::format("attention_{}_{}_{}", dim, kv_heads, tokens), true, [=](OpBench& bench) {
               return attention(bench, attention_work(4, kv_heads, tokens, dim));
             }});
      }
    }
  }
  return cases;
}

std::vector<OpCase> other_cases() {
  const RopeShape wide{24, 6 * 16, 4, 16, 16, 12}, narrow{24, 40, 3, 8, 6, 12},
      other_base{24, 40, 3, 8, 6, 12, 500.0};
  return {
      {"rope", false, [=](OpBench& bench) { return rope(bench, wide, false); }},
      {"rope_inverse", false, [=](OpBench& bench) { return rope(bench, wide, true); }},
      {"rope_part", false, [=](OpBench& bench) { return rope(bench, narrow, false); }},
      {"rope_base", false, [=](OpBench& bench) { return rope(bench, other_base, false); }},
      {"add", false, [](OpBench& bench) { return add(bench, 4096); }},
      {"add_odd", false, [](OpBench& bench) { return add(bench, 1001); }},
      {"embedding", false, [](OpBench& bench) { return embedding(bench, 24, false); }},
      {"embedding_positions", false, [](OpBench& bench) { return embedding(bench, 1040, true); }},
      {"embedding_odd", false, [](OpBench& bench) { return embedding(bench, 11, true); }},
      {"loss", false, [](OpBench& bench) { return loss(bench, 0, 5000, 5000); }},
      {"loss_padded", false, [](OpBench& bench) { return loss(bench, 64, 61, 64); }},
      {"loss_odd", false, [](OpBench& bench) { return loss(bench, 0, 257, 257); }},
      {"optimizer", false, [](OpBench& bench) { return optimizer(bench, 5000, 0.0F); }},
      {"optimizer_clipped", false, [](OpBench& bench) { return optimizer(bench, 777, 2.0F); }},
      {"not_finite", false, not_finite},
      {"memory", true, [](OpBench& bench) { return memory(bench); }},
  };
}

}  // namespace

std::vector<float> values_of(std::int64_t count, std::uint64_t key, double scale) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = from_bf16(to_bf16(static_cast<float>(scale * (2.0 * random_unit(key, i) - 1.0))));
  return values;
}

std::vector<float> zeros(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count));
}

void* OpBench::keep(const void* data, std::size_t bytes) {
  held_.push_back(kernels.allocate(bytes));
  kernels.upload(held_.back().get(), data, bytes);
  return held_.back().get();
}

void* OpBench::activations(const std::vector<float>& values) {
  if (kernels.element() != Element::Bfloat16) return states(values);
  std::vector<std::uint16_t> bits(values.size());
  std::transform(values.begin(), values.end(), bits.begin(), to_bf16);
  return keep(bits.data(), bits.size() * sizeof(std::uint16_t));
}

void* OpBench::states(const std::vector<float>& values) {
  return keep(values.data(), values.size() * sizeof(float));
}

std::span<const std::int32_t> OpBench::tokens(const std::vector<std::int32_t>& values) {
  const void* held = keep(values.data(), values.size() * sizeof(std::int32_t));
  return {static_cast<const std::int32_t*>(held), values.size()};
}

double* OpBench::number(double value) {
  return static_cast<double*>(keep(&value, sizeof value));
}

std::vector<float> OpBench::read_activations(const void* data, std::int64_t count) {
  if (kernels.element() != Element::Bfloat16) return read_states(data, count);
  std::vector<std::uint16_t> bits(static_cast<std::size_t>(count));
  kernels.download(bits.data(), data, bits.size() * sizeof(std::uint16_t));
  std::vector<float> values(bits.size());
  std::transform(bits.begin(), bits.end(), values.begin(), from_bf16);
  return values;
}

std::vector<float> OpBench::read_states(const void* data, std::int64_t count) {
  std::vector<float> values = zeros(count);
  kernels.download(values.data(), data, values.size() * sizeof(float));
  return values;
}

float OpBench::read_number(const double* data) {
  double value = 0.0;
  kernels.download(&value, data, sizeof value);
  return static_cast<float>(value);
}

void PrintTo(const OpCase& op, std::ostream* out) {
  *out << op.name;
}

const std::vector<OpCase>& op_table() {
  static const std::vector<OpCase> table = [] {
    std::vector<OpCase> all = library_cases();
    for (const auto& more : {norm_cases(), activation_cases(), other_cases()})
      all.insert(all.end(), more.begin(), more.end());
    return all;
  }();
  return table;
}

void expect_same_results(const OpCase& op, OpBench& bench) {
  const auto reference = make_cpu_kernels();
  OpBench reference_bench(*reference);
  const std::vector<OpResult> expected = op.run(reference_bench), found = op.run(bench);
  ASSERT_EQ(expected.size(), found.size());
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const std::vector<float>&a = expected[r].values, &b = found[r].values;
    ASSERT_EQ(a.size(), b.size());
    double largest = 0.0, worst = 0.0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(a[i])));
      const double off = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
      worst = std::isfinite(off) ? std::max(worst, off) : INFINITY;
    }
    EXPECT_LE(worst, expected[r].tolerance * largest) << op.name << ": " << expected[r].name;
    EXPECT_GT(largest, 0.0) << op.name << ": " << expected[r].name;
  }
}

}  // namespace shardwright::executor
