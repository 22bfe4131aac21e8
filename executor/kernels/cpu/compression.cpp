#include "executor/kernels/cpu/compression.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/lowering/replica_exchange.hpp"
#include "executor/kernels/cpu/eigen_maps.hpp"

namespace shardwright::executor {
namespace {

constexpr float kLargestInt8 = 127.0F, kLargestE4m3 = 448.0F;

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

std::size_t block_elements(ReplicaCompression form) {
  return static_cast<std::size_t>(coded_block_elements(form));
}

// What the block's codes are multiplied by.
float scale_of(ReplicaCompression form, std::span<const float> block) {
  float most = 0.0F, total = 0.0F;
  for (const float value : block) {
    most = std::max(most, std::abs(value));
    total += std::abs(value);
  }
  if (form == ReplicaCompression::Int8) return most / kLargestInt8;
  if (form == ReplicaCompression::Fp8) return most / kLargestE4m3;
  if (form == ReplicaCompression::Fp4) return most;
  return block.empty() ? 0.0F : total / static_cast<float>(block.size());
}

// The code of element `i` among those of a part whose codes begin at `codes`, all of them zero.
void set_code(ReplicaCompression form, float scaled, std::size_t i, std::byte* codes) {
  switch (form) {
    case ReplicaCompression::Int8:
      codes[i] = static_cast<std::byte>(static_cast<std::int8_t>(std::nearbyint(scaled)));
      return;
    case ReplicaCompression::Fp8:
      codes[i] = static_cast<std::byte>(to_e4m3(scaled));
      return;
    case ReplicaCompression::Fp4:
      codes[i / 2] |= static_cast<std::byte>(to_e3m0(scaled) << i % 2 * 4);
      return;
    default:
      if (scaled < 0.0F) codes[i / 8] |= static_cast<std::byte>(1U << i % 8);
  }
}

float code_at(ReplicaCompression form, const std::byte* codes, std::size_t i) {
  switch (form) {
    case ReplicaCompression::Int8:
      return static_cast<float>(static_cast<std::int8_t>(codes[i]));
    case ReplicaCompression::Fp8:
      return from_e4m3(static_cast<std::uint8_t>(codes[i]));
    case ReplicaCompression::Fp4:
      return from_e3m0(static_cast<std::uint8_t>(codes[i / 2] >> i % 2 * 4 & std::byte(15)));
    default:
      return (codes[i / 8] >> i % 8 & std::byte(1)) == std::byte() ? 1.0F : -1.0F;
  }
}

}  // namespace

std::uint8_t to_e4m3(float value) {
  const float magnitude = std::min(std::abs(value), kLargestE4m3);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  // Normal numbers are 8 to 15 units of 2^(power - 3); 16 of them are the next power's first one.
  const int power = magnitude > 0.0F ? std::max(exponent - 1, -6) : -6;
  const int units = static_cast<int>(std::nearbyint(std::ldexp(magnitude, 3 - power)));
  return static_cast<std::uint8_t>((std::signbit(value) ? 0x80 : 0) + (power + 6) * 8 + units);
}

float from_e4m3(std::uint8_t code) {
  const int bits = code & 0x7F, exponent = bits / 8, mantissa = bits % 8;
  const float magnitude = exponent == 0
                              ? std::ldexp(static_cast<float>(mantissa), -9)
                              : std::ldexp(static_cast<float>(8 + mantissa), exponent - 10);
  return (code & 0x80) != 0 ? -magnitude : magnitude;
}

std::uint8_t to_e3m0(float value) {
  constexpr int kLeastPower = -6;
  const float magnitude = std::abs(value);
  const std::uint8_t sign = std::signbit(value) ? 8 : 0;
  if (magnitude <= std::ldexp(0.5F, kLeastPower)) return sign;
  int exponent = 0;
  // Between two powers the larger one is nearer from its three quarters on.
  const int power = std::frexp(magnitude, &exponent) >= 0.75F ? exponent : exponent - 1;
  return static_cast<std::uint8_t>(sign + std::clamp(power, kLeastPower, 0) - kLeastPower + 1);
}

float from_e3m0(std::uint8_t code) {
  const int power = (code & 7) - 7;
  const float magnitude = power == -7 ? 0.0F : std::ldexp(1.0F, power);
  return (code & 8) != 0 ? -magnitude : magnitude;
}

void to_codes(ReplicaCompression form, std::span<const float> values, std::size_t elements,
              std::byte* part) {
  const std::size_t block = block_elements(form), blocks = elements / block;
  std::byte* scales = part + blocks * static_cast<std::size_t>(kCodedBlockBytes);
  std::fill(part, scales, std::byte());
  for (std::size_t b = 0; b < blocks; ++b) {
    const std::size_t first = std::min(b * block, values.size());
    const auto own = values.subspan(first, std::min(block, values.size() - first));
    const float scale = scale_of(form, own);
    std::memcpy(scales + b * sizeof(float), &scale, sizeof scale);
    if (scale == 0.0F) continue;
    for (std::size_t i = 0; i < own.size(); ++i) set_code(form, own[i] / scale, first + i, part);
  }
}

void add_codes(ReplicaCompression form, const std::byte* part, std::size_t elements,
               std::span<float> sum) {
  const std::size_t block = block_elements(form);
  const std::byte* scales = part + elements / block * static_cast<std::size_t>(kCodedBlockBytes);
  for (std::size_t i = 0; i < sum.size(); ++i) {
    float scale = 0.0F;
    std::memcpy(&scale, scales + i / block * sizeof(float), sizeof scale);
    sum[i] += scale * code_at(form, part, i);
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
