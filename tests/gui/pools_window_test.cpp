// The window on a cluster of two pools.
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QProcess>
#include <QTableView>

#include "core/spec/cluster_json.hpp"
#include "core/spec/plan_text.hpp"
#include "gui/models/chosen_request.hpp"
#include "gui/models/opened_file.hpp"
#include "gui/models/plan_figures.hpp"
#include "gui/models/run_process.hpp"
#include "gui/models/trace_comparison.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/topology/topology_view.hpp"
#include "gui/views/forecast_view.hpp"
#include "gui/views/step_charts.hpp"
#include "gui/views/sweep_view.hpp"
#include "gui/views/why_view.hpp"
#include "planner/pool_search.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/two_pools.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

class PoolsWindowTest : public WindowTest {
 protected:
  // Chooses the best plan on so many pools with the mouse.
  void choose_plan_on(std::size_t pools) {
    window_.document().reset(small_choice());
    ASSERT_TRUE(is_idle());
    window_.selection().show(set_on_two_pools());
    ASSERT_TRUE(is_idle());
    window_.raise_view(u"plans"_s);
    auto& table = find<QTableView>("plans_table");
    const QModelIndex cell = table.model()->index(
        static_cast<int>(best_on(*set_on_two_pools(), pools)), figure_index(u"step"_s));
    table.scrollTo(cell);
    QTest::mouseClick(table.viewport(), Qt::LeftButton, {}, table.visualRect(cell).center());
    ASSERT_EQ(pools_of(chosen().plan).size(), pools);
  }
  const planner::PlanCandidate& chosen() {
    return window_.selection().set()->plans[*window_.selection().chosen()];
  }
  void look_at(const char* view) {
    window_.raise_view(to_qstring(view));
    ASSERT_TRUE(is_idle());
  }
  TopologyView& topology() { return *window_.findChild<TopologyView*>(); }
  TextTable sweep(planner::SweepAxis axis) {
    find<QComboBox>("sweep_axis").setCurrentIndex(static_cast<int>(axis));
    EXPECT_TRUE(is_idle());
    return window_.findChild<SweepView*>()->table();
  }
  // The step of the first row that has one.
  static double first_step(const TextTable& table) {
    for (const QStringList& row : table.rows)
      if (!row[1].isEmpty()) return row[1].toDouble();
    return 0.0;
  }
};

// The cluster is a file of the user's; the plans of both pools are those of the planner's search.
TEST_F(PoolsWindowTest, AScenarioOnTwoPoolsIsSearched) {
  ScenarioChoice choice = small_choice();
  choice.global_batch = 16;
  window_.document().reset(choice);
  drop({write("mixed.json", to_json(two_pools()).dump())});
  ASSERT_TRUE(shows([&](const PlanSet& set) {
    return set.complete && !set.request.cluster.pools.empty() && !window_.is_busy();
  }));
  const PlanSet& set = *window_.selection().set();
  EXPECT_EQ(set.request.gpus, 8);
  EXPECT_LT(best_on(set, 2), set.plans.size());
  for (const char* pool : {"h100", "a100"}) {
    planner::PlanRequest alone = planner::request_on_pool(set.request, pool);
    alone.top = 1;
    const auto best = best_on_pool(set, pool);
    ASSERT_TRUE(best.has_value());
    EXPECT_EQ(set.plans[*best].score, planner::search(alone).plans.front().score) << pool;
    EXPECT_THAT(
        find<QLabel>("summary").text(),
        Says(u"%1 %2 (plan %3)"_s.arg(to_qstring(pool), time_text(set.plans[*best].result.step),
                                      count_text(*best + 1))));
  }
  const int column = figure_index(u"pools"_s);
  auto& table = find<QTableView>("plans_table");
  EXPECT_FALSE(table.isColumnHidden(column));
  type(find<QLineEdit>("filter"), u"pools=a100"_s, Qt::Key_Return);
  ASSERT_GT(table.model()->rowCount(), 0);
  for (int row = 0; row < table.model()->rowCount(); ++row)
    EXPECT_EQ(table.model()->index(row, column).data().toString(), u"a100"_s);
}

TEST_F(PoolsWindowTest, FewerAcceleratorsThanTheScenarioAsksForAreAllTaken) {
  const QString path = write("mixed.json", to_json(two_pools()).dump());
  ScenarioChoice choice = small_choice();
  for (const std::int64_t gpus : {512, 8, 4}) {
    choice.gpus = gpus;
    EXPECT_EQ(on_cluster(choice, path.toStdString()).gpus, std::min<std::int64_t>(gpus, 8));
  }
}

TEST_F(PoolsWindowTest, EachStageIsHeldAgainstTheMemoryOfItsPool) {
  choose_plan_on(2);
  look_at("why");
  const auto capacity = [&](const std::string& pool) {
    return pool_cluster(two_pools(), pool)->accelerator.memory;
  };
  const std::size_t stage = chosen().result.stages.size() - 1;
  const std::string first = pool_name_of_stage(chosen().plan, 0),
                    last = pool_name_of_stage(chosen().plan, stage);
  EXPECT_EQ(find<MemoryChart>("memory").graph(0)->name(),
            u"capacity %1, then %2"_s.arg(bytes_text(capacity(first)), bytes_text(capacity(last))));
  double share = 0.0;
  for (const QStringList& row : window_.findChild<WhyView*>()->table().rows)
    if (row[0] == u"memory of %1"_s.arg(
                      to_qstring(stage_name(chosen().plan, static_cast<std::int64_t>(stage)))))
      share += row[4].toDouble();
  EXPECT_NEAR(share, chosen().result.stages[stage].memory.peak / capacity(last), 1e-6);
}

TEST_F(PoolsWindowTest, RatesInTheTimelineAreThoseOfTheRanksPool) {
  const Scenario scenario = set_on_two_pools()->scenario(best_on(*set_on_two_pools(), 2));
  const RankLimits limits = limits_of(scenario);
  const auto last = static_cast<std::int32_t>(scenario.plan.world_size()) - 1;
  const auto stages = static_cast<std::size_t>(count_stages(scenario.plan));
  for (const auto& [rank, pool] : {std::pair(0, pool_name_of_stage(scenario.plan, 0)),
                                   {last, pool_name_of_stage(scenario.plan, stages - 1)}}) {
    const ClusterSpec cluster = *pool_cluster(scenario.cluster, pool);
    EXPECT_EQ(limits.of(rank).memory, cluster.accelerator.memory);
    EXPECT_EQ(limits.of(rank).matrix_peak, cluster.accelerator.matrix.of(scenario.plan.precision));
  }
  choose_plan_on(2);
  look_at("timeline");
  EXPECT_EQ(window_.findChild<TimelineView*>()->canvas().tracks().timelines().size(), 1U);
}

TEST_F(PoolsWindowTest, TopologyShowsOnePoolAtATime) {
  choose_plan_on(2);
  look_at("topology");
  auto& pools = find<QComboBox>("topology_pool");
  ASSERT_TRUE(pools.isVisible());
  ASSERT_EQ(pools.count(), 2);
  const auto accelerator = [&] { return topology().canvas().map().cluster().accelerator.name; };
  const std::vector<std::string> on = pools_of(chosen().plan);
  EXPECT_EQ(accelerator(), pool_cluster(two_pools(), on[0])->accelerator.name);
  EXPECT_THAT(find<QLabel>("topology_pool_note").text(), Says(on[0].c_str()));
  pools.setFocus();
  QTest::keyClick(&pools, Qt::Key_Down);
  EXPECT_EQ(accelerator(), pool_cluster(two_pools(), on[1])->accelerator.name);
  EXPECT_THAT(find<QLabel>("topology_pool_note").text(), Says(on[1].c_str()));
  // Its ranks have the plan's numbers, and a rank of the other pool brings that one back.
  const std::int64_t first = topology().canvas().map().first_rank();
  EXPECT_GT(first, 0);
  EXPECT_THAT(topology().canvas().domain_names().join(u' '), Says(u"ranks %1–"_s.arg(first)));
  topology().select_rank(0);
  EXPECT_EQ(pools.currentIndex(), 0);
  topology().select_rank(static_cast<int>(first));
  EXPECT_EQ(pools.currentIndex(), 1);
  choose_plan_on(1);
  look_at("topology");
  EXPECT_FALSE(pools.isVisible());
  EXPECT_FALSE(find<QLabel>("topology_pool_note").isVisible());
}

TEST_F(PoolsWindowTest, AllViewsOfAStepAnswer) {
  for (const std::size_t pools : {std::size_t{1}, std::size_t{2}}) {
    choose_plan_on(pools);
    for (const char* view : {"why", "timeline", "topology", "schedule", "sweeps", "forecast"}) {
      look_at(view);
      EXPECT_EQ(said(), QString()) << view;
    }
    EXPECT_GT(window_.findChild<ForecastView*>()->table().rows.size(), 10) << pools;
  }
}

TEST_F(PoolsWindowTest, SweepsHaveTheChosenPlanOrTheBestOfAllPools) {
  choose_plan_on(2);
  look_at("sweeps");
  find<QComboBox>("sweep_figure").setCurrentIndex(static_cast<int>(SweepFigure::Step));
  find<QComboBox>("sweep_plan").setCurrentIndex(static_cast<int>(planner::SweepPlan::Chosen));
  const TextTable batches = sweep(planner::SweepAxis::GlobalBatch);
  const auto own = std::ranges::find_if(
      batches.rows, [](const QStringList& row) { return row.front() == u"16"_s; });
  ASSERT_NE(own, batches.rows.end());
  EXPECT_NEAR((*own)[1].toDouble(), chosen().result.step.value(), 1e-6);
  // The best plan of all accelerators is the first of the search, whichever plan is chosen.
  choose_plan_on(1);
  look_at("sweeps");
  const TextTable sizes = sweep(planner::SweepAxis::Gpus);
  const auto all = std::ranges::find_if(
      sizes.rows, [](const QStringList& row) { return row.front() == u"8"_s; });
  ASSERT_NE(all, sizes.rows.end());
  EXPECT_NEAR((*all)[1].toDouble(), set_on_two_pools()->plans.front().result.step.value(), 1e-6);
}

TEST_F(PoolsWindowTest, ASavedPlanComesBack) {
  for (const std::size_t pools : {std::size_t{2}, std::size_t{1}}) {
    choose_plan_on(pools);
    const Scenario saved = *window_.selection().scenario();
    EXPECT_EQ(names_pools(saved.plan), pools == 2);
    const QString path = folder_.filePath(u"saved-%1.json"_s.arg(pools));
    answer_next_dialog(path);
    trigger("file.save_plan");
    ASSERT_TRUE(is_idle());
    show_plans();
    drop({path});
    EXPECT_EQ(to_json(*window_.selection().scenario()).dump(), to_json(saved).dump());
    EXPECT_EQ(window_.selection().set()->plans.front().result.step,
              set_on_two_pools()->plans[best_on(*set_on_two_pools(), pools)].result.step);
  }
}

// A plan that lies on one pool is written as that of a cluster of this pool. The file
// states for each plan what its scenario gives.
TEST_F(PoolsWindowTest, AResultOfTheCommandComesBack) {
  const QString cluster = write("mixed.json", to_json(two_pools()).dump());
  const QString result = folder_.filePath(u"plans.json"_s);
  const QStringList arguments = {
      u"plan"_s,           u"--model"_s, u"llama3.2-1b"_s,   u"--cluster"_s, cluster,
      u"--global-batch"_s, u"16"_s,      u"--seq-len"_s,     u"2048"_s,      u"--fix"_s,
      u"zero=1"_s,         u"--fix"_s,   u"schedule=1f1b"_s, u"--json"_s,    result,
      u"--no-progress"_s};
  ASSERT_EQ(QProcess::execute(find_command(), arguments), 0);
  window_.document().reset(small_choice());
  ASSERT_TRUE(is_idle());
  drop({result});
  const PlanSet& set = *window_.selection().set();
  for (const char* pool : {"h100", "a100"})
    EXPECT_TRUE(best_on_pool(set, pool).has_value()) << pool;
  EXPECT_LT(best_on(set, 2), set.plans.size());
  for (std::size_t plan = 0; plan < set.plans.size(); ++plan)
    EXPECT_EQ(plan_set_of(set.scenario(plan), {}).plans.front().result.step,
              set.plans[plan].result.step);
}

TEST_F(PoolsWindowTest, WhatIsNotPossibleOnPoolsIsSaid) {
  const Scenario scenario = set_on_two_pools()->scenario(best_on(*set_on_two_pools(), 2));
  write("metrics.jsonl", "");
  write("plan.json", to_json(scenario).dump());
  EXPECT_THAT(calibration_obstacle(folder_.path()), Says("several pools"));
  EXPECT_THAT(compare_with_plan({}, scenario, {}).obstacle, Says("several pools"));
}

}  // namespace
}  // namespace shardwright::gui
