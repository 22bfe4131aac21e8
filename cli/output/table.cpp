#include "cli/output/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <sstream>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/printable_text.hpp"

namespace shardwright::cli {
namespace {

constexpr int kGap = 2;
constexpr int kLeastProseWidth = 16;

int total_width(const std::vector<std::size_t>& columns, const std::vector<int>& widths) {
  int total = kGap * (static_cast<int>(columns.size()) - 1);
  for (const std::size_t column : columns) total += widths[column];
  return total;
}

// Returns the place to cut a word that does not fit, in bytes: after the last punctuation mark in
// its first `width` columns, or else at `width`. At least one code point.
std::size_t cut_of(const std::string& word, int width) {
  std::size_t cut = 0, at_sign = 0;
  for (int columns = 0; columns < width && cut < word.size(); ++columns) {
    const bool sign = std::string_view("-_/.:,").find(word[cut]) != std::string_view::npos;
    do ++cut;
    while (cut < word.size() && (static_cast<unsigned char>(word[cut]) & 0xC0U) == 0x80U);
    if (sign) at_sign = cut;
  }
  return at_sign > 0 ? at_sign : cut;
}

// Returns the text with blanks inserted into words that are wider than the column.
std::string with_short_words(const std::string& text, int width) {
  std::istringstream stream(text);
  std::string result;
  for (std::string word; stream >> word;) {
    if (!result.empty()) result += ' ';
    while (display_width(word) > width) {
      const std::size_t cut = cut_of(word, width);
      result += word.substr(0, cut) + ' ';
      word.erase(0, cut);
    }
    result += word;
  }
  return result;
}

std::string repeated(const std::string& text, int times) {
  std::string result;
  for (int i = 0; i < times; ++i) result += text;
  return result;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  if (lines.empty()) lines.emplace_back();
  return lines;
}

// Cells are joined with trailing blanks; the lines that leave the program have none.
void end_line(std::string& text) {
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
}

std::string escaped_for_markdown(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

// Divides the columns into groups that fit the width; every group begins with the first column.
std::vector<std::vector<std::size_t>> parts_that_fit(const std::vector<int>& widths, int width) {
  std::vector<std::vector<std::size_t>> parts(1);
  int used = 0;
  for (std::size_t column = 0; column < widths.size(); ++column) {
    const int need = widths[column] + (parts.back().empty() ? 0 : kGap);
    if (width > 0 && parts.back().size() > 1 && used + need > width) {
      parts.push_back({0});
      used = widths[0];
    }
    parts.back().push_back(column);
    used += need;
  }
  return parts;
}

}  // namespace

void Table::add_row(std::vector<std::string> cells) {
  SHARDWRIGHT_CHECK(cells.size() == columns_.size(), "a cell for each column");
  // Names may come from files, with control characters.
  for (std::string& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

std::vector<int> Table::natural_widths() const {
  std::vector<int> widths;
  for (std::size_t column = 0; column < columns_.size(); ++column) {
    int width =
        std::max(display_width(columns_[column].title), display_width(columns_[column].unit));
    for (const auto& row : rows_) width = std::max(width, display_width(row[column]));
    widths.push_back(width);
  }
  return widths;
}

// Narrows the columns of prose, the widest first, until all columns fit the width together. Of two
// columns, which cannot be divided further, names are narrowed too.
std::vector<int> Table::folded_widths(const std::vector<std::size_t>& columns, int width) const {
  std::vector<int> widths = natural_widths();
  if (width <= 0) return widths;
  for (int surplus = total_width(columns, widths) - width; surplus > 0; --surplus) {
    std::size_t widest = columns_.size();
    for (const std::size_t column : columns) {
      const int least = std::max(kLeastProseWidth, display_width(columns_[column].title));
      const ColumnKind kind = columns_[column].kind;
      const bool folds =
          kind == ColumnKind::Prose || (kind == ColumnKind::Text && columns.size() <= 2);
      if (!folds || widths[column] <= least) continue;
      if (widest == columns_.size() || widths[column] > widths[widest]) widest = column;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string Table::aligned(std::size_t column, const std::string& text, int width) const {
  const std::string blanks(static_cast<std::size_t>(std::max(0, width - display_width(text))), ' ');
  return columns_[column].kind == ColumnKind::Number ? blanks + text : text + blanks;
}

std::string Table::header(const std::vector<std::size_t>& columns, const std::vector<int>& widths,
                          const Style& style) const {
  std::string titles, units, rule;
  bool any_unit = false;
  for (const std::size_t column : columns) {
    const std::string gap = column == columns.front() ? "" : std::string(kGap, ' ');
    titles += gap + aligned(column, columns_[column].title, widths[column]);
    units += gap + aligned(column, columns_[column].unit, widths[column]);
    rule += gap + repeated("─", widths[column]);
    any_unit = any_unit || !columns_[column].unit.empty();
  }
  end_line(titles);
  end_line(units);
  titles.pop_back();
  units.pop_back();
  std::string text = style.bold(titles) + '\n';
  if (any_unit) text += style.dim(units) + '\n';
  return text + style.dim(rule) + '\n';
}

std::string Table::part(const std::vector<std::size_t>& columns, const std::vector<int>& widths,
                        const Style& style) const {
  std::string text = header(columns, widths, style);
  for (const auto& row : rows_) {
    std::vector<std::vector<std::string>> cells;
    std::size_t height = 1;
    for (const std::size_t column : columns) {
      const int column_width = widths[column];
      const bool folds = display_width(row[column]) > column_width;
      cells.push_back(
          lines_of(folds ? wrapped(with_short_words(row[column], column_width), column_width)
                         : row[column]));
      height = std::max(height, cells.back().size());
    }
    for (std::size_t line = 0; line < height; ++line) {
      for (std::size_t i = 0; i < columns.size(); ++i) {
        if (i > 0) text.append(kGap, ' ');
        text +=
            aligned(columns[i], line < cells[i].size() ? cells[i][line] : "", widths[columns[i]]);
      }
      end_line(text);
    }
  }
  return text;
}

std::string Table::text(int width, const Style& style) const {
  std::vector<std::size_t> all(columns_.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  std::string text;
  for (const auto& columns : parts_that_fit(folded_widths(all, width), width)) {
    if (!text.empty()) text += '\n';
    // A part of the table may have room that the whole table lacks.
    text += part(columns, folded_widths(columns, width), style);
  }
  return text;
}

std::string Table::markdown() const {
  std::string titles = "|", rule = "|", body;
  for (const Column& column : columns_) {
    const std::string unit = column.unit.empty() ? "" : " (" + column.unit + ")";
    titles += " " + escaped_for_markdown(column.title + unit) + " |";
    rule += column.kind == ColumnKind::Number ? " ---: |" : " --- |";
  }
  for (const auto& row : rows_) {
    body += '|';
    for (const std::string& cell : row) body += " " + escaped_for_markdown(cell) + " |";
    body += '\n';
  }
  return titles + '\n' + rule + '\n' + body;
}

std::string Table::html() const {
  const auto cell = [&](const char* tag, std::size_t column, const std::string& text) {
    const bool number = columns_[column].kind == ColumnKind::Number;
    return fmt::format("<{0}{1}>{2}</{0}>", tag, number ? " class=\"n\"" : "", text);
  };
  std::string html = "<table><thead><tr>";
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::string& unit = columns_[i].unit;
    html += cell("th", i,
                 html_escaped(columns_[i].title) +
                     (unit.empty() ? "" : "<br><small>" + html_escaped(unit) + "</small>"));
  }
  html += "</tr></thead><tbody>\n";
  for (const auto& row : rows_) {
    html += "<tr>";
    for (std::size_t i = 0; i < columns_.size(); ++i)
      html += cell("td", i, html_escaped(printable(row[i])));
    html += "</tr>\n";
  }
  return html + "</tbody></table>\n";
}

}  // namespace shardwright::cli
