// The search against simulating every plan of the space.
#include "planner/search.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "planner/request_check.hpp"
#include "sim/step/simulate.hpp"
#include "tests/planner/random_request.hpp"

namespace shardwright::planner {
namespace {

struct Scored {
  double score;
  std::size_t place;  // in the order of the space
};

Seconds computing(const sim::StepResult& result) {
  Seconds sum;
  for (const sim::StageResult& stage : result.stages)
    sum += stage.time.compute() + stage.time.optimizer;
  return sum / static_cast<double>(result.stages.size());
}

// The oracle: every plan that obeys the rules and the constraints, simulated.
std::vector<Scored> simulate_all(const PlanRequest& request, const std::vector<Plan>& space) {
  std::vector<Scored> all;
  for (std::size_t place = 0; place < space.size(); ++place) {
    const Plan& plan = space[place];
    if (first_broken_rule(request.model, request.cluster, plan, request.gpus)) continue;
    if (!broken_constraint(request.constraints, plan).empty()) continue;
    const sim::StepResult result = sim::simulate_step(scenario_of(request, plan));
    if (result.memory().peak > available_memory(request)) continue;
    const StepExpense expense = step_expense(request.cluster, plan, result.step, computing(result));
    all.push_back({score(request.objective, plan, result, expense), place});
  }
  std::sort(all.begin(), all.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score < b.score : a.place < b.place;
  });
  return all;
}

// A space of some dozens of plans: a few choices are fixed.
PlanRequest small_request(std::mt19937& random) {
  PlanRequest request = random_request(random);
  request.gpus = pick<std::int64_t>(random, {2, 4, 8});
  request.global_batch = pick<std::int64_t>(random, {8, 16});
  request.objective = pick<Objective>(random, all_objectives());
  request.top = 3;
  request.limits.schedules = {
      pick<ScheduleKind>(random, {ScheduleKind::OneFOneB, ScheduleKind::Interleaved}),
      pick<ScheduleKind>(random, {ScheduleKind::ZbH1, ScheduleKind::ZbV, ScheduleKind::GPipe})};
  request.limits.zero_stages = {pick<int>(random, {0, 1}), pick<int>(random, {2, 3})};
  request.limits.context_parallel = {ContextParallelKind::Ring};
  request.limits.max_micro_batch = 2;
  request.limits.max_cp = 1;
  request.limits.partial_recompute = false;
  if (request.model.moe) request.constraints.fixed = {parse_constraint("expert_tp=1", "--fix")};
  // Sometimes memory decides.
  request.max_memory = pick<Bytes>(random, {Bytes(), gigabytes(12.0), gigabytes(20.0)});
  return request;
}

TEST(Search, EqualsExhaustiveSimulationOnRandomSpaces) {
  std::mt19937 random(99);
  std::int64_t with_plans = 0;
  for (int trial = 0; with_plans < 200 && trial < 400; ++trial) {
    PlanRequest request = small_request(random);
    request.threads = 1 + trial % 2;
    PlanRequest adapted = request;
    adapt_limits(adapted);
    const std::vector<Plan> space = enumerate_plans(space_of(adapted));
    const std::vector<Scored> oracle = simulate_all(request, space);
    const SearchResult result = search(request);
    ASSERT_EQ(result.counts.space, static_cast<std::int64_t>(space.size()));
    ASSERT_EQ(result.counts.space, result.counts.evaluated + result.counts.rejected_total());
    ASSERT_EQ(result.counts.evaluated, static_cast<std::int64_t>(oracle.size()));
    ASSERT_EQ(result.plans.size(), std::min<std::size_t>(oracle.size(), 3));
    ASSERT_EQ(result.infeasible.has_value(), oracle.empty());
    with_plans += oracle.empty() ? 0 : 1;
    for (std::size_t i = 0; i < result.plans.size(); ++i) {
      ASSERT_EQ(result.plans[i].score, oracle[i].score) << "trial " << trial << " place " << i;
      ASSERT_EQ(result.plans[i].plan, space[oracle[i].place]) << "trial " << trial;
    }
  }
  EXPECT_EQ(with_plans, 200);
}

PlanRequest llama_on_one_node() {
  PlanRequest request;
  request.model = load_model("llama3-8b");
  request.cluster = load_cluster("dgx-h100");
  request.stack = load_stack("megatron-core");
  request.gpus = 8;
  request.global_batch = 64;
  request.seq_len = 8192;
  return request;
}

TEST(Search, AnswersTheSameForAnyNumberOfThreads) {
  PlanRequest request = llama_on_one_node();
  request.threads = 1;
  const SearchResult one = search(request);
  request.threads = 4;
  const SearchResult four = search(request);
  EXPECT_EQ(one.counts.simulated, four.counts.simulated);
  ASSERT_EQ(one.plans.size(), four.plans.size());
  for (std::size_t i = 0; i < one.plans.size(); ++i) {
    EXPECT_EQ(one.plans[i].plan, four.plans[i].plan);
    EXPECT_EQ(one.plans[i].result.step, four.plans[i].result.step);
  }
}

TEST(Search, KeepsConstraints) {
  PlanRequest request = llama_on_one_node();
  request.constraints.fixed = {parse_constraint("tp=2,4", "--fix")};
  request.constraints.forbidden = {parse_constraint("zero=3", "--forbid")};
  const SearchResult result = search(request);
  ASSERT_FALSE(result.plans.empty());
  for (const PlanCandidate& candidate : result.plans) {
    EXPECT_TRUE(candidate.plan.tp == 2 || candidate.plan.tp == 4);
    EXPECT_NE(candidate.plan.zero_stage, 3);
  }
}

TEST(Search, FrontTradesTimeForMemory) {
  const SearchResult result = search(llama_on_one_node());
  ASSERT_GE(result.front.size(), 2U);
  for (std::size_t i = 1; i < result.front.size(); ++i) {
    EXPECT_GT(result.front[i].result.step, result.front[i - 1].result.step);
    EXPECT_LT(result.front[i].result.memory().peak, result.front[i - 1].result.memory().peak);
  }
}

TEST(Search, SaysByHowMuchTheSmallestPlanMisses) {
  PlanRequest request = llama_on_one_node();
  request.max_memory = gigabytes(10.0);
  const SearchResult result = search(request);
  ASSERT_TRUE(result.infeasible.has_value());
  EXPECT_EQ(result.infeasible->needed, result.infeasible->available + result.infeasible->shortfall);
  ASSERT_TRUE(result.infeasible->nearest.has_value());
  // With exactly that much memory there is a plan.
  request.max_memory = result.infeasible->needed;
  EXPECT_FALSE(search(request).plans.empty());
}

TEST(Search, StopsWhenAsked) {
  PlanRequest request = llama_on_one_node();
  std::stop_source source;
  source.request_stop();
  request.stop = source.get_token();
  EXPECT_TRUE(search(request).partial);
}

TEST(Search, RefusesMoreAcceleratorsThanExist) {
  PlanRequest request = llama_on_one_node();
  request.cluster.nodes = 1;
  request.gpus = 16;
  EXPECT_THROW(search(request), InputError);
}

TEST(Search, TakesTheKneeOfThroughputWithoutABatch) {
  PlanRequest request = llama_on_one_node();
  request.global_batch = 0;
  request.max_global_batch = 64;
  const SearchResult knee = search(request);
  ASSERT_FALSE(knee.plans.empty());
  request.global_batch = 64;
  const SearchResult largest = search(request);
  const auto rate = [](const PlanCandidate& candidate) {
    return candidate.tokens() / candidate.result.step.value();
  };
  EXPECT_LE(knee.plans[0].plan.global_batch, 64);
  EXPECT_GE(rate(knee.plans[0]), 0.95 * rate(largest.plans[0]));
}

}  // namespace
}  // namespace shardwright::planner
