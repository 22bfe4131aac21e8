// The legend of a timeline: an entry for each colour and mark that it shows, in as many lines as
// they need.
#pragma once

#include <QString>
#include <cstdint>
#include <vector>

#include "gui/style/palette.hpp"
#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

// Between the left ends of a mark and of its text, in pixels.
inline constexpr double kLegendMarkWidth = 16.0;

enum class LegendMark : std::uint8_t { Role, NotAllocated, CriticalPath, Match, None };

struct LegendEntry {
  LegendMark mark = LegendMark::Role;
  // The role whose colour stands for it, of LegendMark::Role.
  Role role{};
  QString text;
  // In pixels, with the mark and the gap behind the text.
  double width = 0.0;
};

std::vector<LegendEntry> legend_of(const TimelineTracks& tracks, bool has_critical_path,
                                   bool has_matches);

// The widths of the entries in pixels, for places_in_legend().
std::vector<double> widths_of(const std::vector<LegendEntry>& entries);

QFont legend_font();

}  // namespace shardwright::gui
