// Causal attention, one head after another, with the scores of a head in memory. Included by
// cpu_kernels.hpp alone.
//
//   P = softmax(mask(Q K^T / sqrt(d))),  O = P V
//   dV = P^T dO,  dS = P (dO V^T - rowsum(dO O)),  dQ = dS K / sqrt(d),  dK = dS^T Q / sqrt(d)
#pragma once

#include <cmath>

#include "core/op/op.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {

// Offsets in elements of a head of one sequence in the rows of queries, keys and values, and in the
// output.
struct HeadPlace {
  std::int64_t row_width = 0, query = 0, key = 0, value = 0;
  std::int64_t out_width = 0, out = 0;

  HeadPlace(const AttentionWork& work, std::int64_t sequence, std::int64_t head) {
    const std::int64_t d = work.qk_head_dim, dv = work.v_head_dim;
    const std::int64_t kv_head = head / (work.heads / work.kv_heads);
    row_width = (work.heads + work.kv_heads) * d + work.kv_heads * dv;
    const std::int64_t start = sequence * work.q_tokens * row_width;
    query = start + head * d;
    key = start + (work.heads + kv_head) * d;
    value = start + (work.heads + work.kv_heads) * d + kv_head * dv;
    out_width = work.heads * dv;
    out = sequence * work.q_tokens * out_width + head * dv;
  }
};

// Returns Q K^T / sqrt(d) of one head.
template <class Real>
RowMatrix<Real> scaled_scores(const AttentionWork& work, const Real* qkv, const HeadPlace& place) {
  const std::int64_t s = work.q_tokens, d = work.qk_head_dim;
  const Real scale = Real(1) / std::sqrt(static_cast<Real>(d));
  RowMatrix<Real> scores(s, s);
  scores.noalias() = scale * (matrix<Real>(qkv + place.query, s, d, place.row_width) *
                              matrix<Real>(qkv + place.key, s, d, place.row_width).transpose());
  return scores;
}

// Turns the scores of query `i` into probabilities, which are zero for later keys. (Eigen's exp of
// minus infinity is a denormal, which slows the products down.)
template <class Real>
void to_probabilities(RowMatrix<Real>& scores, std::int64_t i, Real log_sum) {
  scores.row(i).head(i + 1) = (scores.row(i).head(i + 1).array() - log_sum).exp();
  scores.row(i).tail(scores.cols() - 1 - i).setZero();
}

// Adds to the gradients of the head's keys and values, which the heads of a group share.
template <class Real>
void attention_head_backward(const AttentionWork& work, const HeadPlace& place, const Real* qkv,
                             const Real* out, const ConstRowMap<Real>& log_sums, const Real* dout,
                             Real* dqkv) {
  const std::int64_t s = work.q_tokens, d = work.qk_head_dim, dv = work.v_head_dim;
  const Real scale = Real(1) / std::sqrt(static_cast<Real>(d));
  RowMatrix<Real> probabilities = scaled_scores(work, qkv, place);
  for (std::int64_t i = 0; i < s; ++i) to_probabilities(probabilities, i, log_sums(i));
  const auto out_gradient = matrix<Real>(dout + place.out, s, dv, place.out_width);
  const auto output = matrix<Real>(out + place.out, s, dv, place.out_width);
  matrix<Real>(dqkv + place.value, s, dv, place.row_width).noalias() +=
      probabilities.transpose() * out_gradient;
  RowMatrix<Real> scores(s, s);
  scores.noalias() =
      out_gradient * matrix<Real>(qkv + place.value, s, dv, place.row_width).transpose();
  scores.colwise() -= out_gradient.cwiseProduct(output).rowwise().sum().eval();
  scores = scale * scores.cwiseProduct(probabilities);
  matrix<Real>(dqkv + place.query, s, d, place.row_width).noalias() =
      scores * matrix<Real>(qkv + place.key, s, d, place.row_width);
  matrix<Real>(dqkv + place.key, s, d, place.row_width).noalias() +=
      scores.transpose() * matrix<Real>(qkv + place.query, s, d, place.row_width);
}

}  // namespace shardwright::executor
