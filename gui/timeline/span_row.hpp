// The spans of one stream of one rank, made for painting at any zoom.
//
// Above the sorted spans stands a pyramid: nodes that sum up eight spans, nodes that sum up eight
// of those, and so on: from when to when, and how long each role was busy. A paint descends from
// the top, leaves out what is not visible, and stops where a node is narrower than a pixel; so it
// looks at some tens of nodes for each pixel of width, however many spans there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/painting/time_window.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {

struct RowSpan {
  double start = 0.0, end = 0.0;  // in seconds
  std::uint32_t index = 0;        // into Timeline::spans
  Role role = Role::Other;

  bool operator==(const RowSpan&) const = default;
};

// Seconds that each role was busy.
using RoleTimes = std::array<double, kRoles>;

// A span wide enough to be painted by itself; x in pixels, not clipped.
struct SpanBox {
  std::size_t position = 0;  // in the row
  double x0 = 0.0, x1 = 0.0;
};

// A column of pixels with spans too narrow to be told apart.
struct ColumnLoad {
  int column = 0;
  double busy = 0.0;        // of the column's time; above 1 only where spans overlap
  Role role = Role::Other;  // the one with the most time in it
};

struct RowLayout {
  std::vector<SpanBox> boxes;
  std::vector<ColumnLoad> columns;  // ascending
};

struct PositionRange {
  std::size_t first = 0, last = 0;  // half open

  std::size_t size() const { return last - first; }
  bool operator==(const PositionRange&) const = default;
};

class SpanRow {
 public:
  SpanRow() = default;
  // In any order. Spans that overlap (a malformed file) are kept.
  explicit SpanRow(std::vector<RowSpan> spans);

  // Ascending in their starts.
  const std::vector<RowSpan>& spans() const { return spans_; }
  // Those that overlap [from, to]. Where spans overlap each other, a few before them as well.
  PositionRange visible(double from, double to) const;
  // The latest-starting span that covers the time.
  std::optional<std::size_t> at(double time) const;
  // The position of the span with this index of the timeline and this start.
  std::optional<std::size_t> find(double start, std::uint32_t index) const;

  RoleTimes busy() const;
  // Spans at least `box_width` pixels wide become boxes, the others columns.
  RowLayout lay_out(const TimeWindow& window, int width, double box_width = 2.0) const;

 private:
  struct Node {
    double start = 0.0, end = 0.0;
    RoleTimes busy{};
  };
  class Painter;

  std::vector<RowSpan> spans_;
  std::vector<double> reach_;              // the latest end of all spans up to this one
  std::vector<std::vector<Node>> levels_;  // from the finest up; the last has at most kBranching
};

}  // namespace shardwright::gui
