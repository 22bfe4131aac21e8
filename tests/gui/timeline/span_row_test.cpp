#include "gui/timeline/span_row.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

namespace shardwright::gui {
namespace {

// Returns spans that follow each other with gaps, from nanoseconds to milliseconds long, some of no
// length.
std::vector<RowSpan> any_spans(int most) {
  std::vector<RowSpan> spans;
  double time = 0.0;
  const int count = *rc::gen::inRange(0, most);
  for (int i = 0; i < count; ++i) {
    time += *rc::gen::inRange(0, 3) * 1e-6 * *rc::gen::inRange(0, 100);
    const double length = std::pow(10.0, -*rc::gen::inRange(3, 10)) * *rc::gen::inRange(0, 10);
    spans.push_back({time, time + length, static_cast<std::uint32_t>(i),
                     static_cast<Role>(*rc::gen::inRange<std::size_t>(0, kEnumCount<Role>))});
    time += length;
  }
  return spans;
}

double end_of(const std::vector<RowSpan>& spans) {
  return spans.empty() ? 1.0 : spans.back().end + 1e-6;
}

TEST(SpanRow, PyramidConservesBusyTimeOfEachRole) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<RowSpan> spans = any_spans(600);
    RoleTimes expected{};
    for (const RowSpan& span : spans) expected[span.role] += span.end - span.start;
    const RoleTimes busy = SpanRow(spans).busy();
    for (std::size_t role = 0; role < busy.size(); ++role)
      RC_ASSERT(std::abs(busy[role] - expected[role]) <= 1e-12 + 1e-9 * expected[role]);
  }));
}

// The painted pixels add up to the length of the spans, at any zoom that shows all of them.
TEST(SpanRow, LayoutConservesBusyTime) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<RowSpan> spans = any_spans(600);
    const int width = *rc::gen::inRange(1, 2000);
    const AxisWindow window = AxisWindow::whole(end_of(spans));
    const RowLayout layout = SpanRow(spans).lay_out(window, width);
    double painted = 0.0, expected = 0.0;
    for (const SpanBox& box : layout.boxes) painted += box.x1 - box.x0;
    for (const ColumnLoad& column : layout.columns) painted += column.busy;
    for (const RowSpan& span : spans) expected += (span.end - span.start) / window.length() * width;
    RC_ASSERT(std::abs(painted - expected) < 1e-6 * (1.0 + expected));
  }));
}

TEST(SpanRow, ColumnsAreNeverFullerThanTheirTime) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<RowSpan> spans = any_spans(400);
    AxisWindow window = AxisWindow::whole(end_of(spans));
    window.zoom_about(window.limit * *rc::gen::inRange(0, 100) / 100.0,
                      1 << *rc::gen::inRange(0, 12));
    const RowLayout layout = SpanRow(spans).lay_out(window, 700);
    int last = -1;
    for (const ColumnLoad& column : layout.columns) {
      RC_ASSERT(column.column > last && column.column < 700);
      RC_ASSERT(column.busy > 0.0 && column.busy <= 1.0 + 1e-6);
      last = column.column;
    }
  }));
}

TEST(SpanRow, VisibleRangeEqualsBruteForce) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<RowSpan> spans = any_spans(300);
    const SpanRow row(spans);
    const double end = end_of(spans);
    const double from = end * *rc::gen::inRange(-10, 110) / 100.0;
    const double to = from + end * *rc::gen::inRange(0, 50) / 100.0;
    std::vector<std::uint32_t> expected, found;
    for (const RowSpan& span : spans) {
      if (span.end >= from && span.start <= to) expected.push_back(span.index);
    }
    const PositionRange range = row.visible(from, to);
    for (std::size_t i = range.first; i < range.last; ++i) found.push_back(row.spans()[i].index);
    RC_ASSERT(found == expected);
  }));
}

TEST(SpanRow, FindsTheSpanAtATime) {
  EXPECT_TRUE(rc::check([] {
    const std::vector<RowSpan> spans = any_spans(300);
    const SpanRow row(spans);
    for (const RowSpan& span : spans) {
      if (span.end - span.start < 1e-12) continue;
      const auto at = row.at(0.5 * (span.start + span.end));
      RC_ASSERT(at.has_value());
      RC_ASSERT(row.spans()[*at].index == span.index);
      RC_ASSERT(row.find(span.start, span.index) == at);
    }
  }));
}

// A malformed file may have spans that overlap. They must neither be lost nor hang the view.
TEST(SpanRow, KeepsSpansThatOverlapAndComeInAnyOrder) {
  const SpanRow row({{5.0, 6.0, 0, Role::Forward},
                     {0.0, 100.0, 1, Role::Tensor},
                     {5.0, 5.0, 2, Role::Forward},
                     {1.0, 2.0, 3, Role::Forward}});
  EXPECT_EQ(row.spans().front().index, 1U);
  const PositionRange range = row.visible(50.0, 60.0);
  ASSERT_GT(range.size(), 0U);
  EXPECT_EQ(row.spans()[range.first].index, 1U);
  EXPECT_EQ(row.at(50.0), std::optional<std::size_t>(0));
  EXPECT_EQ(row.lay_out(AxisWindow::whole(100.0), 500).boxes.size(), 3U);
}

TEST(SpanRow, EmptyRowHasNothingToPaint) {
  const SpanRow row;
  EXPECT_TRUE(row.lay_out(AxisWindow::whole(1.0), 100).columns.empty());
  EXPECT_FALSE(row.at(0.5));
  EXPECT_EQ(row.visible(0.0, 1.0).size(), 0U);
}

}  // namespace
}  // namespace shardwright::gui
