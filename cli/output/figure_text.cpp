#include "cli/output/figure_text.hpp"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "cli/output/format.hpp"
#include "core/base/units.hpp"

namespace shardwright::cli {
namespace {

struct UnitSuffix {
  const char* suffix;
  std::function<std::string(double)> format;
};

// The endings of JSON keys that name a unit, the longest first.
const std::vector<UnitSuffix>& unit_suffixes() {
  static const std::vector<UnitSuffix> kSuffixes = {
      {"_dollars_per_hour", [](double v) { return fmt::format("${}/h", format_number(v)); }},
      {"_bytes_per_s", [](double v) { return format_bandwidth(BytesPerSecond(v)); }},
      {"_flop_per_s", [](double v) { return format_flop_rate(FlopPerSecond(v)); }},
      {"_bytes", [](double v) { return format_bytes(Bytes(v)); }},
      {"_ratio", [](double v) { return format_number(v); }},
      {"_hz", [](double v) { return fmt::format("{} GHz", format_number(v / 1e9)); }},
      {"_w", [](double v) { return fmt::format("{} W", format_number(v, 4)); }},
      {"_s", [](double v) { return format_time(Seconds(v)); }},
  };
  return kSuffixes;
}

}  // namespace

std::pair<std::string, std::string> with_unit(const std::string& name, double value, int digits) {
  for (const auto& [suffix, format] : unit_suffixes()) {
    const std::string ending = suffix;
    if (ending == "_s" && name.ends_with("_per_s")) break;
    if (name.ends_with(ending)) return {name.substr(0, name.size() - ending.size()), format(value)};
  }
  return {name, format_number(value, digits)};
}

}  // namespace shardwright::cli
