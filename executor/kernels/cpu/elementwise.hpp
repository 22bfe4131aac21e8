// Rotary positions, activations and sums. Included by cpu_kernels.cpp alone.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <vector>

#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {

// Returns the rotation of each pair of a head at one position, as a point on the unit circle.
template <class Real>
std::vector<std::complex<Real>> rotations_at(const RopeShape& shape, std::int64_t position,
                                             bool inverse) {
  std::vector<std::complex<Real>> rotations;
  for (std::int64_t i = 0; i < shape.rotated / 2; ++i) {
    const double angle =
        static_cast<double>(position) *
        std::pow(shape.theta, -2.0 * static_cast<double>(i) / static_cast<double>(shape.rotated));
    rotations.push_back(std::complex<Real>(std::polar(1.0, inverse ? -angle : angle)));
  }
  return rotations;
}

template <class Real>
void rotate_head(const std::vector<std::complex<Real>>& rotations, Real* head) {
  const auto half = static_cast<std::int64_t>(rotations.size());
  for (std::int64_t i = 0; i < half; ++i) {
    const Real cosine = rotations[static_cast<std::size_t>(i)].real();
    const Real sine = rotations[static_cast<std::size_t>(i)].imag();
    const Real first = head[i], second = head[i + half];
    head[i] = first * cosine - second * sine;
    head[i + half] = second * cosine + first * sine;
  }
}

template <class Real>
void CpuKernels<Real>::rope(const RopeShape& shape, bool inverse, void* data, Queue /*queue*/) {
  for (std::int64_t position = 0; position < shape.seq_len; ++position) {
    const std::vector<std::complex<Real>> rotations = rotations_at<Real>(shape, position, inverse);
    for (std::int64_t r = position; r < shape.rows; r += shape.seq_len) {
      Real* start = static_cast<Real*>(data) + r * shape.row_width;
      for (std::int64_t head = 0; head < shape.heads; ++head)
        rotate_head(rotations, start + head * shape.head_dim);
    }
  }
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
    const Real sigmoid = Real(1) / (Real(1) + std::exp(-x));
    return {x * sigmoid, sigmoid * (Real(1) + x * (Real(1) - sigmoid))};
  }
  const Real scale = std::sqrt(Real(2) / Real(M_PI)), cubic = Real(0.044715);
  const Real t = std::tanh(scale * (x + cubic * x * x * x));
  const Real inner = scale * (Real(1) + Real(3) * cubic * x * x);
  return {Real(0.5) * x * (Real(1) + t),
          Real(0.5) * (Real(1) + t) + Real(0.5) * x * (Real(1) - t * t) * inner};
}

template <class Real>
void CpuKernels<Real>::activation(const ActivationShape& shape, const void* up, void* out,
                                  Queue /*queue*/) {
  const std::int64_t row_width = shape.width * (shape.gated ? 2 : 1);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const Real* in = static_cast<const Real*>(up) + r * row_width;
    Real* result = static_cast<Real*>(out) + r * shape.width;
    for (std::int64_t i = 0; i < shape.width; ++i) {
      const Real value = activate(shape.kind, in[i]).value;
      result[i] = shape.gated ? value * in[i + shape.width] : value;
    }
  }
}

template <class Real>
void CpuKernels<Real>::activation_backward(const ActivationShape& shape, const void* up,
                                           const void* dout, void* dup, Queue /*queue*/) {
  const std::int64_t row_width = shape.width * (shape.gated ? 2 : 1);
  for (std::int64_t r = 0; r < shape.rows; ++r) {
    const Real* in = static_cast<const Real*>(up) + r * row_width;
    const Real* gradient = static_cast<const Real*>(dout) + r * shape.width;
    Real* result = static_cast<Real*>(dup) + r * row_width;
    for (std::int64_t i = 0; i < shape.width; ++i) {
      const ActivationValue<Real> gate = activate(shape.kind, in[i]);
      const Real rest = shape.gated ? in[i + shape.width] : Real(1);
      result[i] = gradient[i] * rest * gate.slope;
      if (shape.gated) result[i + shape.width] = gradient[i] * gate.value;
    }
  }
}

template <class Real>
void CpuKernels<Real>::add(std::int64_t elements, const void* a, const void* b, void* sum,
                           Queue /*queue*/) {
  row<Real>(sum, 0, elements) = row<Real>(a, 0, elements) + row<Real>(b, 0, elements);
}

}  // namespace shardwright::executor
