#include "executor/telemetry/noise_scale.hpp"

namespace shardwright::executor {

void NoiseScale::add(double small_squares, double large_squares) {
  // The weight of a new step in the running means.
  constexpr double kNew = 0.05;
  const double signal =
      (large_batch_ * large_squares - small_batch_ * small_squares) / (large_batch_ - small_batch_);
  const double noise = (small_squares - large_squares) / (1.0 / small_batch_ - 1.0 / large_batch_);
  means_.signal += kNew * (signal - means_.signal);
  means_.noise += kNew * (noise - means_.noise);
  means_.weight += kNew * (1.0 - means_.weight);
}

std::optional<double> NoiseScale::value() const {
  if (means_.weight == 0.0 || means_.signal <= 0.0 || means_.noise <= 0.0) return std::nullopt;
  return means_.noise / means_.signal;
}

}  // namespace shardwright::executor
