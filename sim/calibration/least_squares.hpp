// Robust least squares for a few positive parameters within physical limits.
//
// Levenberg-Marquardt on the logarithms of the parameters; residuals r are weighted as
// Charbonnier's (soft L1) loss 2 s^2 (sqrt(1 + (r/s)^2) - 1) asks, so that a few odd measurements
// do not pull the fit. The confidence interval of a parameter comes from the weighted normal
// equations at the solution. A parameter whose interval is wider than a factor of kWidest to either
// side is not determined by the data: it keeps its first value and the others are fitted again
// without it. Deterministic.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace shardwright::sim {

struct FitParameter {
  std::string name;
  double value = 1.0;              // where the fit starts
  double least = 0.0, most = 1.0;  // physical limits, both above zero
};

enum class FitVerdict { Fitted, AtLimit, Undetermined };

// "fitted", "at its physical limit", "not determined by the data".
const char* name_of(FitVerdict verdict);

struct FittedParameter {
  std::string name;
  double before = 0.0, value = 0.0;
  double low = 0.0, high = 0.0;  // 95 % confidence interval; of fitted parameters only
  FitVerdict verdict = FitVerdict::Fitted;
};

struct FitResult {
  std::vector<FittedParameter> parameters;  // in the order given
  std::vector<double> residuals_before, residuals_after;
};

// Log residuals (predicted over measured) for values of all parameters.
using Residuals = std::function<std::vector<double>(const std::vector<double>&)>;

FitResult fit(const std::vector<FitParameter>& parameters, const Residuals& residuals);

}  // namespace shardwright::sim
