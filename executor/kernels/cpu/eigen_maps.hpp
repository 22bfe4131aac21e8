// Views of untyped buffers as Eigen matrices. Included by the CPU kernels alone.
#pragma once

#include <Eigen/Core>
#include <cstdint>

namespace shardwright::executor {

template <class Real>
using RowMatrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Real>
using MatrixMap = Eigen::Map<RowMatrix<Real>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class Real>
using ConstMatrixMap = Eigen::Map<const RowMatrix<Real>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class Real>
using RowMap = Eigen::Map<Eigen::Array<Real, 1, Eigen::Dynamic>>;
template <class Real>
using ConstRowMap = Eigen::Map<const Eigen::Array<Real, 1, Eigen::Dynamic>>;

// `stride` is the distance between the starts of two rows; 0 stands for `columns`.
template <class Real>
MatrixMap<Real> matrix(void* data, std::int64_t rows, std::int64_t columns,
                       std::int64_t stride = 0) {
  return {static_cast<Real*>(data), rows, columns,
          Eigen::OuterStride<>(stride == 0 ? columns : stride)};
}

template <class Real>
ConstMatrixMap<Real> matrix(const void* data, std::int64_t rows, std::int64_t columns,
                            std::int64_t stride = 0) {
  return {static_cast<const Real*>(data), rows, columns,
          Eigen::OuterStride<>(stride == 0 ? columns : stride)};
}

// Returns row `index` of a matrix with rows of `width` elements.
template <class Real>
RowMap<Real> row(void* data, std::int64_t index, std::int64_t width) {
  return {static_cast<Real*>(data) + index * width, width};
}

template <class Real>
ConstRowMap<Real> row(const void* data, std::int64_t index, std::int64_t width) {
  return {static_cast<const Real*>(data) + index * width, width};
}

}  // namespace shardwright::executor
