// Statistics of prediction errors.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shardwright::calibration {

// Ratios. Without samples all are zero and mean nothing.
struct ErrorSummary {
  std::size_t n = 0;
  double median_abs = 0.0, mean_abs = 0.0, p90_abs = 0.0;
  // The median of the signed errors: half of the predictions lie above it.
  double bias = 0.0;
  // Their mean, which few large errors may rule.
  double mean_signed = 0.0;
  // The share of the measurements that lie in the predicted interval.
  double coverage = 0.0;
  // Kendall's tau of the plans' speeds within a group, mean over the groups of at least three rows;
  // only of training steps, where there is such a group.
  std::optional<double> rank_correlation{};
};

// The value below which a share of the sorted samples lies, linear between neighbours. At least one
// sample.
double quantile(std::vector<double> samples, double share);

struct ErrorSample {
  // A signed ratio.
  double error = 0.0;
  // True if the measurement lies in the predicted interval.
  bool covered = false;
};

ErrorSummary summarise(const std::vector<ErrorSample>& samples);

// Summarises residuals as fits have them, logarithms of predicted over measured.
ErrorSummary summarise_logarithms(const std::vector<double>& residuals);

// True if there are samples, and the median and the 90th percentile of their absolute errors are at
// most these ratios.
bool within_tolerance(const ErrorSummary& summary, double median, double p90);

using SamplesByName = std::map<std::string, std::vector<ErrorSample>>;
using ErrorsByName = std::map<std::string, ErrorSummary>;

ErrorsByName summarise_each(const SamplesByName& samples);

// {"n", "median_abs_pct", "mean_abs_pct", "p90_abs_pct", "bias_pct", "mean_signed_pct"}, null where
// n is 0; without the coverage, which only predictions with an interval have.
nlohmann::ordered_json to_json(const ErrorSummary& summary);

// The summaries by name.
nlohmann::ordered_json to_json(const ErrorsByName& summaries);

struct RankedValue {
  // The configuration that was measured, perhaps more than once.
  std::string item;
  double measured = 0.0, predicted = 0.0;
};

// Kendall's tau of a prediction: 1 where it orders every pair as measured, -1 where none. A pair of
// one item, or with one measured value, has no order to find and is left out; one predicted value
// for two measured ones counts for neither side, so that a prediction that tells nothing apart has
// 0. None if no pair is left. (Somers' d of the prediction: Somers, A new asymmetric measure of
// association for ordinal variables, 1962.)
std::optional<double> kendall_tau(const std::vector<RankedValue>& values);

}  // namespace shardwright::calibration
