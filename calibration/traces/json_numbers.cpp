#include "calibration/traces/json_numbers.hpp"

#include <charconv>
#include <cmath>
#include <cstddef>

namespace shardwright::calibration {
namespace {

constexpr bool ends_a_number(char c) {
  return c == ',' || c == '}' || c == ']' || c == '"' || c == ' ' || c == '\n' || c == '\r' ||
         c == '\t';
}

std::string_view digits_of(std::string_view token) {
  if (token.starts_with('"')) token.remove_prefix(1);
  std::size_t length = 0;
  while (length < token.size() && !ends_a_number(token[length])) ++length;
  return token.substr(0, length);
}

std::optional<double> number_in(std::string_view text) {
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

constexpr bool is_decimal_digit(char c) {
  return c >= '0' && c <= '9';
}

// A thousand times the number, to the nearest integer, which a double would not have room for. None
// of numbers with an exponent and above 9e15.
std::optional<std::int64_t> thousandfold_of(std::string_view text) {
  constexpr std::int64_t kMost = 9'000'000'000'000'000;
  const bool is_negative = text.starts_with('-');
  std::size_t at = is_negative ? 1 : 0;
  const std::size_t first = at;
  std::int64_t value = 0;
  for (; at < text.size() && is_decimal_digit(text[at]); ++at) {
    value = 10 * value + (text[at] - '0');
    if (value > kMost) return std::nullopt;
  }
  if (at == first) return std::nullopt;
  std::int64_t rounding = 0;
  std::size_t places = 0;
  if (at < text.size() && text[at] == '.') {
    for (++at; at < text.size() && is_decimal_digit(text[at]); ++at, ++places) {
      if (places < 3) value = 10 * value + (text[at] - '0');
      if (places == 3) rounding = text[at] >= '5' ? 1 : 0;
    }
  }
  if (at != text.size()) return std::nullopt;
  for (; places < 3; ++places) value *= 10;
  value += rounding;
  return is_negative ? -value : value;
}

}  // namespace

std::optional<std::int64_t> integer_in(std::string_view token) {
  const std::string_view text = digits_of(token);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  const std::optional<double> number = number_in(text);
  if (!number || std::abs(*number) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::optional<std::int64_t> nanoseconds_in(std::string_view token, double least, double most) {
  const std::string_view text = digits_of(token);
  if (const auto exact = thousandfold_of(text)) {
    const double microseconds = static_cast<double>(*exact) * 1e-3;
    return microseconds < least || microseconds > most ? std::nullopt : exact;
  }
  const std::optional<double> number = number_in(text);
  if (!number || *number < least || *number > most) return std::nullopt;
  return static_cast<std::int64_t>(std::llround(*number * 1e3));
}

}  // namespace shardwright::calibration
