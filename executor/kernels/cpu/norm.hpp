// LayerNorm (arXiv 1607.06450) and RMSNorm (arXiv 1910.07467). Included by cpu_kernels.cpp alone.
//
//   LayerNorm  y = (x - mean) r w + b, r = 1 / sqrt(var + eps)
//   RMSNorm    y = x r w,              r = 1 / sqrt(mean(x^2) + eps)
#pragma once

#include <cmath>

#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {

// A row minus its mean (LayerNorm only), divided by its root mean square.
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

template <class Real>
void CpuKernels<Real>::norm(const NormShape& shape, const void* x, const void* weight,
                            const void* bias, void* y, Queue /*queue*/) {
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const NormalisedRow<Real> normalised(shape, row<Real>(x, i, shape.width));
    auto out = row<Real>(y, i, shape.width);
    out = normalised.values * row<Real>(weight, 0, shape.width);
    if (bias != nullptr) out += row<Real>(bias, 0, shape.width);
  }
}

template <class Real>
void CpuKernels<Real>::norm_backward(const NormShape& shape, const void* dy, const void* residual,
                                     const void* x, const void* weight, void* dx, void* dweight,
                                     void* dbias, Queue /*queue*/) {
  for (std::int64_t i = 0; i < shape.rows; ++i) {
    const NormalisedRow<Real> normalised(shape, row<Real>(x, i, shape.width));
    const auto gradient = row<Real>(dy, i, shape.width);
    row<Real>(dweight, 0, shape.width) += gradient * normalised.values;
    if (dbias != nullptr) row<Real>(dbias, 0, shape.width) += gradient;
    // The gradient of the normalised row minus the terms of the mean and the deviation.
    Eigen::Array<Real, 1, Eigen::Dynamic> inner = gradient * row<Real>(weight, 0, shape.width);
    const Real along = (inner * normalised.values).mean();
    if (shape.kind == NormKind::LayerNorm) inner -= inner.mean();
    inner = (inner - normalised.values * along) * normalised.inverse_deviation;
    if (residual != nullptr) inner += row<Real>(residual, i, shape.width);
    row<Real>(dx, i, shape.width) = inner;
  }
}

}  // namespace shardwright::executor
