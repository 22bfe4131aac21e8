#include "core/base/printable_text.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <string>

#include "core/base/error.hpp"

namespace shardwright {
namespace {

TEST(PrintableText, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("\x1b[31mred\x07"), "\\x1b[31mred\\x07");
  EXPECT_EQ(printable("two\nlines\tand\rmore"), "two\\nlines\\tand\\rmore");
  EXPECT_EQ(printable(std::string("nul\0!", 5)), "nul\\x00!");
  EXPECT_EQ(printable("\x7f"), "\\x7f");
  // U+009B, which some terminals take for ESC [, and U+202E, which writes backwards.
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b2J");
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae");
}

TEST(PrintableText, LeavesPrintableUtf8AsItIs) {
  const std::string text = "a plan of 8 × H100, naïve, 模型, 🚀, \\x1b";
  EXPECT_EQ(printable(text), text);
}

TEST(PrintableText, EscapesBytesThatAreNoUtf8) {
  EXPECT_EQ(printable("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(printable("\xe6\xa8"), "\\xe6\\xa8") << "cut off";
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf") << "overlong";
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "a surrogate";
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "above U+10FFFF";
}

RC_GTEST_PROP(PrintableText, IsPrintableWhateverComesIn, (const std::string& text)) {
  const std::string once = printable(text);
  RC_ASSERT(std::ranges::none_of(once, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  }));
  RC_ASSERT(printable(once) == once);
}

TEST(PrintableText, ErrorsQuoteTheirInputSo) {
  const InputError error("bad\x1b[2J.json", {{"/a\nb", "\"\x1b]0;title\x07\"", "a number"}});
  EXPECT_STREQ(error.what(),
               "bad\\x1b[2J.json: /a\\nb: found \"\\x1b]0;title\\x07\"; expected a number");
}

}  // namespace
}  // namespace shardwright
