// What-ifs against a pinned baseline, with real keys and clicks.
#include <QAbstractSpinBox>
#include <QLabel>
#include <QSpinBox>
#include <QTableView>
#include <QToolButton>

#include "gui/models/plan_figures.hpp"
#include "gui/models/text.hpp"
#include "gui/views/baseline_bar.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class BaselineTest : public WindowTest {
 protected:
  void plan() {
    window_.document().reset(small_choice());
    ASSERT_TRUE(shows([this](const PlanSet& set) { return set.complete && !window_.is_busy(); }));
  }
  void press_pin() { QTest::keyClick(&window_, Qt::Key_B, Qt::ControlModifier); }
  bool searches_anew(std::int64_t seq_len) {
    return shows([&](const PlanSet& set) {
      return set.request.seq_len == seq_len && set.complete && !window_.is_busy();
    });
  }
  QString text() { return find<QLabel>("baseline_text").text(); }
};

// The search of the what-if is another set, whose figures differ; the baseline keeps its own.
TEST_F(BaselineTest, AWhatIfIsHeldAgainstThePinnedPlanAndTakenBack) {
  ASSERT_NO_FATAL_FAILURE(plan());
  auto& table = find<QTableView>("plans_table");
  QTest::mouseClick(table.viewport(), Qt::LeftButton, {},
                    table.visualRect(table.model()->index(1, 0)).center());
  EXPECT_FALSE(find<BaselineBar>("baseline").isVisible());
  press_pin();
  EXPECT_TRUE(find<BaselineBar>("baseline").isVisible());
  EXPECT_THAT(text(), Says("is the baseline"));
  EXPECT_FALSE(find<QToolButton>("return_to_baseline").isEnabled());
  const PlanSetPointer pinned = window_.selection().set();
  const auto& before = find<QLabel>("before_seq_len");
  EXPECT_FALSE(before.isVisible());

  type(find<QSpinBox>("seq_len"), u"1024"_s, Qt::Key_Return);
  ASSERT_TRUE(searches_anew(1024));
  const PlanSetPointer set = window_.selection().set();
  const std::size_t chosen = *window_.selection().chosen();
  const double share = set->plans[chosen].result.step / pinned->plans[1].result.step - 1.0;
  EXPECT_LT(share, -0.1);
  EXPECT_THAT(text(), Says(signed_percent_text(share)));
  EXPECT_THAT(text(), Says("Tokens/s"));  // Steps of fewer tokens are shorter by that alone.
  EXPECT_EQ(before.text(), u"was 2,048"_s);
  EXPECT_TRUE(before.isVisible());
  EXPECT_FALSE(find<QLabel>("before_gpus").isVisible());

  QTest::mouseClick(&find<QToolButton>("return_to_baseline"), Qt::LeftButton);
  EXPECT_EQ(window_.document().choice(), small_choice());
  EXPECT_EQ(window_.selection().set(), pinned);
  EXPECT_EQ(window_.selection().chosen(), std::optional<std::size_t>(1));
  EXPECT_FALSE(before.isVisible());
  QTest::keyClick(&window_, Qt::Key_Z, Qt::ControlModifier);
  EXPECT_TRUE(searches_anew(1024));
}

TEST_F(BaselineTest, AChangedResourceSaysWhatItWas) {
  ASSERT_NO_FATAL_FAILURE(plan());
  press_pin();
  type(find<QSpinBox>("what_if_0"), u"150"_s, Qt::Key_Return);
  EXPECT_EQ(find<QLabel>("before_what_if_0").text(), u"was 100 %"_s);
  ASSERT_TRUE(is_idle());
  // A baseline of its own takes the place of the former one.
  press_pin();
  EXPECT_FALSE(find<QLabel>("before_what_if_0").isVisible());
  QTest::mouseClick(&find<QToolButton>("unpin"), Qt::LeftButton);
  EXPECT_FALSE(find<BaselineBar>("baseline").isVisible());
  EXPECT_FALSE(window_.actions().find(u"plan.to_baseline"_s)->isEnabled());
}

// A machine without a price is no cheaper than one that has one.
TEST_F(BaselineTest, WithoutAPriceNoCostIsCompared) {
  show_plans();
  ASSERT_GT(window_.selection().set()->plans[0].dollars_per_token(), 0.0);
  press_pin();
  PlanSet without = *small_set();
  for (planner::PlanCandidate& plan : without.plans) plan.dollars_per_step = Dollars();
  window_.selection().show(std::make_shared<const PlanSet>(without));
  window_.selection().choose(1);
  EXPECT_THAT(text(), Says("Memory"));
  EXPECT_FALSE(text().contains(u"Cost"_s)) << qPrintable(text());
}

// Pinned while a change is searched for, the plans are still those of the former fields.
TEST_F(BaselineTest, TheBaselineHasTheFieldsThatItsPlansWereFoundFor) {
  ASSERT_NO_FATAL_FAILURE(plan());
  type(find<QSpinBox>("seq_len"), u"1024"_s, Qt::Key_Return);
  press_pin();
  EXPECT_EQ(window_.selection().baseline()->choice, small_choice());
  EXPECT_TRUE(find<QLabel>("before_seq_len").isVisible());
  ASSERT_TRUE(searches_anew(1024));
}

// What was found before the search was stopped stays in view until the whole search has ended, and
// the baseline gets its answer, too.
TEST_F(BaselineTest, ThePlansOfAnUnfinishedSearchStayAndTheSearchGoesOn) {
  window_.document().reset(small_choice());
  ASSERT_TRUE(shows([](const PlanSet& set) { return !set.plans.empty(); }));
  const PlanSetPointer first = window_.selection().set();
  ASSERT_FALSE(first->complete);
  press_pin();
  type(find<QSpinBox>("seq_len"), u"1024"_s, Qt::Key_Return);
  ASSERT_TRUE(searches_anew(1024));
  ASSERT_FALSE(window_.selection().baseline()->set->complete);
  QTest::mouseClick(&find<QToolButton>("return_to_baseline"), Qt::LeftButton);
  EXPECT_EQ(window_.selection().set(), first);
  ASSERT_TRUE(shows([&](const PlanSet& set) {
    EXPECT_EQ(set.request.seq_len, small_choice().seq_len);
    for (const planner::PlanCandidate& each : first->plans)
      EXPECT_TRUE(set.complete || find_plan(set, each.plan));
    return set.complete && !window_.is_busy();
  }));
  EXPECT_TRUE(window_.selection().baseline()->set->complete);
  EXPECT_FALSE(find<QToolButton>("return_to_baseline").isEnabled());
}

// The lines below the table and the plot stay in view on a small screen.
TEST_F(BaselineTest, LeavesTheOtherLinesInView) {
  window_.resize(1280, 696);
  show_plans();
  trigger("plan.pin");
  window_.selection().choose(std::size_t{1});
  QCoreApplication::processEvents();
  for (const char* name : {"baseline", "summary"}) {
    const auto& line = find<QWidget>(name);
    ASSERT_TRUE(line.isVisible()) << name;
    EXPECT_EQ(line.visibleRegion().boundingRect().height(), line.height()) << name;
  }
}

}  // namespace
}  // namespace shardwright::gui
