// Spans that stand out in their rows: those of the critical path, and those that a search has
// found.
#pragma once

#include <cstdint>
#include <vector>

#include "gui/painting/axis_window.hpp"
#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

class SpanMarks {
 public:
  SpanMarks() = default;
  // Leaves out spans that `tracks` does not show.
  SpanMarks(const TimelineTracks& tracks, const std::vector<SpanRef>& spans);

  bool empty() const { return count_ == 0; }
  std::size_t count() const { return count_; }
  bool contains(std::size_t row, std::size_t position) const;
  // The extent of marked spans in pixels, at least one wide.
  struct Extent {
    double x0 = 0.0, x1 = 0.0;
  };
  // Returns the extents of the marks in view; marks within one column of pixels have one.
  std::vector<Extent> visible(const SpanRow& spans, std::size_t row, const AxisWindow& window,
                              int width) const;

 private:
  std::vector<std::vector<std::uint32_t>> positions_;
  std::size_t count_ = 0;
};

}  // namespace shardwright::gui
