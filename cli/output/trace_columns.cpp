#include "cli/output/trace_columns.hpp"

#include <fmt/format.h>

#include "core/base/printable_text.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::cli {

std::string milliseconds_text(Seconds time, Seconds largest) {
  return format_fixed(1e3 * time.value(), decimals_for(1e3 * largest.value()));
}

std::string share_text(Seconds part, Seconds whole) {
  return whole > Seconds(0.0) ? format_percent(part / whole) : "";
}

std::string cut_to(const std::string& text, std::size_t longest) {
  return printable(text.size() <= longest ? text : text.substr(0, longest - 1) + "…");
}

std::string count_or_empty(const std::optional<std::int64_t>& value) {
  return value ? format_count(*value) : "";
}

void say_how_many_are_left_out(Page& page, std::size_t rows) {
  if (rows > kMostRows)
    page.paragraph(
        fmt::format("These are the largest {} of {}; --json lists all.", kMostRows, rows));
}

}  // namespace shardwright::cli
