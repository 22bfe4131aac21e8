// Activation functions on the CPU.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

template <class Real>
Real logistic(Real x) {
  return Real(1) / (Real(1) + std::exp(-x));
}

// The value of an activation function and its derivative.
template <class Real>
struct ActivationValue {
  Real value, slope;
};

// GELU is the tanh approximation (arXiv 1606.08415) of GPT-2.
template <class Real>
ActivationValue<Real> activate(Activation kind, Real x) {
  if (kind == Activation::Relu) return {std::max(x, Real(0)), x > Real(0) ? Real(1) : Real(0)};
  if (kind == Activation::Silu) {
    const Real sigmoid = logistic(x);
    return {x * sigmoid, sigmoid * (Real(1) + x * (Real(1) - sigmoid))};
  }
  const Real scale = std::sqrt(Real(2) / Real(M_PI)), cubic = Real(0.044715);
  const Real t = std::tanh(scale * (x + cubic * x * x * x));
  const Real inner = scale * (Real(1) + Real(3) * cubic * x * x);
  return {Real(0.5) * x * (Real(1) + t),
          Real(0.5) * (Real(1) + t) + Real(0.5) * x * (Real(1) - t * t) * inner};
}

template <class Real>
void activate_rows(const ActivationShape& shape, const Real* up, Real* out) {
  const std::int64_t row_width = shape.width * (shape.gated ? 2 : 1);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const Real* in = up + r * row_width;
    Real* result = out + r * shape.width;
    for (std::int64_t i = 0; i < shape.width; ++i) {
      const Real value = activate(shape.kind, in[i]).value;
      result[i] = shape.gated ? value * in[i + shape.width] : value;
    }
  }
}

template <class Real>
void activate_rows_backward(const ActivationShape& shape, const Real* up, const Real* dout,
                            Real* dup) {
  const std::int64_t row_width = shape.width * (shape.gated ? 2 : 1);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const Real* in = up + r * row_width;
    const Real* gradient = dout + r * shape.width;
    Real* result = dup + r * row_width;
    for (std::int64_t i = 0; i < shape.width; ++i) {
      const ActivationValue<Real> gate = activate(shape.kind, in[i]);
      const Real rest = shape.gated ? in[i + shape.width] : Real(1);
      result[i] = gradient[i] * rest * gate.slope;
      if (shape.gated) result[i + shape.width] = gradient[i] * gate.value;
    }
  }
}

}  // namespace shardwright::executor
