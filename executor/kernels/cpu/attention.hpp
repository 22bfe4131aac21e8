// Causal attention, one head after another, with the scores of a head in memory. Included by
// cpu_kernels.hpp alone.
//
//   P = softmax(mask(Q K^T / sqrt(d))),  O = P V
//   dV = P^T dO,  dP = dO V^T,  dS = P (dP - D),  dQ = dS K / sqrt(d),  dK = dS^T Q / sqrt(d)
//   D = rowsum(dO O) = rowsum(P dP)
//
// Where keys and values come block by block (ring attention, arXiv 2310.01889), the sums of
// exponentials so far give the output so far its weight (online softmax). Backward, the final sums
// give the probabilities of each block by itself.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/op/op.hpp"
#include "executor/data/sequence_part.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {

// The head of keys and values that a head of queries shares with its group.
inline std::int64_t kv_head_of(const AttentionWork& work, std::int64_t head) {
  return head / (work.heads / work.kv_heads);
}

// Offsets in elements of a head of one sequence in the rows of queries, keys and values, and in the
// output.
struct HeadPlace {
  std::int64_t row_width = 0, query = 0, key = 0, value = 0;
  std::int64_t out_width = 0, out = 0;

  HeadPlace(const AttentionWork& work, std::int64_t sequence, std::int64_t head) {
    const std::int64_t d = work.qk_head_dim, dv = work.v_head_dim;
    const std::int64_t kv_head = kv_head_of(work, head);
    row_width = (work.heads + work.kv_heads) * d + work.kv_heads * dv;
    const std::int64_t start = sequence * work.q_tokens * row_width;
    query = start + head * d;
    key = start + (work.heads + kv_head) * d;
    value = start + (work.heads + work.kv_heads) * d + kv_head * dv;
    out_width = work.heads * dv;
    out = sequence * work.q_tokens * out_width + head * dv;
  }
};

// A row of keys and values that context-parallel ranks send: those of all heads.
inline std::int64_t key_value_width(const AttentionWork& work) {
  return work.kv_heads * (work.qk_head_dim + work.v_head_dim);
}

// One head of a sequence. A query sees the keys up to its own position in the sequence. Keys are
// those of the tokens of `owner`, by default of the whole sequence.
template <class Real>
struct HeadOperands {
  SequencePart part;
  ConstMatrixMap<Real> queries, keys, values;
  SequencePart owner{};

  // Number of keys that query `i` sees.
  std::int64_t seen(std::int64_t i) const {
    return owner.held_up_to(part.position(i, queries.rows()), keys.rows());
  }
  Real scale() const { return Real(1) / std::sqrt(static_cast<Real>(queries.cols())); }
};

// Gradients of the head's operands, which are added to: the heads of a group share keys and values,
// and blocks of these share queries.
template <class Real>
struct HeadGradients {
  MatrixMap<Real> queries, keys, values;
};

template <class Real>
HeadOperands<Real> head_operands(const AttentionWork& work, const HeadPlace& place,
                                 const Real* qkv) {
  const std::int64_t s = work.q_tokens;
  return {{},
          matrix<Real>(qkv + place.query, s, work.qk_head_dim, place.row_width),
          matrix<Real>(qkv + place.key, s, work.qk_head_dim, place.row_width),
          matrix<Real>(qkv + place.value, s, work.v_head_dim, place.row_width)};
}

template <class Real>
HeadGradients<Real> head_gradients(const AttentionWork& work, const HeadPlace& place, Real* dqkv) {
  const std::int64_t s = work.q_tokens;
  return {matrix<Real>(dqkv + place.query, s, work.qk_head_dim, place.row_width),
          matrix<Real>(dqkv + place.key, s, work.qk_head_dim, place.row_width),
          matrix<Real>(dqkv + place.value, s, work.v_head_dim, place.row_width)};
}

// Turns the scores of query `i` into probabilities, which are zero for later keys. (Eigen's exp of
// minus infinity is a denormal, which slows the products down.)
template <class Real>
void to_probabilities(RowMatrix<Real>& scores, std::int64_t i, std::int64_t seen, Real log_sum) {
  scores.row(i).head(seen) = (scores.row(i).head(seen).array() - log_sum).exp();
  scores.row(i).tail(scores.cols() - seen).setZero();
}

template <class Real>
void attention_head(const HeadOperands<Real>& head, MatrixMap<Real> out, RowMap<Real> log_sums) {
  RowMatrix<Real> scores(head.queries.rows(), head.keys.rows());
  scores.noalias() = head.scale() * (head.queries * head.keys.transpose());
  for (std::int64_t i = 0; i < scores.rows(); ++i) {
    const auto seen = scores.row(i).head(head.seen(i)).array();
    if (seen.size() == 0) {
      log_sums(i) = -std::numeric_limits<Real>::infinity();
      scores.row(i).setZero();
      continue;
    }
    const Real most = seen.maxCoeff();
    log_sums(i) = most + std::log((seen - most).exp().sum());
    to_probabilities(scores, i, head.seen(i), log_sums(i));
  }
  out.noalias() = scores * head.values;
}

// Adds the outputs over a block of keys to those over the blocks before it.
template <class Real>
void add_attention(const RowMatrix<Real>& block_out, ConstRowMap<Real> block_log_sums,
                   MatrixMap<Real> out, RowMap<Real> log_sums) {
  for (std::int64_t i = 0; i < out.rows(); ++i) {
    const Real before = log_sums(i), added = block_log_sums(i);
    const Real most = std::max(before, added);
    log_sums(i) = most + std::log(std::exp(before - most) + std::exp(added - most));
    out.row(i) = std::exp(before - log_sums(i)) * out.row(i) +
                 std::exp(added - log_sums(i)) * block_out.row(i);
  }
}

// Without `out`, D comes from the probabilities.
template <class Real>
void attention_head_backward(const HeadOperands<Real>& head,
                             std::optional<ConstMatrixMap<Real>> out, ConstRowMap<Real> log_sums,
                             ConstMatrixMap<Real> out_gradient, HeadGradients<Real> gradients) {
  RowMatrix<Real> probabilities(head.queries.rows(), head.keys.rows());
  probabilities.noalias() = head.scale() * (head.queries * head.keys.transpose());
  for (std::int64_t i = 0; i < probabilities.rows(); ++i)
    to_probabilities(probabilities, i, head.seen(i), log_sums(i));
  gradients.values.noalias() += probabilities.transpose() * out_gradient;
  RowMatrix<Real> scores(probabilities.rows(), probabilities.cols());
  scores.noalias() = out_gradient * head.values.transpose();
  scores.colwise() -= out ? out_gradient.cwiseProduct(*out).rowwise().sum().eval()
                          : probabilities.cwiseProduct(scores).rowwise().sum().eval();
  scores = head.scale() * scores.cwiseProduct(probabilities);
  gradients.queries.noalias() += scores * head.keys;
  gradients.keys.noalias() += scores.transpose() * head.queries;
}

// A head's keys or values of a whole sequence in the order of their positions. They were gathered
// from the context-parallel ranks: `gathered` holds the rows of one rank after those of another.
template <class Real>
class GatheredHead {
 public:
  // `column` is the head's first one in a row of the gathered keys and values.
  GatheredHead(const AttentionWork& work, std::int64_t ranks, std::int64_t sequence,
               std::int64_t column, std::int64_t columns)
      : ranks_(ranks),
        held_(work.q_tokens),
        width_(key_value_width(work)),
        start_(sequence * held_ * width_ + column),
        of_rank_(work.batch * held_ * width_),
        values_(RowMatrix<Real>::Zero(ranks * held_, columns)) {}

  void read(const Real* gathered) {
    for_each_row([&](std::int64_t position, std::int64_t offset) {
      values_.row(position) = matrix<Real>(gathered + offset, 1, values_.cols());
    });
  }
  void add_to(Real* gathered) const {
    for_each_row([&](std::int64_t position, std::int64_t offset) {
      matrix<Real>(gathered + offset, 1, values_.cols()) += values_.row(position);
    });
  }
  ConstMatrixMap<Real> view() const {
    return matrix<Real>(static_cast<const Real*>(values_.data()), values_.rows(), values_.cols());
  }
  MatrixMap<Real> gradient() {
    return matrix<Real>(values_.data(), values_.rows(), values_.cols());
  }

 private:
  template <class Visit>
  void for_each_row(Visit visit) const {
    for (std::int64_t rank = 0; rank < ranks_; ++rank) {
      for (std::int64_t i = 0; i < held_; ++i)
        visit(SequencePart{ranks_, rank}.position(i, held_), start_ + rank * of_rank_ + i * width_);
    }
  }

  std::int64_t ranks_, held_, width_, start_, of_rank_;
  RowMatrix<Real> values_;
};

// The keys and values of a head, or their gradients, over all context-parallel ranks.
template <class Real>
struct GatheredKeysValues {
  GatheredHead<Real> keys, values;

  GatheredKeysValues(const AttentionWork& work, std::int64_t ranks, std::int64_t sequence,
                     std::int64_t head)
      : keys(work, ranks, sequence, kv_head_of(work, head) * work.qk_head_dim, work.qk_head_dim),
        values(work, ranks, sequence,
               work.kv_heads * work.qk_head_dim + kv_head_of(work, head) * work.v_head_dim,
               work.v_head_dim) {}
};

// Offsets in elements of the keys and values of a head of one sequence in a block of a ring.
struct BlockPlace {
  std::int64_t width = 0, key = 0, value = 0;

  BlockPlace(const AttentionWork& work, std::int64_t sequence, std::int64_t head)
      : width(key_value_width(work)) {
    const std::int64_t start = sequence * work.kv_tokens * width, kv_head = kv_head_of(work, head);
    key = start + kv_head * work.qk_head_dim;
    value = start + work.kv_heads * work.qk_head_dim + kv_head * work.v_head_dim;
  }
};

// The operands with the keys and values of a block in place of those among the rows.
template <class Real>
HeadOperands<Real> block_operands(const AttentionWork& work, const BlockPlace& place,
                                  const HeadOperands<Real>& operands, const Real* block) {
  return {operands.part, operands.queries,
          matrix<Real>(block + place.key, work.kv_tokens, work.qk_head_dim, place.width),
          matrix<Real>(block + place.value, work.kv_tokens, work.v_head_dim, place.width),
          operands.owner};
}

template <class Real>
HeadGradients<Real> block_gradients(const AttentionWork& work, const BlockPlace& place,
                                    const HeadGradients<Real>& gradients, Real* block) {
  return {gradients.queries,
          matrix<Real>(block + place.key, work.kv_tokens, work.qk_head_dim, place.width),
          matrix<Real>(block + place.value, work.kv_tokens, work.v_head_dim, place.width)};
}

// The operands of a step of a ring, whose keys and values are those of `block`, or lie in the rows.
template <class Real>
HeadOperands<Real> ring_operands(const AttentionWork& work, SequencePart part, SequencePart owner,
                                 std::int64_t sequence, std::int64_t head, const void* qkv,
                                 const void* block) {
  HeadOperands<Real> operands =
      head_operands(work, HeadPlace(work, sequence, head), static_cast<const Real*>(qkv));
  operands.part = part;
  operands.owner = owner;
  if (block == nullptr) return operands;
  return block_operands(work, BlockPlace(work, sequence, head), operands,
                        static_cast<const Real*>(block));
}

// The keys and values of whole sequences.
template <class Real>
GatheredKeysValues<Real> gathered_operands(const AttentionWork& work, SequencePart part,
                                           std::int64_t sequence, std::int64_t head,
                                           const void* gathered) {
  GatheredKeysValues<Real> operands(work, part.ranks, sequence, head);
  operands.keys.read(static_cast<const Real*>(gathered));
  operands.values.read(static_cast<const Real*>(gathered));
  return operands;
}

}  // namespace shardwright::executor
