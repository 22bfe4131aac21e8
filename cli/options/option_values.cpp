#include "cli/options/option_values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "core/base/nearest_name.hpp"
#include "core/base/quantity_reading.hpp"
#include "core/base/quantity_text.hpp"
#include "planner/run_search.hpp"

namespace shardwright::cli {
namespace {

std::string quoted(const std::string& text) {
  constexpr std::size_t kMost = 60;
  return text.size() > kMost ? fmt::format("\"{}…\"", text.substr(0, kMost))
                             : fmt::format("\"{}\"", text);
}

// A percentage above 0 as a ratio, with or without its sign.
std::optional<double> parse_percent(const std::string& text) {
  const auto number = parse_number(text);
  const bool sound = number && (number->rest.empty() || number->rest == "%") && number->value > 0.0;
  return sound ? std::optional(number->value / 100.0) : std::nullopt;
}

constexpr Bytes kLeastMemory = gigabytes(0.1);

}  // namespace

std::int64_t read_count(const std::string& option, const std::string& text, std::int64_t most,
                        ProblemList& problems, const std::string& or_word) {
  const auto value = parse_count(text);
  if (value && *value >= 1 && *value <= most) return *value;
  Expected expected(fmt::format("an integer from 1 to {}", format_count(most)),
                    nearest_name(text, std::array{or_word}));
  if (most >= 4096) expected.text += ", as in 4096 or 4k";
  if (!or_word.empty()) expected.text += fmt::format(", or {}", or_word);
  problems.add(option, quoted(text), expected);
  return 1;
}

double read_token_count(const std::string& option, const std::string& text, ProblemList& problems,
                        const std::string& or_word) {
  const auto value = parse_tokens(text);
  if (value && *value >= 1 && static_cast<double>(*value) <= planner::kMostRunTokens)
    return static_cast<double>(*value);
  Expected expected("a number of tokens from 1 to 1,000T, as in 15T, 300B or 500M (decimal)");
  if (!or_word.empty()) expected.text += fmt::format(", or {}", or_word);
  problems.add(option, quoted(text), expected);
  return 1.0;
}

std::int64_t read_index(const std::string& option, const std::string& text, std::int64_t count,
                        ProblemList& problems) {
  const auto value = parse_integer(text);
  if (value && *value >= 0 && *value < count) return *value;
  problems.add(option, quoted(text),
               fmt::format("an integer from 0 to {}", format_count(count - 1)));
  return 0;
}

std::pair<std::int64_t, std::int64_t> read_count_range(const std::string& option,
                                                       const std::string& text, std::int64_t most,
                                                       ProblemList& problems) {
  const auto dots = text.find("..");
  if (dots == std::string::npos) {
    const std::int64_t count = read_count(option, text, most, problems);
    return {count, count};
  }
  const std::size_t sound = problems.size();
  const std::int64_t first = read_count(option, text.substr(0, dots), most, problems);
  const std::int64_t last = read_count(option, text.substr(dots + 2), most, problems);
  if (problems.size() == sound && first > last)
    problems.add(option, quoted(text), "a range from the smaller to the larger number");
  return {first, std::max(first, last)};
}

Bytes read_memory_size(const std::string& option, const std::string& text, Bytes whole,
                       ProblemList& problems) {
  constexpr const char* kExpected = "a size above 0, as in 70GB, 64GiB or 90%";
  const auto number = parse_number(text);
  const auto refuse = [&](const std::string& expected) {
    problems.add(option, quoted(text), expected);
    return kLeastMemory;
  };
  if (!number || number->value <= 0.0) return refuse(kExpected);
  if (number->rest == "%")
    return number->value <= 100.0 ? whole * (number->value / 100.0) : refuse("at most 100%");
  if (number->rest.empty())
    return refuse(fmt::format("a size with its unit, as in {0}GB or {0}GiB", text));
  const auto unit = byte_unit(number->rest);
  if (!unit) return refuse(kExpected);
  const Bytes size(number->value * *unit);
  return size < kLeastMemory ? refuse("at least 0.1GB") : size;
}

double read_ratio(const std::string& option, const std::string& text, ProblemList& problems) {
  constexpr double kMost = 1000.0;
  if (const auto number = parse_number(text)) {
    const double ratio = number->rest == "%" ? number->value / 100.0 : number->value;
    const bool is_ratio = number->rest.empty() || number->rest == "%";
    if (is_ratio && ratio > 0.0 && ratio <= kMost) return ratio;
  }
  problems.add(option, quoted(text),
               fmt::format("a ratio above 0 and at most {}, as in 0.1 or 10%", kMost));
  return 1.0;
}

ErrorLimits read_error_limits(const std::optional<std::string>& asked) {
  if (!asked) return {};
  const std::string& text = *asked;
  const std::size_t comma = text.find(',');
  const auto median = parse_percent(text.substr(0, comma));
  const auto p90 =
      comma == std::string::npos ? std::nullopt : parse_percent(text.substr(comma + 1));
  if (median && p90) return {*median, *p90};
  throw InputError("shardwright validate", {{"--fail-over", "\"" + text + "\"",
                                             "two percentages above 0, MEDIAN,P90, as in 8,25"}});
}

}  // namespace shardwright::cli
