// Tables for terminals and for Markdown.
//
// A column has a title and, on a line of its own below it, a unit. Numbers stand right-aligned. A
// table that is wider than the terminal first folds the cells of its prose columns, also inside of
// words that are too long, and then goes on below itself: the columns that did not fit follow in
// further tables that begin with the first column again.
#pragma once

#include <string>
#include <vector>

#include "cli/output/terminal.hpp"

namespace shardwright::cli {

enum class ColumnKind {
  Text,    // left-aligned, one line
  Prose,   // left-aligned, may be folded
  Number,  // right-aligned
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

  // One cell per column, without line breaks.
  void add_row(std::vector<std::string> cells);

  // `width`: columns of the terminal; 0: as wide as it takes. Every line ends with a line feed.
  std::string text(int width, const Style& style = Style()) const;
  std::string markdown() const;

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
