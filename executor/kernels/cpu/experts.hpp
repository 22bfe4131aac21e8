// The CPU kernels of mixtures of experts.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "executor/kernels/cpu/eigen_maps.hpp"
#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Softmax over all experts (arXiv 2101.03961, section 2.1); of equal probabilities the first expert
// wins.
template <class Real>
void choose_experts_of_rows(const RouterShape& shape, void* scores, std::int32_t* chosen,
                            void* weights) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(shape.experts));
  for (std::int64_t t = 0; t < shape.tokens; ++t) {
    auto here = row<Real>(scores, t, shape.experts);
    here = (here - here.maxCoeff()).exp();
    here /= here.sum();
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(order.begin(), order.begin() + shape.top_k, order.end(),
                      [&](std::int32_t a, std::int32_t b) {
                        return here(a) != here(b) ? here(a) > here(b) : a < b;
                      });
    auto shares = row<Real>(weights, t, shape.top_k);
    for (std::int64_t k = 0; k < shape.top_k; ++k) {
      const std::int32_t expert = order[static_cast<std::size_t>(k)];
      chosen[t * shape.top_k + k] = expert;
      shares(k) = here(expert);
    }
    if (shape.renormalised) shares /= shares.sum();
  }
}

// With p the probabilities, s the sum of the chosen ones, w the weights and g their gradients:
//
//   dp = g                          or, renormalised, dp = (g - w . g) / s
//   dlogits = p (dp - p . dp)
template <class Real>
void choose_experts_backward_of_rows(const RouterShape& shape, const void* probabilities,
                                     const std::int32_t* chosen, const void* dweights,
                                     const double* dbalance, std::int64_t balanced_tokens,
                                     void* dscores) {
  for (std::int64_t t = 0; t < shape.tokens; ++t) {
    const auto p = row<Real>(probabilities, t, shape.experts);
    const auto g = row<Real>(dweights, t, shape.top_k);
    auto out = row<Real>(dscores, t, shape.experts);
    const std::int32_t* of_token = chosen + t * shape.top_k;
    Real sum = 1, along = 0;
    if (shape.renormalised) {
      sum = 0;
      for (std::int64_t k = 0; k < shape.top_k; ++k) sum += p(of_token[k]);
      for (std::int64_t k = 0; k < shape.top_k; ++k) along += p(of_token[k]) / sum * g(k);
    }
    out.setZero();
    for (std::int64_t k = 0; k < shape.top_k; ++k) out(of_token[k]) = (g(k) - along) / sum;
    if (dbalance != nullptr) {
      out += row<double>(dbalance, t / balanced_tokens, shape.experts).template cast<Real>();
    }
    const Real mean = (p * out).sum();
    out = p * (out - mean);
  }
}

template <class Real>
void sums_of_rows(std::int64_t width, std::int64_t each, std::span<const std::int32_t> index,
                  const void* from, const void* addend, void* to) {
  const auto rows = static_cast<std::int64_t>(index.size()) / each;
  for (std::int64_t i = 0; i < rows; ++i) {
    auto sum = row<Real>(to, i, width);
    sum.setZero();
    for (const std::int32_t source :
         index.subspan(static_cast<std::size_t>(i * each), static_cast<std::size_t>(each)))
      if (source >= 0) sum += row<Real>(from, source, width);
    if (addend != nullptr) sum += row<Real>(addend, i, width);
  }
}

// Calls visit(first row, rows, expert) for the experts that have rows.
template <class Visit>
void for_each_expert(const ExpertProductShape& shape, Visit visit) {
  std::int64_t first = 0;
  for (std::size_t expert = 0; expert < shape.rows.size(); ++expert) {
    const std::int64_t rows = shape.rows[expert];
    if (rows > 0) visit(first, rows, static_cast<std::int64_t>(expert));
    first += rows;
  }
}

// Rows of one of the results that lie side by side. `Value` is Real or const Real.
template <class Value>
auto side_by_side(const ExpertProductShape& shape, Value* data, std::int64_t first,
                  std::int64_t rows, std::size_t part, std::size_t parts) {
  const std::int64_t width = shape.outputs * static_cast<std::int64_t>(parts);
  Value* start = data + first * width + static_cast<std::int64_t>(part) * shape.outputs;
  return matrix<std::remove_const_t<Value>>(start, rows, shape.outputs, width);
}

// One of the matrices of an expert.
template <class Value>
auto expert_matrix(const ExpertProductShape& shape, Value* first, std::int64_t expert) {
  return matrix<std::remove_const_t<Value>>(first + expert * shape.outputs * shape.inputs,
                                            shape.outputs, shape.inputs);
}

template <class Real>
void expert_products(const ExpertProductShape& shape, const Real* x,
                     std::span<const void* const> weights, Real* y) {
  for_each_expert(shape, [&](std::int64_t first, std::int64_t rows, std::int64_t expert) {
    const auto in = matrix<Real>(x + first * shape.inputs, rows, shape.inputs);
    for (std::size_t part = 0; part < weights.size(); ++part) {
      const auto* weight = static_cast<const Real*>(weights[part]);
      side_by_side(shape, y, first, rows, part, weights.size()).noalias() =
          in * expert_matrix(shape, weight, expert).transpose();
    }
  });
}

template <class Real>
void expert_input_gradients(const ExpertProductShape& shape, const Real* dy,
                            std::span<const void* const> weights, Real* dx) {
  for_each_expert(shape, [&](std::int64_t first, std::int64_t rows, std::int64_t expert) {
    auto out = matrix<Real>(dx + first * shape.inputs, rows, shape.inputs);
    out.setZero();
    for (std::size_t part = 0; part < weights.size(); ++part) {
      const auto* weight = static_cast<const Real*>(weights[part]);
      out.noalias() += side_by_side(shape, dy, first, rows, part, weights.size()) *
                       expert_matrix(shape, weight, expert);
    }
  });
}

template <class Real>
void expert_weight_gradients(const ExpertProductShape& shape, const Real* dy, const Real* x,
                             std::span<void* const> dweights) {
  for_each_expert(shape, [&](std::int64_t first, std::int64_t rows, std::int64_t expert) {
    const auto in = matrix<Real>(x + first * shape.inputs, rows, shape.inputs);
    for (std::size_t part = 0; part < dweights.size(); ++part) {
      expert_matrix(shape, static_cast<Real*>(dweights[part]), expert).noalias() +=
          side_by_side(shape, dy, first, rows, part, dweights.size()).transpose() * in;
    }
  });
}

}  // namespace shardwright::executor
