// Statistics of a range of time: time and number of ops by kind, and the share in which the compute
// streams are busy.
#pragma once

#include <array>
#include <vector>

#include "gui/models/table_text.hpp"
#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

// Spans of one kind of op, or of one category of another program's kernels, within the range; those
// that cross its ends count with the part inside.
struct KindStatistics {
  QString title;
  std::array<double, 2> seconds{};
  std::array<std::size_t, 2> count{};
};

// A row of the timeline that is shown and has spans within the range.
struct RowStatistics {
  // "stage 3 · compute", and behind it the timeline if two are compared.
  QString title;
  double seconds = 0.0;
  std::size_t count = 0;
};

struct RangeStatistics {
  double from = 0.0, to = 0.0;
  // The kind with the most time comes first.
  std::vector<KindStatistics> kinds;
  // From top to bottom.
  std::vector<RowStatistics> rows;
  // Each side has the share of the range in which an op runs, averaged over the compute streams
  // shown. The share is negative if none is shown.
  std::array<double, 2> compute_busy{-1.0, -1.0};

  double length() const { return to - from; }
  std::size_t count(std::size_t side) const;
};

RangeStatistics range_statistics(const TimelineTracks& tracks, double from, double to);

// The statistics as texts: a row for each kind, and one for all; no row without spans. `sides` are
// the titles of the timelines shown, one or two (TimelineTracks::side_title()).
TextTable statistics_table(const RangeStatistics& statistics, const QStringList& sides);
// A line for each row, with the share of the range in which it is busy.
TextTable row_table(const RangeStatistics& statistics);

}  // namespace shardwright::gui
