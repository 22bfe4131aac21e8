// Spellings of one name.
#include "core/base/letters_and_digits.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <string>

namespace shardwright {
namespace {

TEST(LettersAndDigits, CaseAndSignsAreGone) {
  EXPECT_EQ(letters_and_digits("Zero-Bubble (ZB-1P)"), "zerobubblezb1p");
  EXPECT_EQ(letters_and_digits("all_reduce_perf"), letters_and_digits("AllReduce Perf"));
  EXPECT_EQ(letters_and_digits(" -_/. "), "");
  EXPECT_EQ(letters_and_digits("größe × 2"), "gre2");  // of two bytes, neither of them ASCII
}

TEST(LettersAndDigits, AreThoseOfTheCLocale) {
  for (int byte = 0; byte < 256; ++byte) {
    const auto c = static_cast<char>(byte);
    EXPECT_EQ(is_letter_or_digit(c), std::isalnum(byte) != 0) << byte;
    EXPECT_EQ(to_lower(c), static_cast<char>(std::tolower(byte))) << byte;
    EXPECT_EQ(letters_and_digits(std::string(1, c)).size(), is_letter_or_digit(c) ? 1U : 0U);
  }
}

}  // namespace
}  // namespace shardwright
