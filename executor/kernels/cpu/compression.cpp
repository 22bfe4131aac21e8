#include "executor/kernels/cpu/compression.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/lowering/replica_exchange.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {
namespace {

constexpr auto kBlock = static_cast<std::size_t>(kInt8Block);
constexpr float kLargest = 127.0F;

using RowMajor = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Matrix = Eigen::Map<RowMajor>;
using ConstMatrix = Eigen::Map<const RowMajor>;

Eigen::Index size(std::size_t number) {
  return static_cast<Eigen::Index>(number);
}

// The rows of the square matrix that are full.
std::size_t full_rows(std::size_t values, std::size_t rows) {
  return values / rows;
}

}  // namespace

void to_int8(std::span<const float> values, std::size_t elements, std::byte* part) {
  std::byte* scales = part + elements;
  for (std::size_t block = 0; block < elements / kBlock; ++block) {
    const std::size_t first = block * kBlock, end = std::min(first + kBlock, values.size());
    float most = 0.0F;
    for (std::size_t i = first; i < end; ++i) most = std::max(most, std::abs(values[i]));
    const float scale = most / kLargest;
    std::memcpy(scales + block * sizeof(float), &scale, sizeof scale);
    for (std::size_t i = first; i < first + kBlock; ++i) {
      const float number = i < end && scale > 0.0F ? std::nearbyint(values[i] / scale) : 0.0F;
      part[i] = static_cast<std::byte>(static_cast<std::int8_t>(number));
    }
  }
}

void add_int8(const std::byte* part, std::size_t elements, std::span<float> sum) {
  const std::byte* scales = part + elements;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    float scale = 0.0F;
    std::memcpy(&scale, scales + i / kBlock * sizeof(float), sizeof scale);
    sum[i] += scale * static_cast<float>(static_cast<std::int8_t>(part[i]));
  }
}

std::vector<TopkElement> largest_elements(std::span<const float> values, std::size_t count) {
  std::vector<std::uint32_t> places(values.size());
  std::iota(places.begin(), places.end(), 0U);
  const auto larger = [&](std::uint32_t a, std::uint32_t b) {
    const float x = std::abs(values[a]), y = std::abs(values[b]);
    return x > y || (x == y && a < b);
  };
  count = std::min(count, values.size());
  if (count < places.size())
    std::nth_element(places.begin(), places.begin() + static_cast<std::ptrdiff_t>(count),
                     places.end(), larger);
  places.resize(count);
  std::sort(places.begin(), places.end());
  std::vector<TopkElement> elements;
  elements.reserve(count);
  for (const std::uint32_t place : places) elements.push_back({place, values[place]});
  return elements;
}

void make_orthonormal(std::span<float> matrix, std::size_t rows, std::size_t columns) {
  // What rounding leaves of a column that depends on the others, relative to the column.
  constexpr double kDependent = 1e-5;
  Eigen::MatrixXd whole = Matrix(matrix.data(), size(rows), size(columns)).cast<double>();
  for (Eigen::Index c = 0; c < whole.cols(); ++c) {
    const double before = whole.col(c).norm();
    // The second pass takes away what rounding left of the first.
    for (int pass = 0; pass < 2; ++pass) {
      for (Eigen::Index other = 0; other < c; ++other)
        whole.col(c) -= whole.col(other).dot(whole.col(c)) * whole.col(other);
    }
    const double after = whole.col(c).norm();
    if (after <= kDependent * before) {
      whole.col(c).setZero();
    } else {
      whole.col(c) /= after;
    }
  }
  Matrix(matrix.data(), size(rows), size(columns)) = whole.cast<float>();
}

void multiply_thin(std::span<const float> values, std::span<const float> q, std::size_t rows,
                   std::size_t columns, std::span<float> p) {
  const std::size_t full = full_rows(values.size(), rows), rest = values.size() - full * rows;
  const ConstMatrix right(q.data(), size(rows), size(columns));
  Matrix product(p.data(), size(rows), size(columns));
  product.setZero();
  product.topRows(size(full)).noalias() =
      ConstMatrix(values.data(), size(full), size(rows)) * right;
  if (rest == 0) return;
  product.row(size(full)).noalias() =
      ConstMatrix(values.data() + full * rows, 1, size(rest)) * right.topRows(size(rest));
}

void multiply_transposed(std::span<const float> values, std::span<const float> p, std::size_t rows,
                         std::size_t columns, std::span<float> q) {
  const std::size_t full = full_rows(values.size(), rows), rest = values.size() - full * rows;
  const ConstMatrix left(p.data(), size(rows), size(columns));
  Matrix product(q.data(), size(rows), size(columns));
  product.noalias() =
      ConstMatrix(values.data(), size(full), size(rows)).transpose() * left.topRows(size(full));
  if (rest == 0) return;
  product.topRows(size(rest)).noalias() +=
      ConstMatrix(values.data() + full * rows, 1, size(rest)).transpose() * left.row(size(full));
}

void multiply_back(std::span<const float> p, std::span<const float> q, std::size_t rows,
                   std::size_t columns, std::span<float> values) {
  const std::size_t full = full_rows(values.size(), rows), rest = values.size() - full * rows;
  const ConstMatrix left(p.data(), size(rows), size(columns)),
      right(q.data(), size(rows), size(columns));
  Matrix(values.data(), size(full), size(rows)).noalias() =
      left.topRows(size(full)) * right.transpose();
  if (rest == 0) return;
  Matrix(values.data() + full * rows, 1, size(rest)).noalias() =
      left.row(size(full)) * right.topRows(size(rest)).transpose();
}

}  // namespace shardwright::executor
