// Rotary positions of one head. Included by cpu_kernels.hpp alone.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Returns the rotation of each pair of a head at one position, as a point on the unit circle.
template <class Real>
std::vector<std::complex<Real>> rotations_at(const RopeShape& shape, std::int64_t position,
                                             bool inverse) {
  std::vector<std::complex<Real>> rotations;
  for (std::int64_t i = 0; i < shape.rotated / 2; ++i) {
    const double angle = static_cast<double>(position) * shape.frequency(i);
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

}  // namespace shardwright::executor
