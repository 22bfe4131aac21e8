// The computations of a decoder on one CPU core with Eigen, for activations and states of one
// format: fp32, or fp64 as a reference for tests.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <utility>
#include <vector>

#include "executor/kernels/cpu/activation.hpp"
#include "executor/kernels/cpu/attention.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"
#include "executor/kernels/cpu/experts.hpp"
#include "executor/kernels/cpu/norm.hpp"
#include "executor/kernels/cpu/rope.hpp"
#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Returns the row of the shard for a token, or nothing if another rank holds it (Megatron-LM, arXiv
// 1909.08053, section 3).
inline std::optional<std::int64_t> row_of(const VocabularyShard& shard, std::int32_t token) {
  const std::int64_t index = token - shard.first;
  if (index < 0 || index >= shard.count) return std::nullopt;
  return index;
}

template <class Real>
class CpuKernels final : public Kernels {
 public:
  Element element() const override {
    return sizeof(Real) == sizeof(double) ? Element::Float64 : Element::Float32;
  }
  Element state_element() const override { return element(); }

  std::shared_ptr<void> allocate(std::size_t bytes) override {
    constexpr std::size_t kAlignment = 64;
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    void* memory = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
    if (memory == nullptr) throw std::bad_alloc();
    return {memory, &std::free};
  }

  std::size_t memory_used() const override {
    constexpr std::size_t kKibibyte = 1024;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<std::size_t>(usage.ru_maxrss) * kKibibyte;
  }

  void upload(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }

  void download(void* to, const void* from, std::size_t bytes) override {
    std::memcpy(to, from, bytes);
  }

  void linear(const LinearShape& shape, const void* x, const void* weight, const void* bias,
              void* y, Queue /*queue*/) override {
    auto out = matrix<Real>(y, shape.rows, shape.outputs, shape.output_width);
    out.noalias() = matrix<Real>(x, shape.rows, shape.inputs) *
                    matrix<Real>(weight, shape.outputs, shape.inputs).transpose();
    if (bias != nullptr) out.rowwise() += row<Real>(bias, 0, shape.outputs).matrix();
  }

  void linear_input_gradient(const LinearShape& shape, const void* dy, const void* weight, void* dx,
                             Queue /*queue*/) override {
    matrix<Real>(dx, shape.rows, shape.inputs).noalias() =
        matrix<Real>(dy, shape.rows, shape.outputs, shape.output_width) *
        matrix<Real>(weight, shape.outputs, shape.inputs);
  }

  void linear_weight_gradient(const LinearShape& shape, const void* dy, const void* x,
                              void* dweight, void* dbias, Queue /*queue*/) override {
    const auto gradient = matrix<Real>(dy, shape.rows, shape.outputs, shape.output_width);
    matrix<Real>(dweight, shape.outputs, shape.inputs).noalias() +=
        gradient.transpose() * matrix<Real>(x, shape.rows, shape.inputs);
    if (dbias != nullptr) row<Real>(dbias, 0, shape.outputs).matrix() += gradient.colwise().sum();
  }

  void norm(const NormShape& shape, const void* x, const void* weight, const void* bias, void* y,
            Queue /*queue*/) override {
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      const NormalisedRow<Real> normalised(shape, input_row<Real>(shape, x, i));
      auto out = row<Real>(y, i, shape.width);
      out = normalised.values * row<Real>(weight, 0, shape.width);
      if (bias != nullptr) out += row<Real>(bias, 0, shape.width);
    }
  }

  void head_norm(const HeadNormShape& shape, const void* weight, void* heads, void* before,
                 Queue queue) override {
    const NormShape each{NormKind::RmsNorm, shape.heads, shape.head_dim, shape.epsilon};
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      Real* in_place = static_cast<Real*>(heads) + r * shape.row_width;
      Real* kept = static_cast<Real*>(before) + r * shape.before_width;
      std::copy_n(in_place, shape.heads * shape.head_dim, kept);
      norm(each, kept, weight, nullptr, in_place, queue);
    }
  }

  void head_norm_backward(const HeadNormShape& shape, const void* before, const void* weight,
                          void* gradient, void* dweight, Queue queue) override {
    const NormShape each{NormKind::RmsNorm, shape.heads, shape.head_dim, shape.epsilon};
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      Real* in_place = static_cast<Real*>(gradient) + r * shape.row_width;
      norm_backward(each, in_place, nullptr,
                    static_cast<const Real*>(before) + r * shape.before_width, weight, in_place,
                    dweight, nullptr, queue);
    }
  }

  void norm_backward(const NormShape& shape, const void* dy, const void* residual, const void* x,
                     const void* weight, void* dx, void* dweight, void* dbias,
                     Queue /*queue*/) override {
    for (std::int64_t i = 0; i < shape.rows; ++i) {
      const NormalisedRow<Real> normalised(shape, input_row<Real>(shape, x, i));
      const auto gradient = row<Real>(dy, i, shape.width);
      row<Real>(dweight, 0, shape.width) += gradient * normalised.values;
      if (dbias != nullptr) row<Real>(dbias, 0, shape.width) += gradient;
      // The gradient of the normalised row minus the terms of the mean and the deviation.
      Eigen::Array<Real, 1, Eigen::Dynamic> inner = gradient * row<Real>(weight, 0, shape.width);
      const Real along = (inner * normalised.values).mean();
      if (shape.kind == NormKind::LayerNorm) inner -= inner.mean();
      inner = (inner - normalised.values * along) * normalised.inverse_deviation;
      if (residual != nullptr) inner += row<Real>(residual, i, shape.width);
      input_row<Real>(shape, dx, i) = inner;
    }
  }

  void rope(const RopeShape& shape, bool inverse, void* data, Queue /*queue*/) override {
    for (std::int64_t i = 0; i < shape.seq_len; ++i) {
      const std::vector<std::complex<Real>> rotations =
          rotations_at<Real>(shape, shape.part.position(i, shape.seq_len), inverse);
      for (std::int64_t r = i; r < shape.rows; r += shape.seq_len) {
        Real* start = static_cast<Real*>(data) + r * shape.row_width;
        for (std::int64_t head = 0; head < shape.heads; ++head)
          rotate_head(rotations, shape.interleaved, start + head * shape.head_dim);
      }
    }
  }

  void activation(const ActivationShape& shape, const void* up, void* out,
                  Queue /*queue*/) override {
    activate_rows(shape, static_cast<const Real*>(up), static_cast<Real*>(out));
  }

  void activation_backward(const ActivationShape& shape, const void* up, const void* dout,
                           void* dup, Queue /*queue*/) override {
    activate_rows_backward(shape, static_cast<const Real*>(up), static_cast<const Real*>(dout),
                           static_cast<Real*>(dup));
  }

  void add(std::int64_t elements, const void* a, const void* b, void* sum,
           Queue /*queue*/) override {
    row<Real>(sum, 0, elements) = row<Real>(a, 0, elements) + row<Real>(b, 0, elements);
  }

  void attention(const AttentionWork& work, const void* qkv, void* out, void* statistics,
                 Queue /*queue*/) override {
    for_each_head(work, [&](std::int64_t sequence, std::int64_t head, const HeadPlace& place) {
      attention_head<Real>(head_operands(work, place, static_cast<const Real*>(qkv)),
                           head_output(work, place, out),
                           row<Real>(statistics, sequence * work.heads + head, work.q_tokens));
    });
  }

  void attention_backward(const AttentionWork& work, const void* qkv, const void* out,
                          const void* statistics, const void* dout, void* dqkv,
                          Queue /*queue*/) override {
    const HeadPlace layout(work, 0, 0);
    matrix<Real>(dqkv, work.batch * work.q_tokens, layout.row_width).setZero();
    for_each_head(work, [&](std::int64_t sequence, std::int64_t head, const HeadPlace& place) {
      std::optional<ConstMatrixMap<Real>> head_out;
      if (out != nullptr) head_out.emplace(head_output(work, place, out));
      attention_head_backward<Real>(
          head_operands(work, place, static_cast<const Real*>(qkv)), head_out,
          row<Real>(statistics, sequence * work.heads + head, work.q_tokens),
          head_output(work, place, dout), head_gradients(work, place, static_cast<Real*>(dqkv)));
    });
  }

  void context_attention(const AttentionWork& work, SequencePart part, const void* qkv,
                         const void* gathered, void* out, void* statistics,
                         Queue /*queue*/) override {
    for_each_head(work, [&](std::int64_t sequence, std::int64_t head, const HeadPlace& place) {
      const auto from = gathered_operands<Real>(work, part, sequence, head, gathered);
      HeadOperands<Real> operands = head_operands(work, place, static_cast<const Real*>(qkv));
      attention_head<Real>({part, operands.queries, from.keys.view(), from.values.view()},
                           head_output(work, place, out),
                           row<Real>(statistics, sequence * work.heads + head, work.q_tokens));
    });
  }

  void context_attention_backward(const AttentionWork& work, SequencePart part, const void* qkv,
                                  const void* gathered, const void* out, const void* statistics,
                                  const void* dout, void* dq, void* dgathered,
                                  Queue /*queue*/) override {
    const std::int64_t rows = work.batch * work.q_tokens, d = work.qk_head_dim;
    matrix<Real>(dq, rows, work.heads * d).setZero();
    matrix<Real>(dgathered, part.ranks * rows, key_value_width(work)).setZero();
    for_each_head(work, [&](std::int64_t sequence, std::int64_t head, const HeadPlace& place) {
      const auto from = gathered_operands<Real>(work, part, sequence, head, gathered);
      const auto operands = head_operands(work, place, static_cast<const Real*>(qkv));
      GatheredKeysValues<Real> gradient(work, part.ranks, sequence, head);
      Real* queries = static_cast<Real*>(dq) + (sequence * work.q_tokens * work.heads + head) * d;
      attention_head_backward<Real>(
          {part, operands.queries, from.keys.view(), from.values.view()},
          head_output(work, place, out),
          row<Real>(statistics, sequence * work.heads + head, work.q_tokens),
          head_output(work, place, dout),
          {matrix<Real>(queries, work.q_tokens, d, work.heads * d), gradient.keys.gradient(),
           gradient.values.gradient()});
      gradient.keys.add_to(static_cast<Real*>(dgathered));
      gradient.values.add_to(static_cast<Real*>(dgathered));
    });
  }

  void ring_attention(const AttentionWork& work, SequencePart part, SequencePart owner,
                      const void* qkv, const void* block, void* out, void* statistics,
                      Queue /*queue*/) override {
    for_each_head(work, [&](std::int64_t sequence, std::int64_t head, const HeadPlace& place) {
      const auto operands = ring_operands<Real>(work, part, owner, sequence, head, qkv, block);
      auto log_sums = row<Real>(statistics, sequence * work.heads + head, work.q_tokens);
      if (block == nullptr)
        return attention_head<Real>(operands, head_output(work, place, out), log_sums);
      RowMatrix<Real> block_out(work.q_tokens, work.v_head_dim);
      Eigen::Array<Real, 1, Eigen::Dynamic> block_log_sums(work.q_tokens);
      attention_head<Real>(operands, matrix<Real>(block_out.data(), work.q_tokens, work.v_head_dim),
                           row<Real>(block_log_sums.data(), 0, work.q_tokens));
      add_attention<Real>(block_out,
                          row<Real>(std::as_const(block_log_sums).data(), 0, work.q_tokens),
                          head_output(work, place, out), log_sums);
    });
  }

  void ring_attention_backward(const AttentionWork& work, SequencePart part, SequencePart owner,
                               const void* qkv, const void* block, const void* out,
                               const void* statistics, const void* dout, void* dqkv, void* dblock,
                               Queue /*queue*/) override {
    const std::int64_t rows = work.batch * work.q_tokens;
    if (block == nullptr) matrix<Real>(dqkv, rows, HeadPlace(work, 0, 0).row_width).setZero();
    if (dblock != nullptr) matrix<Real>(dblock, rows, key_value_width(work)).setZero();
    for_each_head(work, [&](std::int64_t sequence, std::int64_t head, const HeadPlace& place) {
      const auto gradients = head_gradients(work, place, static_cast<Real*>(dqkv));
      attention_head_backward<Real>(
          ring_operands<Real>(work, part, owner, sequence, head, qkv, block),
          head_output(work, place, out),
          row<Real>(statistics, sequence * work.heads + head, work.q_tokens),
          head_output(work, place, dout),
          dblock == nullptr ? gradients
                            : block_gradients(work, BlockPlace(work, sequence, head), gradients,
                                              static_cast<Real*>(dblock)));
    });
  }

  void embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                 const void* table, const void* positions, void* out, Queue /*queue*/) override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto token = static_cast<std::int64_t>(i);
      auto result = row<Real>(out, token, shape.width);
      const auto held = row_of(shape.vocabulary, tokens[i]);
      if (held) {
        result = row<Real>(table, *held, shape.width);
      } else {
        result.setZero();
      }
      if (positions != nullptr)
        result += row<Real>(positions, position_of(shape, token), shape.width);
    }
  }

  void embedding_backward(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                          const void* gradient, void* dtable, void* dpositions,
                          Queue /*queue*/) override {
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const auto token = static_cast<std::int64_t>(i);
      const auto here = row<Real>(gradient, token, shape.width);
      const auto held = row_of(shape.vocabulary, tokens[i]);
      if (held) row<Real>(dtable, *held, shape.width) += here;
      if (dpositions != nullptr)
        row<Real>(dpositions, position_of(shape, token), shape.width) += here;
    }
  }

  void loss_statistics(const LossShape& shape, std::span<const std::int32_t> targets,
                       const void* logits, void* statistics, Queue /*queue*/) override {
    auto table = matrix<Real>(statistics, 3, shape.rows);
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      const auto here = row<Real>(logits, r, shape.vocabulary.rows).head(shape.vocabulary.count);
      const auto held = row_of(shape.vocabulary, targets[static_cast<std::size_t>(r)]);
      table(0, r) = here.maxCoeff();
      table(1, r) = (here - table(0, r)).exp().sum();
      table(2, r) = held ? here(*held) : Real(0);
    }
  }

  void loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics,
                    Queue /*queue*/) override {
    const auto maxima = row<Real>(statistics, 0, rows);
    row<Real>(statistics, 1, rows) *= (row<Real>(own_maxima, 0, rows) - maxima).exp();
  }

  void loss_probabilities(const LossShape& shape, const void* logits, const void* statistics,
                          void* probabilities, double* loss, Queue /*queue*/) override {
    const auto table = matrix<Real>(statistics, 3, shape.rows);
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      const Real log_sum = table(0, r) + std::log(table(1, r));
      auto out = row<Real>(probabilities, r, shape.vocabulary.rows);
      out = (row<Real>(logits, r, shape.vocabulary.rows) - log_sum).exp();
      out.tail(shape.vocabulary.rows - shape.vocabulary.count).setZero();
      *loss += static_cast<double>(log_sum) - static_cast<double>(table(2, r));
    }
  }

  void loss_backward(const LossShape& shape, std::span<const std::int32_t> targets, float scale,
                     const void* probabilities, void* dlogits, Queue /*queue*/) override {
    const Real factor = static_cast<Real>(scale);
    for (std::int64_t r = 0; r < shape.rows; ++r) {
      auto out = row<Real>(dlogits, r, shape.vocabulary.rows);
      out = row<Real>(probabilities, r, shape.vocabulary.rows) * factor;
      const auto held = row_of(shape.vocabulary, targets[static_cast<std::size_t>(r)]);
      if (held) out(*held) -= factor;
    }
  }

  void accumulate(std::int64_t elements, const void* from, void* into, Queue /*queue*/) override {
    row<Real>(into, 0, elements) += row<Real>(from, 0, elements);
  }

  void add_squares(std::int64_t elements, const void* gradient, double* sum,
                   Queue /*queue*/) override {
    *sum += row<Real>(gradient, 0, elements).template cast<double>().square().sum();
  }

  void count_not_finite(std::int64_t elements, Element format, const void* data, double* count,
                        Queue /*queue*/) override {
    const auto add = [&](const auto* values) {
      for (std::int64_t i = 0; i < elements; ++i) *count += std::isfinite(values[i]) ? 0.0 : 1.0;
    };
    if (format == Element::Float64) {
      add(static_cast<const double*>(data));
    } else {
      add(static_cast<const float*>(data));
    }
  }

  void adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
             const double* gradient_squares, Queue /*queue*/) override {
    if (!std::isfinite(*gradient_squares)) return;
    const auto count = static_cast<Real>(step.step);
    const auto beta1 = static_cast<Real>(step.beta1), beta2 = static_cast<Real>(step.beta2);
    const Real first_correction = Real(1) - std::pow(beta1, count);
    const Real second_correction = Real(1) - std::pow(beta2, count);
    const auto rate = static_cast<Real>(step.learning_rate);
    const double norm = std::sqrt(*gradient_squares), most = static_cast<double>(step.clip_norm);
    const Real scale = most > 0.0 && norm > most ? static_cast<Real>(most / norm) : Real(1);
    const auto scaled = row<Real>(arrays.gradient, 0, elements) * scale;
    auto first = row<Real>(arrays.first_moment, 0, elements);
    auto second = row<Real>(arrays.second_moment, 0, elements);
    auto value = row<Real>(arrays.weight, 0, elements);
    first = first * beta1 + scaled * (Real(1) - beta1);
    second = second * beta2 + scaled.square() * (Real(1) - beta2);
    value *= Real(1) - rate * static_cast<Real>(step.weight_decay);
    value -= rate * (first / first_correction) /
             ((second / second_correction).sqrt() + static_cast<Real>(step.epsilon));
  }

  void zero(void* data, std::size_t bytes, Queue /*queue*/) override {
    std::memset(data, 0, bytes);
  }

  void copy(void* to, const void* from, std::size_t bytes, Queue /*queue*/) override {
    std::memcpy(to, from, bytes);
  }

  void copy_columns(std::int64_t rows, std::int64_t columns, const void* from,
                    std::int64_t from_width, void* to, std::int64_t to_width,
                    Queue /*queue*/) override {
    matrix<Real>(to, rows, columns, to_width) = matrix<Real>(from, rows, columns, from_width);
  }

  void scale_columns(std::int64_t rows, std::int64_t columns, double factor, void* data,
                     std::int64_t width, Queue /*queue*/) override {
    matrix<Real>(data, rows, columns, width) *= static_cast<Real>(factor);
  }

  void add_columns(std::int64_t rows, std::int64_t columns, const void* from,
                   std::int64_t from_width, void* to, std::int64_t to_width,
                   Queue /*queue*/) override {
    matrix<Real>(to, rows, columns, to_width) += matrix<Real>(from, rows, columns, from_width);
  }

  void choose_experts(const RouterShape& shape, void* scores, std::int32_t* chosen, void* weights,
                      Queue /*queue*/) override {
    choose_experts_of_rows<Real>(shape, scores, chosen, weights);
  }

  void choose_experts_backward(const RouterShape& shape, const void* probabilities,
                               const std::int32_t* chosen, const void* dweights,
                               const double* dbalance, std::int64_t balanced_tokens, void* dscores,
                               Queue /*queue*/) override {
    choose_experts_backward_of_rows<Real>(shape, probabilities, chosen, dweights, dbalance,
                                          balanced_tokens, dscores);
  }

  void gather_rows(std::int64_t width, std::span<const std::int32_t> index, const void* from,
                   void* to, Queue queue) override {
    sum_rows(width, 1, index, from, nullptr, to, queue);
  }

  void sum_rows(std::int64_t width, std::int64_t each, std::span<const std::int32_t> index,
                const void* from, const void* addend, void* to, Queue /*queue*/) override {
    sums_of_rows<Real>(width, each, index, from, addend, to);
  }

  void expert_product(const ExpertProductShape& shape, const void* x,
                      std::span<const void* const> weights, void* y, Queue /*queue*/) override {
    expert_products(shape, static_cast<const Real*>(x), weights, static_cast<Real*>(y));
  }

  void expert_input_gradient(const ExpertProductShape& shape, const void* dy,
                             std::span<const void* const> weights, void* dx,
                             Queue /*queue*/) override {
    expert_input_gradients(shape, static_cast<const Real*>(dy), weights, static_cast<Real*>(dx));
  }

  void expert_weight_gradient(const ExpertProductShape& shape, const void* dy, const void* x,
                              std::span<void* const> dweights, Queue /*queue*/) override {
    expert_weight_gradients(shape, static_cast<const Real*>(dy), static_cast<const Real*>(x),
                            dweights);
  }

  void scale_rows(std::int64_t rows, std::int64_t width, const void* weights, void* data,
                  Queue /*queue*/) override {
    for (std::int64_t i = 0; i < rows; ++i)
      row<Real>(data, i, width) *= static_cast<const Real*>(weights)[i];
  }

  void gate_rows(std::int64_t rows, std::int64_t width, const void* in, const void* gate, void* out,
                 Queue /*queue*/) override {
    for (std::int64_t i = 0; i < rows; ++i)
      row<Real>(out, i, width) = row<Real>(in, i, width) * logistic(row<Real>(gate, 0, rows)(i));
  }

  void gate_rows_backward(std::int64_t rows, std::int64_t width, const void* dout, const void* in,
                          const void* gate, void* din, void* dgate, Queue /*queue*/) override {
    for (std::int64_t i = 0; i < rows; ++i) {
      const Real share = logistic(row<Real>(gate, 0, rows)(i));
      const auto gradient = row<Real>(dout, i, width);
      row<Real>(din, i, width) = gradient * share;
      row<Real>(dgate, 0, rows)(i) =
          (gradient * row<Real>(in, i, width)).sum() * share * (Real(1) - share);
    }
  }

  void multiply_rows(std::int64_t rows, std::int64_t width, const void* a, const void* b,
                     void* products, Queue /*queue*/) override {
    for (std::int64_t i = 0; i < rows; ++i)
      static_cast<Real*>(products)[i] = (row<Real>(a, i, width) * row<Real>(b, i, width)).sum();
  }

 private:
  template <class Visit>
  static void for_each_head(const AttentionWork& work, Visit visit) {
    for (std::int64_t sequence = 0; sequence < work.batch; ++sequence) {
      for (std::int64_t head = 0; head < work.heads; ++head)
        visit(sequence, head, HeadPlace(work, sequence, head));
    }
  }

  static MatrixMap<Real> head_output(const AttentionWork& work, const HeadPlace& place, void* out) {
    return matrix<Real>(static_cast<Real*>(out) + place.out, work.q_tokens, work.v_head_dim,
                        place.out_width);
  }
  static ConstMatrixMap<Real> head_output(const AttentionWork& work, const HeadPlace& place,
                                          const void* out) {
    return matrix<Real>(static_cast<const Real*>(out) + place.out, work.q_tokens, work.v_head_dim,
                        place.out_width);
  }

  static std::int64_t position_of(const EmbeddingShape& shape, std::int64_t token) {
    return shape.part.position(token % shape.seq_len, shape.seq_len);
  }
};

}  // namespace shardwright::executor
