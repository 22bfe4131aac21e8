#include "cli/output/page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/printable_text.hpp"

namespace shardwright::cli {
namespace {

// Longer lines are tiring to read.
constexpr int kMostProseWidth = 100;

}  // namespace

int Page::prose_width() const {
  if (style_.markdown) return 0;
  return style_.width == 0 ? kMostProseWidth : std::min(style_.width, kMostProseWidth);
}

void Page::separate() {
  if (!text_.empty()) text_ += '\n';
}

void Page::heading(const std::string& text) {
  separate();
  const std::string line = wrapped(printable(text), prose_width());
  text_ += (style_.markdown ? "## " + line : style_.style.bold(line)) + '\n';
  if (style_.markdown) text_ += '\n';
}

void Page::paragraph(const std::string& text) {
  separate();
  text_ += wrapped(printable(text), prose_width()) + '\n';
}

void Page::warning(const std::string& text) {
  separate();
  const std::string line = wrapped("warning: " + printable(text), prose_width(), 2);
  text_ += style_.style.warning(line) + '\n';
}

void Page::bullets(const std::vector<std::string>& items) {
  for (const std::string& item : items)
    text_ += wrapped("- " + printable(item), prose_width(), 2) + '\n';
}

void Page::table(const Table& table) {
  separate();
  text_ += style_.markdown ? table.markdown() : table.text(style_.width, style_.style);
}

void Page::facts(const std::vector<std::pair<std::string, std::string>>& facts) {
  int name_width = 0;
  for (const auto& [name, value] : facts) name_width = std::max(name_width, display_width(name));
  for (const auto& [name, raw] : facts) {
    const std::string value = printable(raw);
    if (style_.markdown) {
      text_ += fmt::format("- **{}**: {}\n", name, value);
      continue;
    }
    const std::string blanks(static_cast<std::size_t>(name_width - display_width(name)), ' ');
    const int indent = name_width + 2;
    const int value_width = std::max(prose_width() - indent, 1);
    std::string folded = wrapped(value, value_width);
    for (std::size_t at = 0; (at = folded.find('\n', at)) != std::string::npos; at += 1)
      folded.insert(at + 1, static_cast<std::size_t>(indent), ' ');
    text_ += fmt::format("{}{}  {}\n", style_.style.dim(name), blanks, folded);
  }
}

}  // namespace shardwright::cli
