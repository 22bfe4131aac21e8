// Spans that are marked in a timeline (search hits, the critical path), by row and ascending, so
// that a paint finds those that it shows.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

class SpanMarks {
 public:
  SpanMarks() = default;
  // Spans that `tracks` does not show are left out.
  SpanMarks(const TimelineTracks& tracks, const std::vector<SpanRef>& spans);

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  bool contains(std::size_t row, std::size_t position) const;
  // One mark for each column of pixels that has any, as the spans' extent in pixels (at least one).
  struct Extent {
    double x0 = 0.0, x1 = 0.0;
  };
  std::vector<Extent> visible(const SpanRow& spans, std::size_t row, const TimeWindow& window,
                              int width) const;

 private:
  std::vector<std::vector<std::uint32_t>> positions_;  // by row
  std::size_t count_ = 0;
};

}  // namespace shardwright::gui
