// Money, energy and the other objectives, by equations written anew here.
#include "planner/objective.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <limits>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/plan_evaluation.hpp"
#include "planner/request_check.hpp"
#include "planner/search.hpp"
#include "sim/step/simulate.hpp"
#include "tests/planner/random_request.hpp"

namespace shardwright::planner {

namespace {

ClusterSpec priced_cluster() {
  ClusterSpec cluster = load_cluster("dgx-h100");
  cluster.price = DollarsPerSecond(3.6 / 3600.0);
  return cluster;
}

Plan plan_on(std::int64_t gpus) {
  Plan plan;
  plan.dp = gpus;
  plan.global_batch = gpus;
  plan.seq_len = 1024;
  return plan;
}

// price = rate * accelerators * time
TEST(StepExpense, CostIsPriceTimesAcceleratorsTimesTime) {
  ClusterSpec cluster = priced_cluster();
  const auto price = [&cluster](std::int64_t gpus, double step) {
    return step_expense(cluster, plan_on(gpus), Seconds(step), Seconds(step / 2)).price.value();
  };
  EXPECT_DOUBLE_EQ(price(1, 1000.0), 1.0) << "3.60 dollars an hour";
  EXPECT_DOUBLE_EQ(price(8, 1000.0), 8.0);
  EXPECT_DOUBLE_EQ(price(8, 250.0), 2.0);
  cluster.price = DollarsPerSecond();
  cluster.accelerator.price = DollarsPerSecond(7.2 / 3600.0);
  EXPECT_DOUBLE_EQ(price(8, 250.0), 4.0) << "the accelerator's own price";
}

// price = sum over stages of rate * accelerators * time, and so is the energy.
TEST(StepExpense, StagesOnPoolsAreCountedByTheirOwnPools) {
  ClusterSpec cluster = priced_cluster();
  cluster.pools = {{.name = "second",
                    .accelerator = cluster.accelerator,
                    .node = cluster.node,
                    .fabric = cluster.fabric,
                    .nodes = 1,
                    .price = cluster.price * 3.0}};
  cluster.pools[0].accelerator.power = cluster.accelerator.power * 2.0;
  Plan plan = plan_on(8);
  plan.pp = 2;
  plan.stage_pools = {cluster.name, "second"};
  const std::vector<Seconds> computing = {Seconds(400.0), Seconds(1000.0)};
  const StepExpense both = step_expense(cluster, plan, Seconds(1000.0), computing);
  EXPECT_NEAR(both.price.value(), 8.0 + 3.0 * 8.0, 1e-9) << "1 dollar each on the first pool";
  ClusterSpec second = cluster;
  second.accelerator = cluster.pools[0].accelerator;
  const auto energy = [](const ClusterSpec& alone, double busy) {
    return step_expense(alone, plan_on(8), Seconds(1000.0), Seconds(busy)).energy.value();
  };
  EXPECT_NEAR(both.energy.value() / (energy(cluster, 400.0) + energy(second, 1000.0)), 1.0, 1e-12);
}

// Between all accelerators idle and all at their design power, times the node's overhead and PUE.
TEST(StepExpense, EnergyLiesBetweenIdleAndDesignPower) {
  EXPECT_TRUE(rc::check([] {
    ClusterSpec cluster = priced_cluster();
    cluster.power_usage_effectiveness = *rc::gen::element(1.0, 1.1, 1.5);
    const auto gpus = *rc::gen::element<std::int64_t>(1, 8, 512);
    const double step = *rc::gen::inRange(1, 1000) / 100.0;
    const double share = *rc::gen::inRange(0, 101) / 100.0;
    const double energy =
        step_expense(cluster, plan_on(gpus), Seconds(step), Seconds(step * share)).energy.value();
    const AcceleratorSpec& device = cluster.accelerator;
    const double node =
        cluster.node.power_overhead.value() / static_cast<double>(cluster.node.accelerators);
    const double scale =
        step * static_cast<double>(gpus) * cluster.power_usage_effectiveness * (1.0 + 1e-12);
    RC_ASSERT(energy >= (device.idle_power.value() + node) * scale * (1.0 - 1e-9));
    RC_ASSERT(energy <= (device.power.value() + node) * scale);
  }));
}

TEST(StepExpense, EnergyReachesItsBoundsWhereNothingOrAllIsComputing) {
  ClusterSpec cluster = priced_cluster();
  cluster.node.power_overhead = Watts(0);
  cluster.power_usage_effectiveness = 1.0;
  const auto energy = [&cluster](double computing) {
    return step_expense(cluster, plan_on(8), Seconds(2.0), Seconds(computing)).energy.value();
  };
  EXPECT_DOUBLE_EQ(energy(0.0), 16.0 * cluster.accelerator.idle_power.value());
  EXPECT_DOUBLE_EQ(energy(2.0), 16.0 * cluster.accelerator.power.value());
  EXPECT_DOUBLE_EQ(energy(3.0), energy(2.0)) << "no more than all the time";
  EXPECT_DOUBLE_EQ(energy(1.0), 0.5 * (energy(0.0) + energy(2.0)));
}

// The figure by which an engineer would judge, less is better.
double figure(Objective objective, const ClusterSpec& cluster, const Plan& plan,
              const sim::StepResult& result) {
  const auto gpus = static_cast<double>(plan.world_size());
  const double tokens = static_cast<double>(plan.global_batch * plan.seq_len);
  const double step = result.step.value();
  if (objective == Objective::Time) return step / tokens;
  if (objective == Objective::Memory) return result.memory().peak.value();
  if (objective == Objective::Cost) return cluster.price.value() * gpus * step / tokens;
  double busy = 0.0;
  for (const sim::StageResult& stage : result.stages)
    busy += (stage.time.compute() + stage.time.optimizer).value() /
            static_cast<double>(result.stages.size());
  const double idle = cluster.accelerator.idle_power.value();
  const double joules = step * (idle + cluster.node.power_overhead.value() /
                                           static_cast<double>(cluster.node.accelerators)) +
                        std::min(busy, step) * (cluster.accelerator.power.value() - idle);
  return joules * gpus * cluster.power_usage_effectiveness / tokens;
}

PlanRequest small_space(Objective objective) {
  PlanRequest request = request_for("llama3.2-1b", 4, 8, 1024);
  request.model.layers = 4;
  request.cluster = priced_cluster();
  request.objective = objective;
  request.limits.max_micro_batch = 2;
  request.limits.max_cp = 1;
  request.limits.partial_recompute = false;
  return request;
}

class EachObjective : public testing::TestWithParam<Objective> {};

TEST_P(EachObjective, FindsTheBestOfTheWholeSpace) {
  const PlanRequest request = small_space(GetParam());
  PlanRequest adapted = request;
  adapt_limits(adapted);
  double best = std::numeric_limits<double>::infinity(), worst = 0.0;
  for (const Plan& plan : enumerate_plans(space_of(adapted))) {
    if (first_broken_rule(request.model, request.cluster, plan, request.gpus, &request.stack))
      continue;
    const sim::StepResult result = sim::simulate_step(scenario_of(request, plan));
    const double each = figure(request.objective, request.cluster, plan, result);
    best = std::min(best, each);
    worst = std::max(worst, each);
  }
  const SearchResult found = search(request);
  ASSERT_FALSE(found.plans.empty());
  const PlanCandidate& first = found.plans.front();
  EXPECT_NEAR(figure(request.objective, request.cluster, first.plan, first.result), best,
              1e-9 * best);
  EXPECT_GT(worst, 1.01 * best) << "a space in which all plans are alike proves nothing";
}

std::string test_name(const testing::TestParamInfo<Objective>& tested) {
  std::string name = name_of(tested.param);
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Objectives, EachObjective, testing::ValuesIn(enumerators<Objective>()),
                         test_name);

TEST(Objective, CostNeedsAPrice) {
  PlanRequest request = small_space(Objective::Cost);
  request.cluster.price = request.cluster.accelerator.price = DollarsPerSecond();
  EXPECT_THROW(check_request(request), InputError);
  request.objective = Objective::Time;
  EXPECT_NO_THROW(check_request(request));
}

bool beats(const TradeOff& a, const TradeOff& b) {
  return a.first <= b.first && a.second <= b.second && (a.first < b.first || a.second < b.second);
}

// By the definition: a point is on the front exactly if no other beats it.
TEST(Pareto, KeepsExactlyThePointsThatNoneBeats) {
  EXPECT_TRUE(rc::check([](const std::vector<std::pair<std::uint8_t, std::uint8_t>>& numbers) {
    std::vector<TradeOff> points;
    for (const auto& [first, second] : numbers)
      points.push_back({static_cast<double>(first % 16), static_cast<double>(second % 16)});
    const std::vector<std::size_t> front = pareto_front(points);
    for (std::size_t i = 0; i < points.size(); ++i) {
      const bool beaten = std::any_of(points.begin(), points.end(), [&](const TradeOff& other) {
        return beats(other, points[i]);
      });
      const bool represented = std::any_of(front.begin(), front.end(), [&](std::size_t on) {
        return points[on].first == points[i].first && points[on].second == points[i].second;
      });
      RC_ASSERT(represented != beaten);
    }
    for (std::size_t i = 1; i < front.size(); ++i)
      RC_ASSERT(points[front[i - 1]].first < points[front[i]].first);
  }));
}

}  // namespace

}  // namespace shardwright::planner
