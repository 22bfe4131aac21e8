// `--fail-over MEDIAN,P90` of `shardwright validate`.
#pragma once

#include <limits>
#include <string>

namespace shardwright::cli {

// Limits of the absolute errors as ratios; infinite where there is none.
struct ErrorLimits {
  double median = std::numeric_limits<double>::infinity();
  double p90 = std::numeric_limits<double>::infinity();
};

// Reads two percentages as in "8,25"; none from an empty text. Throws InputError.
ErrorLimits read_error_limits(const std::string& text);

}  // namespace shardwright::cli
