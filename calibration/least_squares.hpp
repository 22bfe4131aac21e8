// Robust least squares for a few positive parameters within physical limits.
//
// The logarithms of the parameters are searched (robust_minimiser.hpp); residuals r are weighted as
// Charbonnier's (soft L1) loss 2 s^2 (sqrt(1 + (r/s)^2) - 1) asks, so that a few odd measurements
// do not pull the fit. The confidence interval of a parameter comes from the weighted normal
// equations at the solution and the quantile of Student's t distribution for the rows that are left
// over. A parameter keeps its first value, and the others are fitted again without it, where
// - its interval is wider than a factor of `widest` (`widest_against`) to either side: the data do
//   not determine it;
// - it has reached a limit, and the data only bound it there (the interval, one-sided, is that
//   wide) or would take it further by more than its interval: they push it to the limit.
// Deterministic.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/base/enum_names.hpp"

namespace shardwright::calibration {

// The factor to either side within which the interval of a parameter has to lie that replaces a
// known figure.
inline constexpr double kWidest = 1.5;
// The same where only a guess stands there, which an estimate of this width is better than.
inline constexpr double kWidestForGuess = 3.0;

struct FitParameter {
  std::string name;
  // The start of the fit.
  double value = 1.0;
  // Physical limits, both above zero.
  double least = 0.0, most = 1.0;
  double widest = kWidest;
  // The factor where the first value lies outside of the interval: the data contradict it.
  double widest_against = kWidest;
};

enum class FitVerdict {
  Fitted,
  // Fitted, and its limit is within the interval.
  AtLimit,
  Undetermined,
  PushedToLimit,
  // No timing speaks for it: others contain it, so that it would count twice.
  Contained
};

constexpr auto enum_names(FitVerdict) {
  return std::array{"fitted", "at its physical limit", "not determined by the data",
                    "pushed to its limit by the data", "contained in measured figures"};
}

// True of verdicts on a parameter that takes the value which the data say; others keep their own.
bool is_determined(FitVerdict verdict);

struct FittedParameter {
  std::string name;
  double before = 0.0, value = 0.0;
  // The 95 % confidence interval, for determined parameters only.
  double low = 0.0, high = 0.0;
  FitVerdict verdict = FitVerdict::Fitted;
  // The limit that it is pushed to.
  double limit = 0.0;
};

struct FitResult {
  // Parameters in the order given.
  std::vector<FittedParameter> parameters;
  std::vector<double> residuals_before, residuals_after;
};

// Log residuals (predicted over measured) for values of all parameters.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

FitResult fit(const std::vector<FitParameter>& parameters, const Residuals& residuals);

// True if the data determine any of the parameters.
bool determines_any(const FitResult& result);

}  // namespace shardwright::calibration
