#include "cli/error_limits.hpp"

#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/error.hpp"

namespace shardwright::cli {
namespace {

// A percentage above 0, with or without its sign.
std::optional<double> read_percent(std::string text) {
  if (text.ends_with('%')) text.pop_back();
  double percent = 0.0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc() || stop != end || !std::isfinite(percent) || percent <= 0.0)
    return std::nullopt;
  return percent / 100.0;
}

}  // namespace

ErrorLimits read_error_limits(const std::optional<std::string>& asked) {
  if (!asked) return {};
  const std::string& text = *asked;
  const std::size_t comma = text.find(',');
  const auto median = read_percent(text.substr(0, comma));
  const auto p90 = comma == std::string::npos ? std::nullopt : read_percent(text.substr(comma + 1));
  if (median && p90) return {*median, *p90};
  throw InputError("shardwright validate",
                   {{"--fail-over", "\"" + text + "\"",
                     "two percentages above 0 with a comma between, of the median and of the 90th "
                     "percentile, as in 8,25"}});
}

}  // namespace shardwright::cli
