// The spans of one stream of one rank, made for painting at any zoom. All times are in seconds, and
// indices of spans are those into Timeline::spans.
//
// Above the sorted spans stands a pyramid: each node stands for eight spans or eight lower nodes.
// It has their extent in time and the busy time of each role. A paint descends from the top, skips
// nodes outside of the view, and stops at nodes that are narrower than a pixel. So it looks at some
// tens of nodes for each pixel of width, however many spans there are.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "gui/painting/axis_window.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {

struct RowSpan {
  double start = 0.0, end = 0.0;
  std::uint32_t index = 0;
  Role role = Role::Other;

  bool operator==(const RowSpan&) const = default;
};

using RoleTimes = EnumArray<Role, double>;

// A span wide enough to be painted by itself.
struct SpanBox {
  std::size_t position = 0;
  // The edges are in pixels and not clipped.
  double x0 = 0.0, x1 = 0.0;
};

// A column of pixels with spans too narrow to be painted one by one.
struct ColumnLoad {
  int column = 0;
  // The share of the column's time; it exceeds 1 only if spans overlap.
  double busy = 0.0;
  Role role = Role::Other;
};

struct RowLayout {
  std::vector<SpanBox> boxes;
  std::vector<ColumnLoad> columns;
};

// The positions from `first` up to, but without, `last`.
struct PositionRange {
  std::size_t first = 0, last = 0;

  std::size_t size() const { return last - first; }
  bool operator==(const PositionRange&) const = default;
};

class SpanRow {
 public:
  SpanRow() = default;
  // Takes spans in any order. It keeps spans that overlap, as a malformed file may have them.
  explicit SpanRow(std::vector<RowSpan> spans);

  // The spans in the order of their starts.
  const std::vector<RowSpan>& spans() const { return spans_; }
  // Returns the spans that overlap [from, to]. If spans overlap each other, it may return a few
  // before these as well.
  PositionRange visible(double from, double to) const;
  // Returns the last span to start among those that cover the time.
  std::optional<std::size_t> at(double time) const;
  // Returns the position of the span with this index into the timeline and this start.
  std::optional<std::size_t> find(double start, std::uint32_t index) const;

  RoleTimes busy() const;
  // Spans at least `box_width` pixels wide become boxes, the others columns.
  RowLayout lay_out(const AxisWindow& window, int width, double box_width = 2.0) const;

 private:
  struct Node {
    double start = 0.0, end = 0.0;
    RoleTimes busy{};
    // The roles whose times are not zero, one a bit.
    std::uint32_t roles = 0;
  };
  class Painter;

  // Returns a node for each kBranching parts, which are spans or nodes.
  template <class Part, class AddBusy>
  static std::vector<Node> summed_up(const std::vector<Part>& parts, AddBusy add_busy);

  std::vector<RowSpan> spans_;
  // Each span has the latest end of all spans up to it.
  std::vector<double> reach_;
  // The finest level comes first; the last has at most kBranching nodes.
  std::vector<std::vector<Node>> levels_;
};

}  // namespace shardwright::gui
