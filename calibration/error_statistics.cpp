#include "calibration/error_statistics.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/error.hpp"

namespace shardwright::calibration {

double quantile(std::vector<double> samples, double share) {
  SHARDWRIGHT_CHECK(!samples.empty(), "a quantile of no samples");
  std::sort(samples.begin(), samples.end());
  const double place = share * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return std::lerp(samples[below], samples[above], place - static_cast<double>(below));
}

ErrorSummary summarise(const std::vector<ErrorSample>& samples) {
  if (samples.empty()) return {};
  std::vector<double> errors, absolute;
  double sum = 0.0, signed_sum = 0.0, covered = 0.0;
  for (const ErrorSample& sample : samples) {
    errors.push_back(sample.error);
    absolute.push_back(std::abs(sample.error));
    sum += absolute.back();
    signed_sum += sample.error;
    covered += sample.covered ? 1.0 : 0.0;
  }
  const auto n = static_cast<double>(samples.size());
  return {.n = samples.size(),
          .median_abs = quantile(absolute, 0.5),
          .mean_abs = sum / n,
          .p90_abs = quantile(absolute, 0.9),
          .bias = quantile(errors, 0.5),
          .mean_signed = signed_sum / n,
          .coverage = covered / n};
}

ErrorSummary summarise_logarithms(const std::vector<double>& residuals) {
  std::vector<ErrorSample> samples;
  for (const double residual : residuals) samples.push_back({std::expm1(residual), false});
  return summarise(samples);
}

bool within_tolerance(const ErrorSummary& summary, double median, double p90) {
  return summary.n > 0 && summary.median_abs <= median && summary.p90_abs <= p90;
}

ErrorsByName summarise_each(const SamplesByName& samples) {
  ErrorsByName summaries;
  for (const auto& [name, each] : samples) summaries[name] = summarise(each);
  return summaries;
}

nlohmann::ordered_json to_json(const ErrorSummary& summary) {
  const auto percent = [&summary](double ratio) {
    return summary.n > 0 ? nlohmann::ordered_json(100.0 * ratio) : nlohmann::ordered_json();
  };
  return {{"n", summary.n},
          {"median_abs_pct", percent(summary.median_abs)},
          {"mean_abs_pct", percent(summary.mean_abs)},
          {"p90_abs_pct", percent(summary.p90_abs)},
          {"bias_pct", percent(summary.bias)},
          {"mean_signed_pct", percent(summary.mean_signed)}};
}

nlohmann::ordered_json to_json(const ErrorsByName& summaries) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& [name, summary] : summaries) json[name] = to_json(summary);
  return json;
}

std::optional<double> kendall_tau(const std::vector<RankedValue>& values) {
  const auto order = [](double a, double b) { return a == b ? 0.0 : a < b ? -1.0 : 1.0; };
  double agreement = 0.0, pairs = 0.0;
  for (auto a = values.begin(); a != values.end(); ++a) {
    for (auto b = values.begin(); b != a; ++b) {
      if (a->item == b->item) continue;
      const double true_order = order(a->measured, b->measured);
      agreement += true_order * order(a->predicted, b->predicted);
      pairs += std::abs(true_order);
    }
  }
  return pairs > 0.0 ? std::optional(agreement / pairs) : std::nullopt;
}

}  // namespace shardwright::calibration
