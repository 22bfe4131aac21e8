// Products with weight matrices. Included by cpu_kernels.cpp alone.
#pragma once

#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {

template <class Real>
void CpuKernels<Real>::linear(const LinearShape& shape, const void* x, const void* weight,
                              const void* bias, void* y, Queue /*queue*/) {
  auto out = matrix<Real>(y, shape.rows, shape.outputs);
  out.noalias() = matrix<Real>(x, shape.rows, shape.inputs) *
                  matrix<Real>(weight, shape.outputs, shape.inputs).transpose();
  if (bias != nullptr) out.rowwise() += row<Real>(bias, 0, shape.outputs).matrix();
}

template <class Real>
void CpuKernels<Real>::linear_input_gradient(const LinearShape& shape, const void* dy,
                                             const void* weight, void* dx, Queue /*queue*/) {
  matrix<Real>(dx, shape.rows, shape.inputs).noalias() =
      matrix<Real>(dy, shape.rows, shape.outputs) *
      matrix<Real>(weight, shape.outputs, shape.inputs);
}

template <class Real>
void CpuKernels<Real>::linear_weight_gradient(const LinearShape& shape, const void* dy,
                                              const void* x, void* dweight, void* dbias,
                                              Queue /*queue*/) {
  const auto gradient = matrix<Real>(dy, shape.rows, shape.outputs);
  matrix<Real>(dweight, shape.outputs, shape.inputs).noalias() +=
      gradient.transpose() * matrix<Real>(x, shape.rows, shape.inputs);
  if (dbias != nullptr) row<Real>(dbias, 0, shape.outputs).matrix() += gradient.colwise().sum();
}

}  // namespace shardwright::executor
