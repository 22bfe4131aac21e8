#include "core/base/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <vector>

namespace shardwright {
namespace {

// Separates the digits before the decimal point in threes.
std::string with_commas(const std::string& digits) {
  const std::size_t first = digits.starts_with('-') ? 1 : 0;
  const std::size_t point = std::min(digits.find('.'), digits.size());
  std::string text;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > first && i < point && (point - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return text;
}

// Trailing zeros of the fraction show the precision and stay.
std::string significant(double value, int digits) {
  if (!std::isfinite(value)) return value > 0 ? "infinite" : "none";
  if (value == 0.0) return "0";
  if (std::abs(value) >= 1e15 || std::abs(value) < 1e-6)
    return fmt::format("{:.{}e}", value, digits - 1);
  // The power of ten after rounding: 0.9999 in three digits is 1.00.
  const std::string scientific = fmt::format("{:.{}e}", value, digits - 1);
  const int magnitude = std::stoi(scientific.substr(scientific.find('e') + 1));
  return with_commas(fmt::format("{:.{}f}", value, std::max(0, digits - 1 - magnitude)));
}

// The value over the largest power of 1000 that leaves it at least 1, and the name of that power.
template <std::size_t n>
std::string with_prefix(double value, const std::array<const char*, n>& prefixes,
                        const char* unit) {
  std::size_t index = 0;
  // Halfway cases round up to the next prefix: 999.7 is "1,000" in three digits.
  while (index + 1 < n && std::abs(value) >= 999.5) {
    value /= 1000.0;
    ++index;
  }
  return fmt::format("{} {}{}", format_number(value), prefixes[index], unit);
}

constexpr std::array kLargePrefixes = {"", "k", "M", "G", "T", "P", "E"};

struct UnitSuffix {
  const char* suffix;
  std::function<std::string(double)> format;
};

// The endings of JSON keys that name a unit, longest first.
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

std::string format_number(double value, int digits) {
  std::string text = significant(value, digits);
  if (text.find('.') != std::string::npos && text.find('e') == std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

std::string format_fixed(double value, int decimals) {
  return with_commas(fmt::format("{:.{}f}", value, decimals));
}

int decimals_for(double largest) {
  constexpr int kDigits = 4, kMostDecimals = 6;
  if (largest <= 0.0 || !std::isfinite(largest)) return 0;
  const int magnitude = static_cast<int>(std::floor(std::log10(largest)));
  return std::clamp(kDigits - 1 - magnitude, 0, kMostDecimals);
}

std::string format_time(Seconds time, int digits) {
  constexpr double kHour = 3600.0, kDay = 24.0 * kHour;
  const double s = time.value();
  if (s == 0.0) return "0 s";
  if (std::abs(s) >= 2.0 * kDay) return fmt::format("{} d", format_number(s / kDay));
  if (std::abs(s) >= 2.0 * kHour) return fmt::format("{} h", format_number(s / kHour));
  if (std::abs(s) >= 0.9995) return fmt::format("{} s", format_number(s, digits));
  if (std::abs(s) >= 0.9995e-3) return fmt::format("{} ms", format_number(s * 1e3, digits));
  if (std::abs(s) >= 0.9995e-6) return fmt::format("{} µs", format_number(s * 1e6, digits));
  return fmt::format("{} ns", format_number(s * 1e9, digits));
}

std::string format_time_range(Seconds low, Seconds high) {
  std::string first = format_time(low);
  const std::string last = format_time(high);
  const std::size_t unit = last.rfind(' ');
  if (first.ends_with(last.substr(unit))) first.resize(first.size() - (last.size() - unit));
  return fmt::format("{} to {}", first, last);
}

std::string format_bytes(Bytes bytes) {
  return with_prefix(bytes.value(), kLargePrefixes, "B");
}

std::string format_bandwidth(BytesPerSecond bandwidth) {
  return with_prefix(bandwidth.value(), kLargePrefixes, "B/s");
}

std::string format_flop_rate(FlopPerSecond rate) {
  return with_prefix(rate.value(), kLargePrefixes, "FLOP/s");
}

std::string format_count(std::int64_t count) {
  return with_commas(fmt::format("{}", count));
}

std::string format_parameters(std::int64_t count) {
  constexpr std::array kModelPrefixes = {"", "K", "M", "B", "T"};
  if (count < 1000) return format_count(count);
  auto value = static_cast<double>(count);
  std::size_t prefix = 0;
  for (; prefix + 1 < kModelPrefixes.size() && value >= 999.5; ++prefix) value /= 1000.0;
  return fmt::format("{} {}", significant(value, 3), kModelPrefixes[prefix]);
}

std::string format_short(double value) {
  std::string text = with_prefix(value, kLargePrefixes, "");
  if (text.back() == ' ') text.pop_back();
  return text;
}

std::string format_gigabytes(Bytes bytes, int decimals) {
  return format_fixed(bytes.value() / 1e9, decimals);
}

std::string format_percent(double ratio, int decimals) {
  return format_fixed(100.0 * ratio, decimals);
}

std::string format_signed_percent(double ratio) {
  return fmt::format("{:+.1f}", 100.0 * ratio);
}

std::string format_plural(std::int64_t count, const std::string& singular) {
  const char* ending = singular.ends_with("ch") ? "es" : "s";
  return fmt::format("{} {}{}", format_count(count), singular, count == 1 ? "" : ending);
}

std::pair<std::string, std::string> with_unit(const std::string& key, double value, int digits) {
  for (const auto& [suffix, format] : unit_suffixes()) {
    const std::string ending = suffix;
    if (ending == "_s" && key.ends_with("_per_s")) break;
    if (key.ends_with(ending)) return {key.substr(0, key.size() - ending.size()), format(value)};
  }
  return {key, format_number(value, digits)};
}

}  // namespace shardwright
