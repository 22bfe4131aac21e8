// The normalisation of a row. Included by cpu_kernels.hpp alone.
#pragma once

#include <cmath>

#include "executor/kernels/cpu/eigen_maps.hpp"
#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// A row minus its mean (LayerNorm, arXiv 1607.06450, only), divided by its root mean square
// (RMSNorm, arXiv 1910.07467).
//
//   LayerNorm  y = (x - mean) r w + b, r = 1 / sqrt(var + eps)
//   RMSNorm    y = x r w,              r = 1 / sqrt(mean(x^2) + eps)
template <class Real>
struct NormalisedRow {
  Eigen::Array<Real, 1, Eigen::Dynamic> values;
  Real inverse_deviation;

  NormalisedRow(const NormShape& shape, const ConstRowMap<Real>& x) : values(x) {
    if (shape.kind == NormKind::LayerNorm) values -= values.mean();
    inverse_deviation =
        Real(1) / std::sqrt(values.square().mean() + static_cast<Real>(shape.epsilon));
    values *= inverse_deviation;
  }
};

}  // namespace shardwright::executor
