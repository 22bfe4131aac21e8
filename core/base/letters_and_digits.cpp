#include "core/base/letters_and_digits.hpp"

namespace shardwright {

char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_letter_or_digit(char c) {
  const char small = to_lower(c);
  return (small >= 'a' && small <= 'z') || (c >= '0' && c <= '9');
}

std::string letters_and_digits(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (is_letter_or_digit(c)) result += to_lower(c);
  }
  return result;
}

}  // namespace shardwright
