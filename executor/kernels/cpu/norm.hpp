// The normalisation of a row. Included by cpu_kernels.hpp alone.
#pragma once

#include <cmath>
#include <type_traits>

#include "executor/kernels/cpu/eigen_maps.hpp"
#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Row `index` of a norm's inputs or of their gradients.
template <class Real, class Data>
auto input_row(const NormShape& shape, Data* data, std::int64_t index) {
  using Elements = std::conditional_t<std::is_const_v<Data>, const Real, Real>;
  const std::int64_t width = shape.input_width == 0 ? shape.width : shape.input_width;
  return row<Real>(static_cast<Data*>(static_cast<Elements*>(data) + index * width), 0,
                   shape.width);
}

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
