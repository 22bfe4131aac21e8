#include "executor/runtime/initial_values.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "executor/data/counter_random.hpp"

namespace shardwright::executor {
namespace {

constexpr double kDeviation = 0.02;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// Box-Muller: two uniform numbers per normal one.
float normal(std::uint64_t key, std::uint64_t index, double deviation) {
  const double radius = std::sqrt(-2.0 * std::log(random_unit(key, 2 * index)));
  const double angle = 2.0 * M_PI * random_unit(key, 2 * index + 1);
  return static_cast<float>(deviation * radius * std::cos(angle));
}

double deviation_of(const ModelSpec& model, const std::string& name) {
  const bool ends_branch =
      ends_with(name, "attention.o_proj.weight") || ends_with(name, "mlp.down_proj.weight");
  return ends_branch ? kDeviation / std::sqrt(2.0 * static_cast<double>(model.layers)) : kDeviation;
}

}  // namespace

void fill_initial(const ModelSpec& model, std::uint64_t seed, const ParameterSlice& slice,
                  std::span<float> values) {
  if (!slice.is_matrix()) {
    const bool one = slice.is_norm() && ends_with(slice.name, ".weight");
    std::fill(values.begin(), values.end(), one ? 1.0F : 0.0F);
    return;
  }
  std::fill(values.begin(), values.end(), 0.0F);
  const std::uint64_t key = key_of(seed, slice.name);
  const double deviation = deviation_of(model, slice.name);
  for (std::int64_t r = 0; r < slice.rows; ++r) {
    for (std::int64_t c = 0; c < slice.columns; ++c) {
      const std::int64_t index =
          (slice.first_row + r) * slice.whole_columns() + slice.first_column + c;
      values[static_cast<std::size_t>(r * slice.columns + c)] =
          normal(key, static_cast<std::uint64_t>(index), deviation);
    }
  }
}

}  // namespace shardwright::executor
