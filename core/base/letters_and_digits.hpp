// Letters and digits of ASCII, whatever the locale: what spellings of one name have in common.
#pragma once

#include <string>
#include <string_view>

namespace shardwright {

// The small letter of a capital; what is none stays as it is.
char to_lower(char c);

bool is_letter_or_digit(char c);

// Returns a text without case and signs: "Zero-Bubble (ZB-1P)" is "zerobubblezb1p".
std::string letters_and_digits(std::string_view text);

}  // namespace shardwright
