#include "gui/painting/axis_window.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cmath>

namespace shardwright::gui {
namespace {

double any_share() {
  return *rc::gen::inRange(0, 100'001) / 100'000.0;
}

TEST(AxisWindow, ZoomKeepsTheTimeUnderTheCursorUntilTheLimits) {
  EXPECT_TRUE(rc::check([] {
    AxisWindow window = AxisWindow::whole(10.0);
    window.show(2.0 + any_share(), 6.0 + any_share());
    const double x = 1000.0 * any_share(), factor = 1.0 + 3.0 * any_share();
    const double time = window.value_at(x, 1000.0);
    window.zoom_about(time, factor);
    RC_ASSERT(std::abs(window.pixel_of(time, 1000.0) - x) < 1e-6);
    window.zoom_about(time, 1e-9);
    RC_ASSERT(window.shows_all());
  }));
}

TEST(AxisWindow, NeverLeavesWhatThereIsToSee) {
  EXPECT_TRUE(rc::check([] {
    AxisWindow window = AxisWindow::whole(any_share() * 20.0);
    for (int i = 0; i < 20; ++i) {
      if (*rc::gen::arbitrary<bool>()) {
        window.pan((any_share() - 0.5) * 40.0);
      } else {
        window.zoom_about(any_share() * window.limit, std::exp(10.0 * (any_share() - 0.5)));
      }
      RC_ASSERT(window.from >= 0.0 && window.to <= window.limit * (1.0 + 1e-12));
      RC_ASSERT(window.length() > 0.0);
    }
  }));
}

TEST(AxisWindow, TicksAreRoundOrderedAndApart) {
  EXPECT_TRUE(rc::check([] {
    AxisWindow window = AxisWindow::whole(30.0);
    const double length = std::pow(10.0, -6.0 + 7.0 * any_share());
    const double from = any_share() * (30.0 - length);
    window.show(from, from + length);
    const std::vector<TimeTick> ticks = time_ticks(window, 1000.0, 100.0);
    RC_ASSERT(ticks.size() >= 3 && ticks.size() <= 11);
    for (std::size_t i = 1; i < ticks.size(); ++i) {
      const double pixels =
          window.pixel_of(ticks[i].time, 1000.0) - window.pixel_of(ticks[i - 1].time, 1000.0);
      RC_ASSERT(pixels > 99.0);
      RC_ASSERT(ticks[i].label != ticks[i - 1].label);
    }
  }));
}

TEST(AxisWindow, TicksShowTheirUnit) {
  AxisWindow window = AxisWindow::whole(16.0);
  EXPECT_EQ(time_ticks(window, 1000.0, 100.0).at(1).label.toStdString(), "2 s");
  window.show(1.0, 1.010);
  EXPECT_EQ(time_ticks(window, 1000.0, 100.0).front().label.toStdString(), "1,000 ms");
  window.show(0.0, 1e-6);
  EXPECT_EQ(time_ticks(window, 1000.0, 100.0).back().label.toStdString(), "1.0 µs");
}

}  // namespace
}  // namespace shardwright::gui
