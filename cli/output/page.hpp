// The result of a command as readable text: headings, paragraphs, lists and tables, for a
// terminal or as Markdown, and as HTML with drawings beside them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "cli/output/table.hpp"
#include "cli/output/terminal.hpp"

namespace shardwright::cli {

struct PageStyle {
  // In columns; 0: no limit.
  int width = 0;
  bool markdown = false;
  Style style;
  // What the page calls accelerators, which its texts call GPUs.
  std::string accelerator = "GPU";
};

class Page {
 public:
  explicit Page(PageStyle style) : style_(style) {}

  const Style& style() const { return style_.style; }

  void heading(const std::string& text);
  void paragraph(const std::string& text);
  // Adds a line that is marked as a warning.
  void warning(const std::string& text);
  void bullets(const std::vector<std::string>& items);
  void table(const Table& table);
  // Adds names and their meanings in two columns.
  void facts(const std::vector<std::pair<std::string, std::string>>& facts);

  // Adds a drawing, as HTML, with a line about it. Text has none.
  void figure(const std::string& caption, const std::string& html);

  const std::string& text() const { return text_; }
  // The whole page as one HTML document that needs no other file. Its title is the first heading;
  // it ends with the command that makes it.
  std::string html(const std::string& command, const std::string& version) const;

 private:
  int prose_width() const;
  void separate();
  // Printable, and with the page's word for accelerators.
  std::string worded(const std::string& text) const;

  PageStyle style_;
  std::string text_, html_, title_;
};

}  // namespace shardwright::cli
