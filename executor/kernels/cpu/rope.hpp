// Rotary positions of one head. Included by cpu_kernels.hpp alone.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "executor/kernels/kernels.hpp"

namespace shardwright::executor {

// Returns the rotation of each pair of a head at one position, as a point of the complex plane. The
// inverse is that for gradients: the transpose, which has the same magnitude.
template <class Real>
std::vector<std::complex<Real>> rotations_at(const RopeShape& shape, std::int64_t position,
                                             bool inverse) {
  std::vector<std::complex<Real>> rotations;
  for (std::int64_t i = 0; i < shape.rotated / 2; ++i) {
    const double angle = static_cast<double>(position) * shape.frequency(i);
    rotations.push_back(
        std::complex<Real>(std::polar(shape.magnitude(), inverse ? -angle : angle)));
  }
  return rotations;
}

template <class Real>
void rotate_head(const std::vector<std::complex<Real>>& rotations, bool interleaved, Real* head) {
  const auto pairs = static_cast<std::int64_t>(rotations.size());
  const std::int64_t next = interleaved ? 2 : 1, partner = interleaved ? 1 : pairs;
  for (std::int64_t i = 0; i < pairs; ++i) {
    const Real cosine = rotations[static_cast<std::size_t>(i)].real();
    const Real sine = rotations[static_cast<std::size_t>(i)].imag();
    Real& x = head[i * next];
    Real& y = head[i * next + partner];
    const Real first = x, second = y;
    x = first * cosine - second * sine;
    y = second * cosine + first * sine;
  }
}

}  // namespace shardwright::executor
