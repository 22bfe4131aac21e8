#include "sim/run/checkpoint_interval.hpp"

#include <algorithm>
#include <cmath>

#include "sim/run/profile_model.hpp"

namespace shardwright::sim {
namespace {

// Beyond this factor around Daly's interval nothing is tried.
constexpr double kWidth = 10.0;
// The search ends when the interval is known up to this ratio. The optimum is flat.
constexpr double kPrecision = 1.03;
constexpr double kGolden = 0.6180339887498949;

double mean_wall(RunModel& model, const RunOptions& options, double interval) {
  model.interval = Seconds(interval);
  const RunStatistics all = simulate_runs(model, options);
  // Intervals with which some runs do not finish lose to all with which fewer do not.
  constexpr double kUnfinished = 1e15;
  return all.mean_wall().value() + kUnfinished * static_cast<double>(all.unfinished);
}

}  // namespace

Seconds young_interval(Seconds stall, Seconds mtbf) {
  return Seconds(std::sqrt(2.0 * stall.value() * mtbf.value()));
}

Seconds daly_interval(Seconds stall, Seconds mtbf) {
  if (stall >= 2.0 * mtbf) return mtbf;
  const double half = stall / (2.0 * mtbf);
  return young_interval(stall, mtbf) * (1.0 + std::sqrt(half) / 3.0 + half / 9.0) - stall;
}

Seconds best_interval(RunModel model, const RunOptions& options, Seconds least) {
  const double most = model.total_work().value();
  const Seconds mtbf = job_mtbf(model, true);
  if (!std::isfinite(mtbf.value())) return Seconds(most);
  const double shortest = std::min(most, std::max(least.value(), 1.0));
  const double guess =
      std::clamp(daly_interval(model.checkpoint.stall, mtbf).value(), shortest, most);
  double low = std::log(std::max(shortest, guess / kWidth));
  double high = std::log(std::min(most, guess * kWidth));
  // Golden-section search.
  double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
  double at_left = mean_wall(model, options, std::exp(left));
  double at_right = mean_wall(model, options, std::exp(right));
  while (high - low > std::log(kPrecision)) {
    if (at_left <= at_right) {
      high = right;
      right = left;
      at_right = at_left;
      left = high - kGolden * (high - low);
      at_left = mean_wall(model, options, std::exp(left));
    } else {
      low = left;
      left = right;
      at_left = at_right;
      right = low + kGolden * (high - low);
      at_right = mean_wall(model, options, std::exp(right));
    }
  }
  return Seconds(std::exp(0.5 * (low + high)));
}

}  // namespace shardwright::sim
