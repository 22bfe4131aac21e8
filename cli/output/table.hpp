// Tables for terminals, Markdown and HTML.
//
// A column has a title and, on the line below it, a unit. Numbers are right-aligned. If a table is
// wider than the terminal, the cells of its prose columns are folded, even inside words that are
// too long. Columns that still do not fit follow in further tables, which begin with the first
// column again. Names are folded only if they do not fit beside one other column.
#pragma once

#include <string>
#include <vector>

#include "cli/output/terminal.hpp"

namespace shardwright::cli {

enum class ColumnKind {
  // Left-aligned, on one line if it fits.
  Text,
  // Left-aligned, may be folded.
  Prose,
  // Right-aligned.
  Number,
};
inline constexpr ColumnKind kNumber = ColumnKind::Number;

struct Column {
  std::string title;
  ColumnKind kind = ColumnKind::Text;
  std::string unit{};
};

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // The table with each title, unit and cell as `word` gives it.
  template <class Word>
  Table worded(const Word& word) const {
    Table table = *this;
    for (Column& column : table.columns_) {
      column.title = word(column.title);
      column.unit = word(column.unit);
    }
    for (std::vector<std::string>& row : table.rows_)
      for (std::string& cell : row) cell = word(cell);
    return table;
  }

  // Adds one cell per column, without line breaks.
  void add_row(std::vector<std::string> cells);

  // `width` is that of the terminal in columns; 0: no limit. Every line ends with a line feed.
  std::string text(int width, const Style& style = Style()) const;
  std::string markdown() const;
  std::string html() const;

 private:
  std::vector<int> natural_widths() const;
  std::vector<int> folded_widths(const std::vector<std::size_t>& columns, int width) const;
  std::string part(const std::vector<std::size_t>& columns, const std::vector<int>& widths,
                   const Style& style) const;
  std::string header(const std::vector<std::size_t>& columns, const std::vector<int>& widths,
                     const Style& style) const;
  std::string aligned(std::size_t column, const std::string& text, int width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace shardwright::cli
