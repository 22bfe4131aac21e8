#include "gui/timeline/span_row.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace shardwright::gui {
namespace {

constexpr std::size_t kBranching = 8;

std::uint32_t bit_of(Role role) {
  static_assert(enumerators<Role>().size() <= 32);
  return std::uint32_t{1} << static_cast<unsigned>(role);
}

// Calls `take` for the roles of a set, in their order. A row has a few of all roles.
template <class Take>
void for_each_role(std::uint32_t roles, const Take& take) {
  for (; roles != 0; roles &= roles - 1) take(static_cast<Role>(std::countr_zero(roles)));
}

}  // namespace

template <class Part, class AddBusy>
std::vector<SpanRow::Node> SpanRow::summed_up(const std::vector<Part>& parts, AddBusy add_busy) {
  std::vector<Node> nodes;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i % kBranching == 0) nodes.push_back({parts[i].start, parts[i].end, {}, 0});
    nodes.back().end = std::max(nodes.back().end, parts[i].end);
    add_busy(nodes.back(), parts[i]);
  }
  return nodes;
}

SpanRow::SpanRow(std::vector<RowSpan> spans) : spans_(std::move(spans)) {
  const auto earlier = [](const RowSpan& a, const RowSpan& b) { return a.start < b.start; };
  if (!std::is_sorted(spans_.begin(), spans_.end(), earlier))
    std::stable_sort(spans_.begin(), spans_.end(), earlier);
  reach_.reserve(spans_.size());
  for (const RowSpan& span : spans_)
    reach_.push_back(reach_.empty() ? span.end : std::max(reach_.back(), span.end));
  levels_.push_back(summed_up(spans_, [](Node& node, const RowSpan& span) {
    node.busy[span.role] += span.end - span.start;
    node.roles |= bit_of(span.role);
  }));
  while (levels_.back().size() > kBranching) {
    levels_.push_back(summed_up(levels_.back(), [](Node& node, const Node& below) {
      for_each_role(below.roles, [&](Role role) { node.busy[role] += below.busy[role]; });
      node.roles |= below.roles;
    }));
  }
  if (levels_.back().empty()) levels_.clear();
}

PositionRange SpanRow::visible(double from, double to) const {
  const auto first = std::lower_bound(reach_.begin(), reach_.end(), from) - reach_.begin();
  const auto last = std::upper_bound(spans_.begin(), spans_.end(), to,
                                     [](double time, const RowSpan& s) { return time < s.start; }) -
                    spans_.begin();
  return {static_cast<std::size_t>(first), static_cast<std::size_t>(std::max(first, last))};
}

std::optional<std::size_t> SpanRow::at(double time) const {
  const PositionRange range = visible(time, time);
  for (std::size_t i = range.last; i > range.first; --i) {
    if (spans_[i - 1].end >= time) return i - 1;
  }
  return std::nullopt;
}

std::optional<std::size_t> SpanRow::find(double start, std::uint32_t index) const {
  auto at = std::lower_bound(spans_.begin(), spans_.end(), start,
                             [](const RowSpan& span, double time) { return span.start < time; });
  for (; at != spans_.end() && at->start == start; ++at) {
    if (at->index == index) return static_cast<std::size_t>(at - spans_.begin());
  }
  return std::nullopt;
}

RoleTimes SpanRow::busy() const {
  RoleTimes sum{};
  if (levels_.empty()) return sum;
  for (const Node& node : levels_.back()) {
    for (std::size_t role = 0; role < sum.size(); ++role) sum[role] += node.busy[role];
  }
  return sum;
}

// Descends the pyramid for one paint.
class SpanRow::Painter {
 public:
  Painter(const SpanRow& row, const AxisWindow& window, int width, double box_width)
      : row_(row),
        window_(window),
        width_(width),
        box_width_(box_width),
        per_second_(width / window.length()) {}

  RowLayout paint() {
    if (!row_.levels_.empty()) {
      const std::size_t top = row_.levels_.size() - 1;
      for (std::size_t i = 0; i < row_.levels_[top].size(); ++i) descend(top, i);
    }
    collect_columns();
    return std::move(layout_);
  }

 private:
  struct Column {
    RoleTimes busy{};
    // The roles whose times are not zero, one a bit.
    std::uint32_t roles = 0;
  };

  double x_of(double time) const { return (time - window_.from) * per_second_; }
  bool hidden(double start, double end) const { return end < window_.from || start > window_.to; }

  void descend(std::size_t level, std::size_t index) {
    const Node& node = row_.levels_[level][index];
    if (hidden(node.start, node.end)) return;
    if ((node.end - node.start) * per_second_ < 1.0) return add_node(node);
    const std::size_t first = index * kBranching;
    if (level > 0) {
      const std::size_t last = std::min(row_.levels_[level - 1].size(), first + kBranching);
      for (std::size_t i = first; i < last; ++i) descend(level - 1, i);
      return;
    }
    for (std::size_t i = first; i < std::min(row_.spans_.size(), first + kBranching); ++i)
      add_span(i);
  }

  void add_span(std::size_t position) {
    const RowSpan& span = row_.spans_[position];
    if (hidden(span.start, span.end)) return;
    const double x0 = x_of(span.start), x1 = x_of(span.end);
    if (x1 - x0 >= box_width_) {
      layout_.boxes.push_back({position, x0, x1});
      return;
    }
    spread(span.start, span.end, [&](Column& column, double share) {
      column.busy[span.role] += share * (span.end - span.start);
      column.roles |= bit_of(span.role);
    });
  }

  void add_node(const Node& node) {
    spread(node.start, node.end, [&](Column& column, double share) {
      for_each_role(node.roles, [&](Role role) { column.busy[role] += share * node.busy[role]; });
      column.roles |= node.roles;
    });
  }

  // Calls `add` for the columns that a time lies on, with the share that each covers.
  template <class Add>
  void spread(double start, double end, Add add) {
    if (columns_.empty()) columns_.resize(static_cast<std::size_t>(width_));
    const double x0 = x_of(start), x1 = std::max(x_of(end), x0 + 1e-9);
    const int first = static_cast<int>(std::floor(x0));
    if (x1 <= first + 1.0) {
      if (first >= 0 && first < width_) add(columns_[static_cast<std::size_t>(first)], 1.0);
      return;
    }
    for (int column = std::max(0, first); column < width_ && column < x1; ++column) {
      const double covered = std::min(x1, column + 1.0) - std::max(x0, static_cast<double>(column));
      add(columns_[static_cast<std::size_t>(column)], covered / (x1 - x0));
    }
  }

  void collect_columns() {
    for (std::size_t column = 0; column < columns_.size(); ++column) {
      const RoleTimes& times = columns_[column].busy;
      double busy = 0.0;
      Role most{};
      for_each_role(columns_[column].roles, [&](Role role) {
        busy += times[role];
        if (times[role] > times[most]) most = role;
      });
      if (busy <= 0.0) continue;
      layout_.columns.push_back({static_cast<int>(column), busy * per_second_, most});
    }
  }

  const SpanRow& row_;
  const AxisWindow& window_;
  int width_;
  double box_width_;
  double per_second_;
  RowLayout layout_;
  std::vector<Column> columns_;
};

RowLayout SpanRow::lay_out(const AxisWindow& window, int width, double box_width) const {
  if (width <= 0 || window.length() <= 0.0) return {};
  return Painter(*this, window, width, box_width).paint();
}

}  // namespace shardwright::gui
