#include "sim/run/checkpoint_interval.hpp"

#include <algorithm>
#include <cmath>

#include "sim/run/profile_model.hpp"

namespace shardwright::sim {
namespace {

// Beyond this factor around Daly's interval nothing is tried.
constexpr double kWidth = 10.0;
// The search ends when the interval is known up to this ratio, within which the chance of the
// failures decides, and a curve through runs on both sides knows more.
constexpr double kPrecision = 1.5;
constexpr int kCurvePoints = 9;
constexpr double kCurveWidth = 2.5;
// Fewer failures that lose work than this do not tell the optimum better than Daly's formula does.
constexpr double kFewestFailures = 1'000.0;
constexpr double kGolden = 0.6180339887498949;

// The sums of a least-squares fit of y = c + a u + b v.
struct CurveSums {
  double n = 0.0, u = 0.0, v = 0.0, y = 0.0, uu = 0.0, vv = 0.0, uv = 0.0, uy = 0.0, vy = 0.0;

  void add(double of_u, double of_v, double of_y) {
    n += 1.0, u += of_u, v += of_v, y += of_y;
    uu += of_u * of_u, vv += of_v * of_v, uv += of_u * of_v;
    uy += of_u * of_y, vy += of_v * of_y;
  }
};

double mean_wall(RunModel& model, const RunOptions& options, double interval) {
  model.interval = Seconds(interval);
  const RunStatistics all = simulate_runs(model, options);
  // Intervals with which some runs do not finish lose to all with which fewer do not.
  constexpr double kUnfinished = 1e15;
  return all.mean_wall().value() + kUnfinished * static_cast<double>(all.unfinished);
}

// The interval x at which the mean wall time c + a / x + b x is least: stalls grow as 1 / x, lost
// work as x. It is fitted to runs of intervals around `middle`, and lies among them.
double curve_optimum(RunModel& model, const RunOptions& options, double middle, double shortest,
                     double most) {
  const double low = std::max(shortest, middle / kCurveWidth);
  const double high = std::min(most, middle * kCurveWidth);
  CurveSums sums;
  const double first = mean_wall(model, options, middle);
  for (int i = 0; i < kCurvePoints; ++i) {
    const double x = low * std::pow(high / low, i / (kCurvePoints - 1.0));
    sums.add(middle / x, x / middle, mean_wall(model, options, x) / first - 1.0);
  }
  const auto moment = [&](double product, double a, double b) { return product - a * b / sums.n; };
  const double uu = moment(sums.uu, sums.u, sums.u), vv = moment(sums.vv, sums.v, sums.v),
               uv = moment(sums.uv, sums.u, sums.v), uy = moment(sums.uy, sums.u, sums.y),
               vy = moment(sums.vy, sums.v, sums.y);
  const double a = uy * vv - vy * uv, b = vy * uu - uy * uv;
  // Without one of the two costs the best interval is an end; without both, or where some runs do
  // not end, the curve says nothing.
  if (!(high > low) || (a <= 0.0 && b <= 0.0)) return middle;
  if (b <= 0.0) return high;
  return std::clamp(middle * std::sqrt(std::max(a, 0.0) / b), low, high);
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
  const double failures = static_cast<double>(options.runs) * (model.total_work() / mtbf);
  if (failures < kFewestFailures) return Seconds(guess);
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
  return Seconds(curve_optimum(model, options, std::exp(0.5 * (low + high)), shortest, most));
}

}  // namespace shardwright::sim
