#include "core/base/quantity_reading.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>

namespace shardwright {
namespace {

// Returns false for commas that do not separate thousands, as in "2,4".
bool groups_thousands(const std::string& text) {
  const auto first = text.find(',');
  if (first == std::string::npos) return true;
  if (first == 0 || first > 3 || (text.size() - first) % 4 != 0) return false;
  for (std::size_t i = first; i < text.size(); ++i) {
    if ((text[i] == ',') != ((i - first) % 4 == 0)) return false;
  }
  return true;
}

struct Unit {
  const char* name;
  double size;
};
constexpr std::array kByteUnits = {
    Unit{"B", 1.0},         Unit{"kB", 1e3},           Unit{"KiB", 1024.0},
    Unit{"MB", 1e6},        Unit{"GB", 1e9},           Unit{"TB", 1e12},
    Unit{"MiB", 1048576.0}, Unit{"GiB", 1073741824.0}, Unit{"TiB", 1099511627776.0},
};
// Sequence lengths, batches and clusters are called by powers of two ("8k", "1M", "16k"), the
// tokens of a run by powers of ten.
constexpr std::array kCountUnits = {Unit{"k", 1024.0}, Unit{"K", 1024.0}, Unit{"M", 1048576.0},
                                    Unit{"B", 1e9}, Unit{"T", 1e12}};

constexpr std::array kTokenUnits = {Unit{"k", 1e3}, Unit{"K", 1e3}, Unit{"M", 1e6}, Unit{"B", 1e9},
                                    Unit{"T", 1e12}};

std::optional<double> size_of(std::span<const Unit> units, const std::string& name) {
  const auto unit = std::ranges::find(units, name, &Unit::name);
  return unit == units.end() ? std::nullopt : std::optional(unit->size);
}

std::optional<std::int64_t> parse_whole(std::span<const Unit> units, const std::string& text) {
  if (const auto plain = parse_integer(text)) return plain;
  const auto number = parse_number(text);
  const auto unit = number ? size_of(units, number->rest) : std::nullopt;
  if (!unit) return std::nullopt;
  const double value = number->value * *unit;
  // Integers up to 2^53 are exact.
  constexpr double kMostExact = 9007199254740992.0;
  if (value != std::floor(value) || std::abs(value) > kMostExact) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

}  // namespace

std::optional<std::int64_t> parse_integer(std::string text) {
  if (!groups_thousands(text)) return std::nullopt;
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::optional<NumberAndRest> parse_number(const std::string& text) {
  NumberAndRest result;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, result.value);
  if (error != std::errc() || !std::isfinite(result.value)) return std::nullopt;
  result.rest.assign(stop, end);
  result.rest.erase(std::remove(result.rest.begin(), result.rest.end(), ' '), result.rest.end());
  return result;
}

std::optional<std::int64_t> parse_count(const std::string& text) {
  return parse_whole(kCountUnits, text);
}

std::optional<std::int64_t> parse_tokens(const std::string& text) {
  return parse_whole(kTokenUnits, text);
}

std::optional<double> parse_quantity(const std::string& text) {
  const auto number = parse_number(text);
  if (!number) return std::nullopt;
  if (number->rest == "%") return number->value / 100.0;
  const bool is_rate = number->rest.ends_with("/s");
  const auto unit = byte_unit(number->rest.substr(0, number->rest.size() - (is_rate ? 2 : 0)));
  return unit ? std::optional(number->value * *unit) : std::nullopt;
}

std::optional<double> byte_unit(const std::string& name) {
  return size_of(kByteUnits, name);
}

}  // namespace shardwright
