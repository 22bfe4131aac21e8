// Gradient norm, AdamW, and memory operations. Included by cpu_kernels.cpp alone.
#pragma once

#include <cmath>
#include <cstring>

#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {

template <class Real>
void CpuKernels<Real>::add_squares(std::int64_t elements, const void* gradient, double* sum,
                                   Queue /*queue*/) {
  *sum += row<Real>(gradient, 0, elements).template cast<double>().square().sum();
}

template <class Real>
void CpuKernels<Real>::count_not_finite(std::int64_t elements, Element format, const void* data,
                                        double* count, Queue /*queue*/) {
  const auto add = [&](const auto* values) {
    for (std::int64_t i = 0; i < elements; ++i) *count += std::isfinite(values[i]) ? 0.0 : 1.0;
  };
  if (format == Element::Float64) {
    add(static_cast<const double*>(data));
  } else {
    add(static_cast<const float*>(data));
  }
}

template <class Real>
void CpuKernels<Real>::adamw(std::int64_t elements, const AdamStep& step, const AdamArrays& arrays,
                             const double* gradient_squares, Queue /*queue*/) {
  if (!std::isfinite(*gradient_squares)) return;
  const auto count = static_cast<Real>(step.step);
  const auto beta1 = static_cast<Real>(step.beta1), beta2 = static_cast<Real>(step.beta2);
  const Real first_correction = Real(1) - std::pow(beta1, count);
  const Real second_correction = Real(1) - std::pow(beta2, count);
  const auto rate = static_cast<Real>(step.learning_rate);
  const double norm = std::sqrt(*gradient_squares), most = static_cast<double>(step.clip_norm);
  const Real scale = most > 0.0 && norm > most ? static_cast<Real>(most / norm) : Real(1);
  const auto scaled = row<Real>(arrays.gradient, 0, elements) * scale;
  auto first = row<Real>(arrays.first_moment, 0, elements);
  auto second = row<Real>(arrays.second_moment, 0, elements);
  auto value = row<Real>(arrays.weight, 0, elements);
  first = first * beta1 + scaled * (Real(1) - beta1);
  second = second * beta2 + scaled.square() * (Real(1) - beta2);
  value *= Real(1) - rate * static_cast<Real>(step.weight_decay);
  value -= rate * (first / first_correction) /
           ((second / second_correction).sqrt() + static_cast<Real>(step.epsilon));
}

template <class Real>
void CpuKernels<Real>::zero(void* data, std::size_t bytes, Queue /*queue*/) {
  std::memset(data, 0, bytes);
}

template <class Real>
void CpuKernels<Real>::copy(void* to, const void* from, std::size_t bytes, Queue /*queue*/) {
  std::memcpy(to, from, bytes);
}

}  // namespace shardwright::executor
