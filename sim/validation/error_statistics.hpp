// Statistics of prediction errors.
#pragma once

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace shardwright::sim {

// Ratios. Without samples all are zero.
struct ErrorSummary {
  std::size_t n = 0;
  double median_abs = 0.0, mean_abs = 0.0, p90_abs = 0.0;
  double bias = 0.0;      // median of the signed errors
  double coverage = 0.0;  // share of the measurements that lie in the predicted interval
};

// The value below which a share of the sorted samples lies, linear between neighbours. At least one
// sample.
double quantile(std::vector<double> samples, double share);

struct ErrorSample {
  double error = 0.0;    // signed ratio
  bool covered = false;  // the measurement lies in the predicted interval
};

ErrorSummary summarise(const std::vector<ErrorSample>& samples);

// The same of residuals as fits have them, logarithms of predicted over measured.
ErrorSummary summarise_logarithms(const std::vector<double>& residuals);

using SamplesByName = std::map<std::string, std::vector<ErrorSample>>;
using ErrorsByName = std::map<std::string, ErrorSummary>;

ErrorsByName summarise_each(const SamplesByName& samples);

// {"n", "median_abs_pct", "mean_abs_pct", "p90_abs_pct", "bias_pct"}; without the coverage, which
// only predictions with an interval have.
nlohmann::ordered_json to_json(const ErrorSummary& summary);

// Kendall's tau-b: 1 where two rankings agree on every pair, -1 where on none. Pairs that are tied
// in one ranking count for neither side. None if one of them ties all (Kendall, Rank correlation
// methods, 1948).
std::optional<double> kendall_tau(const std::vector<double>& a, const std::vector<double>& b);

}  // namespace shardwright::sim
