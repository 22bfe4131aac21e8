#include "gui/schedule/schedule_view.hpp"

#include <gtest/gtest.h>

#include <QScrollBar>
#include <QSignalSpy>
#include <QSlider>
#include <QToolButton>

#include "gui/views/empty_state.hpp"
#include "sim/step/simulate.hpp"
#include "tests/gui/example_step.hpp"
#include "tests/gui/painted_view_test.hpp"

namespace shardwright::gui {
namespace {

using gui::fixtures::colours_in;
using gui::fixtures::drag;
using gui::fixtures::shown;
using gui::fixtures::small_step;
using gui::fixtures::svg_of;
using gui::fixtures::tool_tip_at;
using gui::fixtures::turn_wheel;

const sim::StepResult& small_result() {
  static const sim::StepResult kResult = sim::simulate_step(small_step().scenario);
  return kResult;
}

class ScheduleViewTest : public ::testing::Test {
 protected:
  ScheduleViewTest() {
    const ScheduleShape shape{4, 1, 8};
    view_.set_gantt(ScheduleGantt(ScheduleKind::OneFOneB, shape));
    shown(view_, {900, 320});
  }

  ScheduleCanvas& canvas() { return view_.canvas(); }
  QWidget& paper() { return *canvas().viewport(); }
  const ScheduleScene& scene() { return canvas().scene(); }
  ScheduleGeometry geometry() {
    return {QSizeF(paper().size()), canvas().gantt(), canvas().scene().legend};
  }
  void press(Qt::Key key) { QTest::keyClick(&canvas(), key); }

  ScheduleView view_;
};

TEST_F(ScheduleViewTest, SpacePlaysAndPauses) {
  QSignalSpy moments(&view_, &ScheduleView::moment_changed);
  press(Qt::Key_Space);
  EXPECT_TRUE(view_.playing());
  EXPECT_TRUE(QTest::qWaitFor([&] { return moments.size() > 3; }));
  press(Qt::Key_Space);
  EXPECT_FALSE(view_.playing());
  ASSERT_TRUE(scene().moment.has_value());
  EXPECT_GT(*scene().moment, 0.0);
}

TEST_F(ScheduleViewTest, ArrowsStepFromEventToEvent) {
  press(Qt::Key_Right);
  EXPECT_NEAR(*scene().moment, 1e-3, 1e-9);
  press(Qt::Key_Right);
  EXPECT_NEAR(*scene().moment, 2e-3, 1e-9);
  press(Qt::Key_Left);
  EXPECT_NEAR(*scene().moment, 1e-3, 1e-9);
  press(Qt::Key_End);
  EXPECT_EQ(*scene().moment, canvas().gantt().makespan());
  press(Qt::Key_Home);
  EXPECT_EQ(*scene().moment, 0.0);
  press(Qt::Key_Escape);
  EXPECT_FALSE(scene().moment.has_value());
}

TEST_F(ScheduleViewTest, DragAndSliderScrub) {
  const QRectF plot = geometry().plot;
  const int y = static_cast<int>(plot.center().y());
  drag(paper(), {static_cast<int>(plot.left()) + 10, y}, {static_cast<int>(plot.center().x()), y},
       Qt::LeftButton);
  EXPECT_NEAR(*scene().moment / canvas().gantt().makespan(), 0.5, 0.01);
  auto* slider = view_.findChild<QSlider*>();
  slider->setValue(slider->maximum() / 4);
  EXPECT_NEAR(*scene().moment / canvas().gantt().makespan(), 0.25, 0.01);
}

TEST_F(ScheduleViewTest, ClickSelectsTheSlot) {
  QSignalSpy selected(&canvas(), &ScheduleCanvas::slot_selected);
  const double x =
      geometry().plot.left() + scene().window.pixel_of(0.5e-3, geometry().plot.width());
  QTest::mouseClick(&paper(), Qt::LeftButton, {},
                    QPointF(x, geometry().row(0, scene().rows).center().y()).toPoint());
  ASSERT_EQ(selected.size(), 1);
  EXPECT_EQ(selected[0][0].toInt(), 0);
  EXPECT_EQ(selected[0][1].value<GanttBox>().microbatch, 0);
  EXPECT_EQ(scene().selected, (BoxRef{0, 0}));
}

TEST_F(ScheduleViewTest, TheTitlesToolTipSaysWhoseBubbleItShows) {
  EXPECT_THAT(tool_tip_at(paper(), {60, 8}), Says("mean of the stages"));
  view_.set_plan(small_step().scenario.plan, small_step().scenario.model,
                 small_step().timeline.get(), &small_result());
  EXPECT_THAT(tool_tip_at(paper(), {60, 8}), Says("computes longest"));
}

TEST_F(ScheduleViewTest, WheelAndKeysZoomAndPan) {
  turn_wheel(paper(), {500.0, 100.0}, 4);
  const AxisWindow zoomed = scene().window;
  EXPECT_LT(zoomed.length(), 0.5 * zoomed.limit);
  turn_wheel(paper(), {500.0, 100.0}, -1, Qt::ShiftModifier);
  EXPECT_GT(scene().window.from, zoomed.from);
  press(Qt::Key_A);
  EXPECT_NEAR(scene().window.from, zoomed.from, 1e-9);
  press(Qt::Key_W);
  EXPECT_LT(scene().window.length(), zoomed.length());
  QTest::mouseDClick(&paper(), Qt::LeftButton, {}, {500, 100});
  EXPECT_TRUE(scene().window.shows_all());
}

TEST_F(ScheduleViewTest, ShowsThePlansScheduleWithItsOwnDurations) {
  view_.set_plan(small_step().scenario.plan, small_step().scenario.model,
                 small_step().timeline.get(), &small_result());
  EXPECT_EQ(canvas().gantt().stages().size(), 2U);
  EXPECT_NEAR(canvas().gantt().makespan(), small_result().step.value(), 1e-9);
  EXPECT_FALSE(scene().moment.has_value());
  EXPECT_FALSE(view_.table().rows.empty());
}

// A step that is too long for its numbers to be legible shows its start, with an overview below.
TEST_F(ScheduleViewTest, AFullStepHasAnOverviewThatPans) {
  EXPECT_TRUE(geometry().overview.isEmpty());
  const ScheduleShape shape{4, 1, 256};
  view_.set_gantt(ScheduleGantt(ScheduleKind::OneFOneB, shape));
  ASSERT_FALSE(geometry().overview.isEmpty());
  EXPECT_EQ(scene().window.from, 0.0);
  const double slot = canvas().gantt().typical_length(SlotPhase::Forward) / scene().window.length();
  EXPECT_GT(slot * geometry().plot.width(),
            QFontMetricsF(pixel_font(10)).horizontalAdvance(u"255"_s));
  QTest::mouseClick(&paper(), Qt::LeftButton, {}, geometry().overview.center().toPoint());
  const double middle = 0.5 * (scene().window.from + scene().window.to);
  EXPECT_NEAR(middle / canvas().gantt().makespan(), 0.5, 0.01);
  EXPECT_FALSE(scene().moment.has_value());
}

// Slots of a phase are as wide, so that those of one digit have no number either where two digits
// find no room.
TEST_F(ScheduleViewTest, AllSlotsOfAPhaseHaveNumbersOrNoneHas) {
  const ScheduleShape shape{2, 1, 12};
  view_.set_gantt(ScheduleGantt(ScheduleKind::OneFOneB, shape));
  const auto numbers_at = [&](double width_of_forward) {
    const double length = canvas().gantt().makespan();
    const double forward = canvas().gantt().typical_length(SlotPhase::Forward);
    const double beside = paper().width() - geometry().plot.width();
    view_.resize(static_cast<int>(beside + width_of_forward * length / forward), 320);
    QApplication::processEvents();
    canvas().show_window(0.0, length);
    const QByteArray drawn = svg_of(view_);
    std::set<qsizetype> counts;
    for (int microbatch = 0; microbatch < shape.microbatches; ++microbatch)
      counts.insert(drawn.count('>' + QByteArray::number(microbatch) + "</text>"));
    return counts;
  };
  const double two_digits = QFontMetricsF(pixel_font(10)).horizontalAdvance(u"11"_s);
  EXPECT_EQ(numbers_at(two_digits + 8.0), std::set<qsizetype>{4}) << "both passes of two stages";
  EXPECT_EQ(numbers_at(two_digits - 1.0), std::set<qsizetype>{2}) << "backward passes alone";
  EXPECT_EQ(numbers_at(5.0), std::set<qsizetype>{0});
}

// A step that is shown in part scrolls along with its replay, and follows the slider and the keys.
TEST_F(ScheduleViewTest, TheChartFollowsTheReplay) {
  view_.set_gantt(ScheduleGantt(ScheduleKind::OneFOneB, {4, 1, 256}));
  const auto in_view = [this] {
    return *scene().moment >= scene().window.from && *scene().moment <= scene().window.to;
  };
  auto* slider = view_.findChild<QSlider*>();
  slider->setValue(slider->maximum() / 2);
  EXPECT_GT(scene().window.from, 0.0);
  EXPECT_TRUE(in_view());
  const double before = scene().window.from;
  auto* play = view_.findChild<QToolButton*>();
  QTest::mouseClick(play, Qt::LeftButton);
  EXPECT_TRUE(QTest::qWaitFor([&] { return scene().window.from > before; }, 20'000));
  EXPECT_TRUE(in_view());
  QTest::mouseClick(play, Qt::LeftButton);
  for (const Qt::Key key : {Qt::Key_Right, Qt::Key_End, Qt::Key_Left, Qt::Key_Home}) {
    press(key);
    EXPECT_TRUE(in_view()) << key;
  }
  EXPECT_EQ(scene().window.from, 0.0);
}

// The legend takes further lines where it is narrow, and never covers the rows.
TEST_F(ScheduleViewTest, TheLegendTakesTheLinesThatItNeeds) {
  const double one_line = geometry().legend.height();
  view_.set_gantt(ScheduleGantt(ScheduleKind::Interleaved, {4, 2, 8}));
  view_.resize(400, 320);
  QApplication::processEvents();
  EXPECT_GT(geometry().legend.height(), one_line);
  EXPECT_LE(geometry().plot.bottom(), geometry().legend.top());
  EXPECT_LE(geometry().legend.bottom(), paper().height());
  const QByteArray drawn = svg_of(view_);
  EXPECT_TRUE(drawn.contains("numbers: microbatches"));
  EXPECT_TRUE(drawn.contains("shades: chunks"));
}

TEST_F(ScheduleViewTest, ManyStagesAreScrolledAndAPictureHasAllOfThem) {
  const ScheduleShape shape{32, 1, 64};
  view_.set_gantt(ScheduleGantt(ScheduleKind::OneFOneB, shape));
  QWidget window;
  view_.setParent(&window);
  view_.resize(900, 320);
  shown(window, {900, 320});
  view_.show();
  // A picture has no scroll bar, whose height the stages gain.
  canvas().setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  QApplication::processEvents();
  const int hidden = canvas().growth_of_picture().height();
  ASSERT_GT(hidden, 50);
  EXPECT_EQ(picture_of(view_, 1.0).height(), view_.height() + hidden);
  canvas().verticalScrollBar()->setValue(canvas().verticalScrollBar()->maximum());
  canvas().show_window(0.0, canvas().gantt().makespan());
  const GanttBox& last = canvas().gantt().stages()[31].boxes.front();
  const double x =
      scene().window.pixel_of(0.5 * (last.start + last.finish), geometry().plot.width());
  const QPointF at(geometry().plot.left() + x, geometry().plot.bottom() - 4.0);
  EXPECT_EQ(canvas().item_at(at), (BoxRef{31, 0}));
  view_.setParent(nullptr);
}

TEST_F(ScheduleViewTest, SaysWhatToDoWithoutAPipeline) {
  Plan plan;
  view_.set_plan(plan, small_step().scenario.model);
  EXPECT_TRUE(view_.findChild<EmptyState*>()->is_empty());
  EXPECT_TRUE(view_.table().rows.empty());
  view_.play();
  EXPECT_FALSE(view_.playing());
  press(Qt::Key_Right);
  EXPECT_FALSE(scene().moment.has_value());
}

TEST_F(ScheduleViewTest, PaintsInLightAndDarkAndAsVectors) {
  for (const QPalette& palette : {light_palette(), dark_palette()}) {
    view_.setPalette(palette);
    view_.set_moment(0.4 * canvas().gantt().makespan());
    EXPECT_GT(colours_in(paper()), 20U);
  }
  EXPECT_TRUE(svg_of(view_).contains("1f1b · 4 stages"));
}

TEST_F(ScheduleViewTest, ALowViewHasRowsAndAWholeTitle) {
  view_.set_gantt(ScheduleGantt(ScheduleKind::Interleaved, {4, 10, 64}));
  const auto places = [&](const QSizeF& size) {
    return ScheduleGeometry(size, canvas().gantt(), canvas().scene().legend);
  };
  const ScheduleGeometry wide = places({900, 400}), low = places({500, 130});
  EXPECT_EQ(wide.summary_lines.size(), 1);
  EXPECT_FALSE(wide.legend.isEmpty());
  EXPECT_EQ(low.summary_lines.size(), 2);
  EXPECT_TRUE(low.legend.isEmpty());
  EXPECT_TRUE(low.overview.isEmpty());
  EXPECT_GE(low.plot.height(), low.rows_height);
  EXPECT_LE(low.plot.bottom(), 130.0);
}

}  // namespace
}  // namespace shardwright::gui
