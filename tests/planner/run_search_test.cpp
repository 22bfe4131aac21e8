// The search of GPUs, batch and plan for a whole run.
#include "planner/run_search.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

// A small model on up to two nodes; small batches need `least` tokens.
RunSearchRequest request_with(double critical, double least = 1e11) {
  RunSearchRequest request;
  request.plan.model = load_model("qwen2.5-0.5b");
  request.plan.cluster = load_cluster("dgx-h100");
  request.plan.stack = load_stack("megatron-core");
  request.plan.seq_len = 4096;
  request.plan.global_batch = 0;
  request.plan.max_global_batch = 512;
  request.plan.constraints.fixed = {parse_constraint("tp=1", "fix"),
                                    parse_constraint("pp=1", "fix"),
                                    parse_constraint("cp=1", "fix")};
  request.gpus = {8, 16};
  request.run.run = load_run("settled-fleet");
  request.run.options.runs = 20;
  request.need = {.least = least, .critical = critical};
  return request;
}

RunSearch search_with(double critical) {
  return search_runs(request_with(critical));
}

TEST(RunSearch, NoChoiceBeatsTheFrontAndTheFastestIsTheFastest) {
  const RunSearch search = search_with(4e6);
  ASSERT_GT(search.choices.size(), 10u);
  const auto expense = [](const RunChoice& choice) { return choice.cost.value(); };
  for (const std::size_t index : search.front) {
    const RunChoice& member = search.choices[index];
    for (const RunChoice& other : search.choices)
      EXPECT_FALSE(other.time() < member.time() && expense(other) < expense(member));
  }
  for (const RunChoice& choice : search.choices) {
    EXPECT_GE(choice.time(), search.choices[search.fastest].time());
    EXPECT_GE(expense(choice), expense(search.choices[search.cheapest]));
    // Without failures it would be the tokens of its batch over its rate.
    const double seconds = choice.tokens / choice.tokens_per_s();
    EXPECT_GT(choice.time().value(), seconds);
    EXPECT_NEAR(choice.tokens, 1e11 * (1.0 + choice.plan.tokens() / 4e6), 1e3);
  }
  EXPECT_EQ(search.choices[search.fastest].gpus, 16);
}

// The days of the choices on the front are those that a forecast of their plans states.
TEST(RunSearch, TheFrontIsForecastAsAPlanIs) {
  RunSearchRequest request = request_with(4e6);
  request.run.options.runs = 500;
  request.step_error = [](const Scenario&) { return StepSpread{0.9, 1.2}; };
  const RunSearch search = search_runs(request);
  ASSERT_FALSE(search.front.empty());
  for (const std::size_t index : search.front) {
    const RunChoice& choice = search.choices[index];
    ForecastRequest run = request.run;
    request.plan.gpus = choice.gpus;
    run.scenario = scenario_of(request.plan, choice.plan.plan);
    run.tokens = choice.tokens;
    const Forecast single = forecast(run, run_stages(run), {0.9, 1.2});
    EXPECT_EQ(choice.forecast.statistics.wall.p10, single.statistics.wall.p10);
    EXPECT_EQ(choice.forecast.statistics.wall.p90, single.statistics.wall.p90);
    EXPECT_EQ(choice.cost, single.costs[run.run.price.contract]);
    for (const RunChoice& other : search.choices)
      EXPECT_FALSE(other.time() < choice.time() && other.cost < choice.cost);
  }
}

TEST(RunSearch, SaysWhetherTheKneeOrTheCriticalBatchBinds) {
  // Any batch will do: as large as throughput gains.
  const RunSearch free = search_with(0.0);
  const RunChoice& fast = free.choices[free.fastest];
  EXPECT_GE(fast.plan.plan.global_batch, free.knee_of(fast));
  EXPECT_EQ(fast.tokens, 1e11);
  // A critical batch of eight sequences forbids what the machine would like.
  const RunSearch tight = search_with(8.0 * 4096.0);
  const RunChoice& small = tight.choices[tight.fastest];
  EXPECT_EQ(tight.limit_of(small), BatchLimit::CriticalBatch);
  EXPECT_LT(small.plan.plan.global_batch, fast.plan.plan.global_batch);
}

// Replicas on three nodes divide batches that are multiples of three alone.
TEST(RunSearch, AnOddNumberOfNodesHasBatchesOfItsOwn) {
  RunSearchRequest request = request_with(4e6);
  request.gpus = {24};
  const RunSearch search = search_runs(request);
  ASSERT_FALSE(search.choices.empty());
  const RunChoice& fastest = search.choices[search.fastest];
  EXPECT_EQ(fastest.plan.plan.dp, 24);
  for (const std::int64_t batch : {96, 192, 384}) {
    request.plan.global_batch = batch;
    const RunSearch stated = search_runs(request);
    ASSERT_EQ(stated.choices.size(), 1U);
    EXPECT_LE(fastest.time(), stated.choices.front().time());
  }
}

// Where every batch is above the critical one, the smallest that the GPUs take comes nearest.
TEST(RunSearch, ATinyCriticalBatchLeavesTheSmallestBatch) {
  RunSearchRequest request = request_with(100.0);
  request.plan.max_global_batch = 0;
  const RunSearch search = search_runs(request);
  ASSERT_FALSE(search.choices.empty());
  for (const RunChoice& choice : search.choices)
    EXPECT_EQ(choice.plan.plan.global_batch, choice.gpus);
}

// Plans fit, but their runs would take more tokens than any run.
TEST(RunSearch, BatchesThatNeedTooManyTokensAreLeftOut) {
  const RunSearchRequest request = request_with(1.0);
  const RunSearch none = search_runs(request);
  EXPECT_TRUE(none.choices.empty());
  EXPECT_GT(none.too_many_tokens, 0);
  EXPECT_EQ(none.without_end, 0);
  const std::vector<std::string> lines = left_out(none, request.need);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], testing::AllOf(testing::HasSubstr("plans fit"),
                                       testing::HasSubstr("critical batch is 1 token")));
}

// Nodes fail a hundred thousand times as often as those of the profile: before the run has started.
TEST(RunSearch, RunsWithoutAnEndAreLeftOut) {
  RunSearchRequest request = request_with(4e6, 1e9);
  request.run.run.fleet.rate = 1e5;
  request.gpus = {8};
  request.plan.max_global_batch = 16;
  const RunSearch none = search_runs(request);
  EXPECT_TRUE(none.choices.empty());
  EXPECT_EQ(none.too_many_tokens, 0);
  EXPECT_GT(none.without_end, 0);
  const std::vector<std::string> lines = left_out(none, request.need);
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_THAT(lines[0], testing::HasSubstr("do not end"));
}

// Plans whose replicas do not divide the batch of a stage are left out and counted.
TEST(RunSearch, ChoicesThatDoNotTakeAStageAreLeftOut) {
  RunSearchRequest request = request_with(4e6);
  const std::size_t all = search_runs(request).choices.size();
  request.run.run.stages = {RunStage{.name = "ramp", .tokens = 1e9, .global_batch = 8}};
  const RunSearch some = search_runs(request);
  EXPECT_GT(some.without_stages, 0);
  ASSERT_FALSE(some.choices.empty());
  EXPECT_EQ(some.choices.size() + static_cast<std::size_t>(some.without_stages), all);
  for (const RunChoice& choice : some.choices) {
    EXPECT_EQ(choice.forecast.stages.size(), 2U);
    EXPECT_EQ(8 % choice.plan.plan.dp, 0);
  }
  EXPECT_THAT(some.stage_problem, testing::HasSubstr("/stages/0/global_batch"));
}

// A plan whose own step fits may not hold a stage of longer sequences.
TEST(RunSearch, ChoicesThatDoNotHoldAStageAreLeftOut) {
  RunSearchRequest request = request_with(4e6);
  request.run.run.stages = {RunStage{.name = "long", .tokens = 1e9, .seq_len = 4'000'000}};
  const RunSearch none = search_runs(request);
  EXPECT_TRUE(none.choices.empty());
  EXPECT_GT(none.without_stages, 0);
  EXPECT_THAT(none.stage_problem, testing::HasSubstr("stage long, which needs"));
}

TEST(RunSearch, ALossThatTheModelNeverReachesIsTold) {
  const BatchSpec batch = load_batch("hoffmann-corrected");
  const ModelSpec model = load_model("qwen2.5-0.5b");
  EXPECT_THAT(thrown_by([&] { need_of_loss(batch, model, 1.9); }),
              testing::AllOf(testing::HasSubstr("target loss"), testing::HasSubstr("at least")));
  // A loss just above the one that no number of tokens reaches takes more than any run has.
  const double parameters = counted_parameters(model, batch.loss.counts_embeddings);
  const double near = least_loss(batch.loss, parameters) + 1e-9;
  EXPECT_THAT(thrown_by([&] { need_of_loss(batch, model, near); }), testing::HasSubstr("1,000 T"));
  const double most = loss_of(batch.loss, parameters, 0.999 * kMostRunTokens);
  EXPECT_LE(need_of_loss(batch, model, most).least, kMostRunTokens);
  const TokenNeed need = need_of_loss(batch, model, 2.6);
  EXPECT_NEAR(loss_of(batch.loss, need.parameters, need.least), 2.6, 1e-9);
  EXPECT_FALSE(outside_of_laws(batch, load_model("llama3.1-405b"),
                               need_of_tokens(batch, load_model("llama3.1-405b"), 1.5e13))
                   .empty());
}

}  // namespace
}  // namespace shardwright::planner
