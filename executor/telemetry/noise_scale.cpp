#include "executor/telemetry/noise_scale.hpp"

namespace shardwright::executor {

void NoiseScale::add(double small_squares, double large_squares) {
  constexpr double kNew = 0.05;  // weight of a step in the running means
  const double signal =
      (large_batch_ * large_squares - small_batch_ * small_squares) / (large_batch_ - small_batch_);
  const double noise = (small_squares - large_squares) / (1.0 / small_batch_ - 1.0 / large_batch_);
  signal_ += kNew * (signal - signal_);
  noise_ += kNew * (noise - noise_);
  weight_ += kNew * (1.0 - weight_);
}

std::optional<double> NoiseScale::value() const {
  if (weight_ == 0.0 || signal_ <= 0.0 || noise_ <= 0.0) return std::nullopt;
  return noise_ / signal_;
}

}  // namespace shardwright::executor
