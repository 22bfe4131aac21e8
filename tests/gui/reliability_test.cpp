// The window says how far its plans can be relied on, as the command line does.
#include <QLabel>
#include <QRegularExpression>

#include "planner/explain.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class ReliabilityTest : public WindowTest {
 protected:
  // Shows plans of which the best takes this share of the memory.
  void show_with_share(double share) {
    PlanSet set = *small_set();
    set.request.cluster.accelerator.memory = set.plans.front().result.memory().peak / share;
    show(set);
  }

  void show(PlanSet set) {
    window_.selection().show(std::make_shared<const PlanSet>(std::move(set)));
    ASSERT_TRUE(is_idle());
  }

  QString summary() { return find<QLabel>("summary").text(); }
};

TEST_F(ReliabilityTest, ABestPlanThatFillsTheMemoryIsReportedInWhyAndPlans) {
  show_with_share(0.97);
  const auto& warning = find<QLabel>("why_memory_warning");
  EXPECT_TRUE(warning.isVisible());
  EXPECT_TRUE(warning.text().contains(u"The plan uses 97.0\u00a0% of the memory"_s));
  EXPECT_TRUE(summary().contains(u"The best plan uses 97.0 % of the memory"_s));
  show_with_share(0.94);
  EXPECT_FALSE(warning.isVisible());
  EXPECT_FALSE(summary().contains(u"of the memory"_s));
}

// Why warns about the chosen plan, and Plans warns about the best plan.
TEST_F(ReliabilityTest, AnotherPlanThanTheBestHasItsOwnWarning) {
  show_with_share(0.97);
  const PlanSet& set = *window_.selection().set();
  std::size_t small = 0;
  while (small < set.plans.size() &&
         planner::memory_share(set.plans[small].result, set.request.cluster) > 0.9)
    ++small;
  ASSERT_LT(small, set.plans.size());
  window_.selection().choose(small);
  EXPECT_FALSE(find<QLabel>("why_memory_warning").isVisible());
  EXPECT_TRUE(summary().contains(u"The best plan uses 97.0 %"_s));
}

TEST_F(ReliabilityTest, TheFiguresAndEstimatesThatAnAnswerRestsOnAreCounted) {
  const auto counted = [](const QString& text) {
    static const QRegularExpression kCounts(
        u"(\\d+) of the (\\d+) hardware and software figures"_s);
    const auto match = kCounts.match(text);
    return std::pair(match.captured(2).toInt(), match.captured(1).toInt());
  };
  PlanSet set = *small_set();
  show(set);
  const auto before = counted(find<QLabel>("why_figures").text());
  EXPECT_GT(before.second, 0);
  EXPECT_LT(before.second, before.first);
  EXPECT_EQ(counted(summary()), before);
  set.request.stack.sources["/measured"].confidence = Confidence::Measured;
  set.request.cluster.node.sources["/assumed"].confidence = Confidence::Assumed;
  show(set);
  EXPECT_EQ(counted(find<QLabel>("why_figures").text()),
            std::pair(before.first + 2, before.second + 1));
  EXPECT_EQ(counted(summary()), std::pair(before.first + 2, before.second + 1));
}

}  // namespace
}  // namespace shardwright::gui
