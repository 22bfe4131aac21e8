#include "cli/output/page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/printable_text.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {
namespace {

// Longer lines are tiring to read.
constexpr int kMostProseWidth = 100;

constexpr const char* kHtmlStyle = R"(
:root { color-scheme: light dark; --ink: #1a1a1a; --paper: #fff; --faint: #8886; --bar: #0072b2; --warning: #b34700; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e6e6; --paper: #16181c; --bar: #56b4e9; --warning: #ffb066; } }
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; }
th, td { padding: .2rem .8rem .2rem 0; border-bottom: 1px solid var(--faint); text-align: left; vertical-align: top; }
th { font-weight: 600; } th small { font-weight: 400; opacity: .7; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .1rem 1rem; } dt { opacity: .7; } dd { margin: 0; }
.warning { color: var(--warning); }
figure { margin: 1.5rem 0; } figure td + td { overflow-wrap: anywhere; } figcaption { font-weight: 600; margin-bottom: .5rem; }
svg { max-width: 100%; height: auto; } svg text { font: 12px system-ui, sans-serif; fill: var(--ink); }
svg .bar { fill: var(--bar); } svg .curve { fill: none; stroke: var(--bar); stroke-width: 2; }
svg .grid { stroke: var(--faint); } svg .diagonal { stroke: var(--ink); stroke-dasharray: 4 3; }
.timeline canvas { width: 100%; cursor: grab; touch-action: none; } .timeline output { display: block; min-height: 1.5em; }
.note, footer { opacity: .75; font-size: 12px; } pre { overflow-x: auto; }
)";

// Sets what stands between two backticks as code.
std::string with_code(std::string html) {
  for (bool opens = true;; opens = !opens) {
    const std::size_t at = html.find('`');
    if (at == std::string::npos) return html;
    html.replace(at, 1, opens ? "<code>" : "</code>");
  }
}

}  // namespace

int Page::prose_width() const {
  if (style_.markdown) return 0;
  return style_.width == 0 ? kMostProseWidth : std::min(style_.width, kMostProseWidth);
}

std::string Page::worded(const std::string& text) const {
  return planner::with_accelerator(printable(text), style_.accelerator);
}

void Page::separate() {
  if (!text_.empty()) text_ += '\n';
}

void Page::heading(const std::string& text) {
  const std::string title = html_escaped(worded(text));
  html_ +=
      title_.empty() ? fmt::format("<h1>{}</h1>\n", title) : fmt::format("<h2>{}</h2>\n", title);
  if (title_.empty()) title_ = title;
  separate();
  const std::string line = wrapped(worded(text), prose_width());
  text_ += (style_.markdown ? "## " + line : style_.style.bold(line)) + '\n';
  if (style_.markdown) text_ += '\n';
}

void Page::paragraph(const std::string& text) {
  html_ += fmt::format("<p>{}</p>\n", with_code(html_escaped(worded(text))));
  separate();
  text_ += wrapped(worded(text), prose_width()) + '\n';
}

void Page::warning(const std::string& text) {
  html_ += fmt::format("<p class=\"warning\">Warning: {}</p>\n", html_escaped(worded(text)));
  separate();
  const std::string line = wrapped("warning: " + worded(text), prose_width(), 2);
  text_ += style_.style.warning(line) + '\n';
}

void Page::bullets(const std::vector<std::string>& items) {
  html_ += "<ul>";
  for (const std::string& item : items)
    html_ += fmt::format("<li>{}</li>\n", html_escaped(worded(item)));
  html_ += "</ul>\n";
  for (const std::string& item : items)
    text_ += wrapped("- " + worded(item), prose_width(), 2) + '\n';
}

void Page::figure(const std::string& caption, const std::string& html) {
  if (!html.empty())
    html_ += fmt::format("<figure><figcaption>{}</figcaption>\n{}</figure>\n",
                         html_escaped(worded(caption)), html);
}

std::string Page::html(const std::string& command, const std::string& version) const {
  // A page without headings, as of `validate`, is named after its command.
  const std::string name = html_escaped(printable(command));
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>{}</title><style>{}</style></"
      "head><body>\n{}{}<footer><p>Made by "
      "shardwright {} with</p><pre>{}</pre></footer>\n</body></html>\n",
      title_.empty() ? name : title_, kHtmlStyle, title_.empty() ? "<h1>" + name + "</h1>\n" : "",
      html_, version, name);
}

void Page::table(const Table& given) {
  const Table table = given.worded([this](const std::string& text) {
    return planner::with_accelerator(text, style_.accelerator);
  });
  html_ += "<div class=\"wide\">" + table.html() + "</div>\n";
  separate();
  text_ += style_.markdown ? table.markdown() : table.text(style_.width, style_.style);
}

void Page::facts(const std::vector<std::pair<std::string, std::string>>& given) {
  std::vector<std::pair<std::string, std::string>> facts;
  for (const auto& [name, value] : given) facts.emplace_back(worded(name), worded(value));
  html_ += "<dl>";
  for (const auto& [name, value] : facts)
    html_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_escaped(name), html_escaped(value));
  html_ += "</dl>\n";
  int name_width = 0;
  for (const auto& [name, value] : facts) name_width = std::max(name_width, display_width(name));
  for (const auto& [name, value] : facts) {
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
