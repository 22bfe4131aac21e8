#include "gui/timeline/span_marks.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "gui/models/text.hpp"
#include "tests/gui/timeline/timeline_view_fixture.hpp"

namespace shardwright::gui {
namespace {

TEST(SpanMarks, AreFoundWhereTheirSpansLie) {
  const TimelineTracks tracks = gui::fixtures::tracks_of({gui::fixtures::small_step().timeline});
  const std::vector<SpanRef> found = tracks.find(SpanQuery::parse(u"qkv mb=2"_s));
  ASSERT_FALSE(found.empty());
  const SpanMarks marks(tracks, found);
  EXPECT_EQ(marks.count(), found.size());
  for (const SpanRef& ref : found) {
    const Span& span = tracks.span(ref);
    const std::size_t row = tracks.tracks()[*tracks.track_of(ref)].row;
    AxisWindow window = AxisWindow::whole(tracks.end());
    window.show(span.start.value(), span.end().value());
    const auto extents = marks.visible(tracks.rows()[row], row, window, 1000);
    EXPECT_TRUE(std::any_of(extents.begin(), extents.end(), [](const auto& each) {
      return each.x0 <= 500.0 && each.x1 >= 500.0;
    })) << span.name;
  }
}

}  // namespace
}  // namespace shardwright::gui
