#include "core/base/printable_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

namespace shardwright {
namespace {

struct CodePoint {
  char32_t value = 0;
  // The length; 0 if it is no UTF-8.
  std::size_t bytes = 0;
};

bool continues(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// The code point that a text begins with (RFC 3629): no overlong forms, no surrogates.
CodePoint first_code_point(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text.front());
  if (lead < 0x80U) return {lead, 1};
  const std::size_t bytes = lead >= 0xF0U ? 4 : lead >= 0xE0U ? 3 : 2;
  constexpr char32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (lead < 0xC2U || lead > 0xF4U || text.size() < bytes) return {};
  char32_t value = lead & (0x7FU >> bytes);
  for (std::size_t i = 1; i < bytes; ++i) {
    if (!continues(text[i])) return {};
    value = value << 6U | (static_cast<unsigned char>(text[i]) & 0x3FU);
  }
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (value < kLeast[bytes] || value > 0x10FFFF || surrogate) return {};
  return {value, bytes};
}

bool is_printable(char32_t value) {
  const bool control = value < 0x20 || (value >= 0x7F && value < 0xA0);
  const bool line_end = value == 0x2028 || value == 0x2029;
  const bool direction = value == 0x200E || value == 0x200F ||
                         (value >= 0x202A && value <= 0x202E) ||
                         (value >= 0x2066 && value <= 0x2069);
  return !control && !line_end && !direction;
}

std::string escape_of(char byte) {
  switch (byte) {
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      return fmt::format("\\x{:02x}", static_cast<unsigned char>(byte));
  }
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = first_code_point(text);
    const std::size_t bytes = std::max<std::size_t>(point.bytes, 1);
    if (point.bytes > 0 && is_printable(point.value)) {
      result += text.substr(0, bytes);
    } else {
      for (const char byte : text.substr(0, bytes)) result += escape_of(byte);
    }
    text.remove_prefix(bytes);
  }
  return result;
}

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char each : text) {
    switch (each) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += each;
    }
  }
  return escaped;
}

}  // namespace shardwright
