// The token embedding and the cross-entropy, each over the part of the vocabulary that a rank holds
// (Megatron-LM, arXiv 1909.08053, section 3). Included by cpu_kernels.cpp alone.
#pragma once

#include <cmath>
#include <optional>

#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {

// Returns the row of the shard for a token, or nothing if another rank holds it.
inline std::optional<std::int64_t> row_of(const VocabularyShard& shard, std::int32_t token) {
  const std::int64_t index = token - shard.first;
  if (index < 0 || index >= shard.count) return std::nullopt;
  return index;
}

template <class Real>
void CpuKernels<Real>::embedding(const EmbeddingShape& shape, std::span<const std::int32_t> tokens,
                                 const void* table, const void* positions, void* out,
                                 Queue /*queue*/) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto token = static_cast<std::int64_t>(i);
    auto result = row<Real>(out, token, shape.width);
    const auto held = row_of(shape.vocabulary, tokens[i]);
    if (held) {
      result = row<Real>(table, *held, shape.width);
    } else {
      result.setZero();
    }
    if (positions != nullptr) result += row<Real>(positions, token % shape.seq_len, shape.width);
  }
}

template <class Real>
void CpuKernels<Real>::embedding_backward(const EmbeddingShape& shape,
                                          std::span<const std::int32_t> tokens,
                                          const void* gradient, void* dtable, void* dpositions,
                                          Queue /*queue*/) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto token = static_cast<std::int64_t>(i);
    const auto here = row<Real>(gradient, token, shape.width);
    const auto held = row_of(shape.vocabulary, tokens[i]);
    if (held) row<Real>(dtable, *held, shape.width) += here;
    if (dpositions != nullptr) row<Real>(dpositions, token % shape.seq_len, shape.width) += here;
  }
}

template <class Real>
void CpuKernels<Real>::loss_statistics(const LossShape& shape,
                                       std::span<const std::int32_t> targets, const void* logits,
                                       void* statistics, Queue /*queue*/) {
  auto table = matrix<Real>(statistics, 3, shape.rows);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const auto here = row<Real>(logits, r, shape.vocabulary.rows).head(shape.vocabulary.count);
    const auto held = row_of(shape.vocabulary, targets[static_cast<std::size_t>(r)]);
    table(0, r) = here.maxCoeff();
    table(1, r) = (here - table(0, r)).exp().sum();
    table(2, r) = held ? here(*held) : Real(0);
  }
}

template <class Real>
void CpuKernels<Real>::loss_rescale(std::int64_t rows, const void* own_maxima, void* statistics,
                                    Queue /*queue*/) {
  const auto maxima = row<Real>(statistics, 0, rows);
  row<Real>(statistics, 1, rows) *= (row<Real>(own_maxima, 0, rows) - maxima).exp();
}

template <class Real>
void CpuKernels<Real>::loss_probabilities(const LossShape& shape, const void* logits,
                                          const void* statistics, void* probabilities, double* loss,
                                          Queue /*queue*/) {
  const auto table = matrix<Real>(statistics, 3, shape.rows);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const Real log_sum = table(0, r) + std::log(table(1, r));
    auto out = row<Real>(probabilities, r, shape.vocabulary.rows);
    out = (row<Real>(logits, r, shape.vocabulary.rows) - log_sum).exp();
    out.tail(shape.vocabulary.rows - shape.vocabulary.count).setZero();
    *loss += static_cast<double>(log_sum) - static_cast<double>(table(2, r));
  }
}

template <class Real>
void CpuKernels<Real>::loss_backward(const LossShape& shape, std::span<const std::int32_t> targets,
                                     float scale, const void* probabilities, void* dlogits,
                                     Queue /*queue*/) {
  const Real factor = static_cast<Real>(scale);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    auto out = row<Real>(dlogits, r, shape.vocabulary.rows);
    out = row<Real>(probabilities, r, shape.vocabulary.rows) * factor;
    const auto held = row_of(shape.vocabulary, targets[static_cast<std::size_t>(r)]);
    if (held) out(*held) -= factor;
  }
}

}  // namespace shardwright::executor
