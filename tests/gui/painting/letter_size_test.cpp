// Painted views grow with the letters: a view with larger letters is the same picture, enlarged,
// and answers the mouse at the enlarged places.
#include <gtest/gtest.h>

#include <QScrollBar>

#include "gui/schedule/schedule_canvas.hpp"
#include "gui/timeline/timeline_canvas.hpp"
#include "gui/topology/node_map.hpp"
#include "gui/topology/topology_canvas.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/small_scenario.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::shown;
using gui::fixtures::small_step;
using gui::fixtures::tool_tip_at;

constexpr double kLarger = 1.5;
constexpr QSize kUsualSize(854, 640);

void show_step(TimelineCanvas& canvas) {
  canvas.set_timelines({small_step().timeline}, nullptr, {}, {});
  // Tips say what lies on the critical path.
  ASSERT_TRUE(wait_for([&] { return !canvas.is_busy(); }));
}
void show_step(TopologyCanvas& canvas) {
  const Scenario& scenario = small_step().scenario;
  canvas.show_step(std::make_shared<const PlacedStep>(scenario.cluster, scenario.plan,
                                                      small_step().timeline.get()));
}
void show_step(ScheduleCanvas& canvas) {
  canvas.set_gantt(ScheduleGantt(ScheduleKind::OneFOneB, ScheduleShape{4, 1, 8}));
}

template <class Canvas>
void prepare(Canvas& canvas, double scale) {
  QFont letters = canvas.font();
  letters.setPixelSize(static_cast<int>(12.0 * scale));
  canvas.setFont(letters);
  // Bars are as wide as the style has them.
  canvas.setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  canvas.setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  show_step(canvas);
  shown(canvas, kUsualSize * scale);
}

template <class Canvas>
class LetterSize : public ::testing::Test {};
using Canvases = ::testing::Types<TimelineCanvas, TopologyCanvas, ScheduleCanvas>;
TYPED_TEST_SUITE(LetterSize, Canvases);

TYPED_TEST(LetterSize, ScalesThePictureAndTheMouse) {
  TypeParam usual, larger;
  prepare(usual, 1.0);
  prepare(larger, kLarger);
  const QImage picture = usual.viewport()->grab().toImage();
  const QImage enlarged = larger.viewport()->grab().toImage();
  std::set<QString> tips;
  int places = 0, equal = 0, other_tips = 0;
  for (int y = 4; y < kUsualSize.height(); y += 10) {
    for (int x = 4; x < kUsualSize.width(); x += 10) {
      const QPoint at(x, y), there = (QPointF(at) * kLarger).toPoint();
      const QString tip = tool_tip_at(*usual.viewport(), at);
      // At an edge the pixels decide.
      const bool is_inside = tip == tool_tip_at(*usual.viewport(), at + QPoint(1, 1)) &&
                             tip == tool_tip_at(*usual.viewport(), at - QPoint(1, 1));
      if (is_inside && tip != tool_tip_at(*larger.viewport(), there)) ++other_tips;
      tips.insert(tip);
      ++places;
      equal += picture.pixel(at) == enlarged.pixel(there) ? 1 : 0;
    }
  }
  EXPECT_GT(tips.size(), 10U);
  // A few places lie so near to an edge that the rounding of pixels decides, as it does for the
  // edges of letters and lines in the picture.
  EXPECT_LT(other_tips, 0.01 * places);
  EXPECT_GT(equal, 0.8 * places);
}

// A change of the desktop's letters reaches a view that stands already.
TYPED_TEST(LetterSize, FollowsALaterChange) {
  TypeParam first, later;
  prepare(first, kLarger);
  prepare(later, 1.0);
  later.setFont(first.font());
  shown(later, kUsualSize * kLarger);
  EXPECT_EQ(first.viewport()->grab().toImage(), later.viewport()->grab().toImage());
}

// Neither does the title reach into the cells, nor do these leave the map.
TEST(NodeMapLetters, LeaveRoomForTheCells) {
  for (const double scale : {1.0, kLarger, 2.0}) {
    for (const int width : {200, 600}) {
      NodeMap map;
      QFont letters = map.font();
      letters.setPixelSize(static_cast<int>(12.0 * scale));
      map.setFont(letters);
      QStringList names;
      for (int i = 0; i < 64; ++i) names.append(QString::number(i));
      map.show_loads(std::vector<double>(64, 1.0), 1.0, names);
      shown(map, {width, 400});
      const QImage picture = map.grab().toImage();
      const QRectF first = map.cell(0), last = map.cell(63);
      EXPECT_TRUE(QRectF(map.rect()).contains(first.united(last)));
      // All rows of pixels between the last letters and the first cell are empty.
      int letters_end = 0;
      for (int y = 0; y < static_cast<int>(first.top()); ++y)
        for (int x = 0; x < width; ++x)
          if (picture.pixel(x, y) != picture.pixel(0, 0)) letters_end = y;
      EXPECT_GT(letters_end, 10 * scale);
      EXPECT_LT(letters_end, first.top() - 4.0);
    }
  }
}

}  // namespace
}  // namespace shardwright::gui
