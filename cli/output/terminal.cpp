#include "cli/output/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace shardwright::cli {
namespace {

constexpr int kLeastWidth = 20;
// Of terminals, and of mails and other places that pipes lead to.
constexpr int kUsualWidth = 80;

int width_from_environment() {
  const char* columns = std::getenv("COLUMNS");
  if (columns == nullptr) return 0;
  const long width = std::strtol(columns, nullptr, 10);
  return width > 0 && width < 10'000 ? static_cast<int>(width) : 0;
}

bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

int output_width() {
  int width = width_from_environment();
  if (width == 0 && isatty(STDOUT_FILENO) == 1) {
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) width = size.ws_col;
  }
  return width == 0 ? kUsualWidth : std::max(width, kLeastWidth);
}

bool stderr_is_terminal() {
  return isatty(STDERR_FILENO) == 1;
}

bool use_colour(ColourChoice choice) {
  if (choice != ColourChoice::Auto) return choice == ColourChoice::Always;
  if (is_set("NO_COLOR") || isatty(STDOUT_FILENO) != 1) return false;
  const char* terminal = std::getenv("TERM");
  return terminal != nullptr && std::string_view(terminal) != "dumb";
}

int display_width(std::string_view text) {
  int width = 0;
  bool in_escape = false;
  for (const char c : text) {
    if (c == '\x1b') in_escape = true;
    const bool continues_code_point = (static_cast<unsigned char>(c) & 0xC0U) == 0x80U;
    if (!in_escape && !continues_code_point) ++width;
    if (in_escape && c == 'm') in_escape = false;
  }
  return width;
}

std::string wrapped(std::string_view text, int width, int indent) {
  std::string result;
  int column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    const int length = display_width(word);
    const bool first = result.empty();
    if (!first && width > 0 && column + 1 + length > width) {
      result += '\n';
      result.append(static_cast<std::size_t>(indent), ' ');
      column = indent;
    } else if (!first) {
      result += ' ';
      ++column;
    }
    result += word;
    column += length;
  }
  return result;
}

}  // namespace shardwright::cli
