#include "gui/timeline/span_marks.hpp"

#include <algorithm>

namespace shardwright::gui {

SpanMarks::SpanMarks(const TimelineTracks& tracks, const std::vector<SpanRef>& spans) {
  positions_.resize(tracks.rows().size());
  for (const SpanRef& ref : spans) {
    const auto track = tracks.track_of(ref);
    if (!track) continue;
    const std::size_t row = tracks.tracks()[*track].row;
    const auto position = tracks.rows()[row].find(tracks.span(ref).start.value(), ref.index);
    if (!position) continue;
    positions_[row].push_back(static_cast<std::uint32_t>(*position));
    ++count_;
  }
  for (std::vector<std::uint32_t>& row : positions_) std::sort(row.begin(), row.end());
}

bool SpanMarks::contains(std::size_t row, std::size_t position) const {
  return row < positions_.size() &&
         std::binary_search(positions_[row].begin(), positions_[row].end(), position);
}

std::vector<SpanMarks::Extent> SpanMarks::visible(const SpanRow& spans, std::size_t row,
                                                  const AxisWindow& window, int width) const {
  std::vector<Extent> extents;
  if (row >= positions_.size()) return extents;
  const std::vector<std::uint32_t>& marked = positions_[row];
  const PositionRange shown = spans.visible(window.from, window.to);
  auto at = std::lower_bound(marked.begin(), marked.end(), shown.first);
  while (at != marked.end() && *at < shown.last) {
    const RowSpan& span = spans.spans()[*at];
    const double x0 = std::max(0.0, window.pixel_of(span.start, width));
    const double x1 = std::clamp(window.pixel_of(span.end, width), x0 + 1.0, double(width) + 1.0);
    if (!extents.empty() && x0 <= extents.back().x1) {
      extents.back().x1 = std::max(extents.back().x1, x1);
    } else {
      extents.push_back({x0, x1});
    }
    // Spans that end within the same column add nothing.
    const double next = window.value_at(x0 + 1.0, width);
    at = std::partition_point(at + 1, marked.end(), [&](std::uint32_t position) {
      return spans.spans()[position].end < next;
    });
  }
  return extents;
}

}  // namespace shardwright::gui
