// The size, colours and text width of the terminal.
#pragma once

#include <string>
#include <string_view>

namespace shardwright::cli {

enum class ColourChoice { Auto, Always, Never };

// The columns that text on standard output may take: COLUMNS if it is set, else the width of the
// terminal, or 80 if standard output is no terminal.
int output_width();

bool stderr_is_terminal();

// True if standard output is to be coloured. `Auto` requires a terminal that is not "dumb" and
// respects NO_COLOR (https://no-color.org).
bool use_colour(ColourChoice choice);

// The terminal columns of a UTF-8 text: its code points without escape sequences. Sufficient for
// the alphabets and symbols that this program prints; wide characters count as one.
int display_width(std::string_view text);

// Breaks a text at spaces into lines of at most `width` columns (0: one line); later lines begin
// with `indent` spaces. A word that is longer than a line is not broken.
std::string wrapped(std::string_view text, int width, int indent = 0);

// Styles text for a terminal, or leaves it as it is.
class Style {
 public:
  explicit Style(bool colour = false) : colour_(colour) {}

  std::string bold(const std::string& text) const { return in("1", text); }
  std::string dim(const std::string& text) const { return in("2", text); }
  std::string good(const std::string& text) const { return in("32", text); }
  std::string warning(const std::string& text) const { return in("33", text); }

 private:
  std::string in(const char* code, const std::string& text) const {
    return colour_ ? std::string("\x1b[") + code + "m" + text + "\x1b[0m" : text;
  }

  bool colour_;
};

}  // namespace shardwright::cli
