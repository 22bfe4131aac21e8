#include "planner/tuning/tuned_parameter.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/base/nearest_name.hpp"

namespace shardwright::planner {
namespace {

// The values that the executor takes, and how they lie between two of them.
struct TunedLimits {
  double least = 0.0, most = 0.0;
  bool whole = false;
  TunedScale scale = TunedScale::Linear;
};

TunedLimits limits_of(TunedName name) {
  constexpr double kMost = 1e15, kMostMomentum = 0.999999, kMostBatch = 1e9;
  using enum TunedScale;
  constexpr EnumArray<TunedName, TunedLimits> kLimits{
      {{{0.0, kMost, false, Logarithmic},
        {0.0, 1.0, false, Linear},
        {0.0, kMost, true, Linear},
        {0.0, kMostMomentum, false, LogarithmicFromOne},
        {0.0, kMostMomentum, false, LogarithmicFromOne},
        {0.0, kMost, false, Logarithmic},
        {0.0, kMost, false, Logarithmic},
        {1.0, kMostBatch, true, Logarithmic}}}};
  return kLimits[name];
}

double to_scale(TunedScale scale, double value) {
  if (scale == TunedScale::Logarithmic) return std::log(value);
  if (scale == TunedScale::LogarithmicFromOne) return -std::log1p(-value);
  return value;
}

double from_scale(TunedScale scale, double value) {
  if (scale == TunedScale::Logarithmic) return std::exp(value);
  if (scale == TunedScale::LogarithmicFromOne) return -std::expm1(-value);
  return value;
}

std::optional<double> number_in(std::string_view text, const TunedLimits& limits) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool holds = error == std::errc() && end == text.data() + text.size() &&
                     std::isfinite(value) && value >= limits.least && value <= limits.most &&
                     (!limits.whole || value == std::floor(value));
  return holds ? std::optional(value) : std::nullopt;
}

// Reads one value; adds a problem unless it is one.
std::optional<double> read_value(const std::string& where, std::string_view text, TunedName name,
                                 ProblemList& problems) {
  const TunedLimits limits = limits_of(name);
  const auto value = number_in(text, limits);
  if (!value) {
    problems.add(where, fmt::format("\"{}\" of {}", text, name_of(name)),
                 fmt::format("{} from {} to {}, as in NAME=LOW..HIGH or NAME=VALUE,VALUE",
                             limits.whole ? "an integer" : "a number", limits.least, limits.most));
  }
  return value;
}

void read_range(const std::string& where, std::string_view low, std::string_view high,
                ProblemList& problems, TunedParameter& parameter) {
  const auto first = read_value(where, low, parameter.name, problems);
  const auto last = read_value(where, high, parameter.name, problems);
  if (!first || !last) return;
  if (*first >= *last) {
    problems.add(where, fmt::format("{}..{} of {}", low, high, name_of(parameter.name)),
                 "a range from a smaller value to a larger one");
    return;
  }
  parameter.low = *first;
  parameter.high = *last;
  // A logarithm has no place for zero.
  if (parameter.scale == TunedScale::Logarithmic && *first == 0.0)
    parameter.scale = TunedScale::Linear;
  if (parameter.name != TunedName::GlobalBatch) return;
  // Plans with batches between these often break a rule.
  for (double batch = *first; batch <= *last; batch *= 2.0) parameter.listed.push_back(batch);
}

void read_list(const std::string& where, std::string_view list, ProblemList& problems,
               TunedParameter& parameter) {
  while (true) {
    const std::size_t comma = std::min(list.find(','), list.size());
    if (const auto value = read_value(where, list.substr(0, comma), parameter.name, problems))
      parameter.listed.push_back(*value);
    if (comma == list.size()) break;
    list.remove_prefix(comma + 1);
  }
  std::ranges::sort(parameter.listed);
  parameter.listed.erase(std::unique(parameter.listed.begin(), parameter.listed.end()),
                         parameter.listed.end());
}

}  // namespace

double TunedParameter::value_at(double place) const {
  if (!listed.empty()) {
    const auto count = static_cast<double>(listed.size());
    return listed[static_cast<std::size_t>(std::clamp(place * count, 0.0, count - 1.0))];
  }
  const double first = to_scale(scale, low), last = to_scale(scale, high);
  const double value = std::clamp(from_scale(scale, first + place * (last - first)), low, high);
  return limits_of(name).whole ? std::round(value) : value;
}

double TunedParameter::place_of(double value) const {
  if (!listed.empty()) {
    const auto found = std::ranges::lower_bound(listed, value) - listed.begin();
    return (static_cast<double>(found) + 0.5) / static_cast<double>(listed.size());
  }
  const double first = to_scale(scale, low), last = to_scale(scale, high);
  return std::clamp((to_scale(scale, value) - first) / (last - first), 0.0, 1.0);
}

double TunedParameter::perturbed(double value, bool up) const {
  constexpr double kFactor = 1.25;
  if (!listed.empty()) {
    const auto at = std::ranges::lower_bound(listed, value) - listed.begin();
    const auto last = static_cast<std::ptrdiff_t>(listed.size()) - 1;
    return listed[static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(at + (up ? 1 : -1), 0, last))];
  }
  // The distance from 1 shrinks where a decay rate grows.
  double moved = value * (up ? kFactor : 1.0 / kFactor);
  if (scale == TunedScale::LogarithmicFromOne)
    moved = 1.0 - (1.0 - value) * (up ? 1.0 / kFactor : kFactor);
  moved = std::clamp(moved, low, high);
  return limits_of(name).whole ? std::round(moved) : moved;
}

TunedParameter read_tuned_parameter(const std::string& where, const std::string& text,
                                    ProblemList& problems) {
  TunedParameter parameter;
  const std::string key = text.substr(0, text.find('='));
  const auto names = names_of<TunedName>();
  const auto found = std::find(names.begin(), names.end(), key);
  if (found == names.end()) {
    const std::vector<std::string> known(names.begin(), names.end());
    problems.add(
        where, fmt::format("\"{}\"", key),
        Expected(fmt::format("one of {}", fmt::join(known, ", ")), nearest_name(key, known)));
    return parameter;
  }
  parameter.name = static_cast<TunedName>(found - names.begin());
  parameter.scale = limits_of(parameter.name).scale;
  const std::string_view values =
      std::string_view(text).substr(std::min(text.size(), key.size() + 1));
  const std::size_t dots = values.find("..");
  if (dots != std::string_view::npos) {
    read_range(where, values.substr(0, dots), values.substr(dots + 2), problems, parameter);
  } else {
    read_list(where, values, problems, parameter);
  }
  return parameter;
}

}  // namespace shardwright::planner
