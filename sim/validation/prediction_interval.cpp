#include "sim/validation/prediction_interval.hpp"

namespace shardwright::sim {
namespace {

constexpr double kLowRatio = 0.92, kHighRatio = 1.16;  // of the step time

}  // namespace

std::pair<double, double> prediction_interval(double predicted, bool is_rate) {
  if (is_rate) return {predicted / kHighRatio, predicted / kLowRatio};
  return {predicted * kLowRatio, predicted * kHighRatio};
}

}  // namespace shardwright::sim
