// `--fail-over MEDIAN,P90` of `shardwright validate`.
#pragma once

#include <limits>
#include <optional>
#include <string>

namespace shardwright::cli {

// Limits of the absolute errors as ratios; infinite where there is none.
struct ErrorLimits {
  double median = std::numeric_limits<double>::infinity();
  double p90 = std::numeric_limits<double>::infinity();
};

// Reads two percentages as in "8,25"; infinite ones where nothing was asked for. An empty text, as
// of a shell variable that is not set, is no limit that could be kept. Throws InputError.
ErrorLimits read_error_limits(const std::optional<std::string>& asked);

}  // namespace shardwright::cli
