#include "gui/timeline/timeline_legend.hpp"

#include <QFontMetricsF>
#include <algorithm>

#include "gui/painting/legend_lines.hpp"

namespace shardwright::gui {
QFont legend_font() {
  return pixel_font(11);
}

std::vector<LegendEntry> legend_of(const TimelineTracks& tracks, bool has_critical_path,
                                   bool has_matches) {
  std::vector<LegendEntry> entries;
  const QFontMetricsF metrics(legend_font());
  const auto add = [&](LegendMark mark, Role role, const QString& text) {
    entries.push_back({mark, role, text,
                       (mark == LegendMark::None ? 0.0 : kLegendMarkWidth) +
                           metrics.horizontalAdvance(text) + kLegendGap});
  };
  RoleTimes busy{};
  for (const SpanRow& row : tracks.rows()) {
    const RoleTimes of_row = row.busy();
    for (std::size_t role = 0; role < busy.size(); ++role) busy[role] += of_row[role];
  }
  for (const Role role : enumerators<Role>())
    if (busy[role] > 0.0) add(LegendMark::Role, role, title_of(role));
  if (std::ranges::any_of(tracks.memory_rows(), [](const auto& row) { return row.has_base(); }))
    add(LegendMark::NotAllocated, {}, u"not allocated"_s);
  if (has_critical_path) add(LegendMark::CriticalPath, {}, u"critical path"_s);
  if (has_matches) add(LegendMark::Match, {}, u"found"_s);
  // Spans that are narrower than a pixel share a shade.
  add(LegendMark::None, {}, u"fainter: busy in part"_s);
  return entries;
}

std::vector<double> widths_of(const std::vector<LegendEntry>& entries) {
  std::vector<double> widths;
  for (const LegendEntry& entry : entries) widths.push_back(entry.width);
  return widths;
}

}  // namespace shardwright::gui
