// Entries of a painted legend one behind the other, in as many lines as they need.
#pragma once

#include <QPointF>
#include <vector>

namespace shardwright::gui {

// The room in pixels between an entry's text and the next entry; widths of entries include it.
inline constexpr double kLegendGap = 14.0;

// Returns the left end of the middle of each entry, in pixels from the corner of a legend of this
// width.
std::vector<QPointF> places_in_legend(const std::vector<double>& entries, double width);

// In pixels, of one line at least.
double legend_height(const std::vector<double>& entries, double width);

}  // namespace shardwright::gui
