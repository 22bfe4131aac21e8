// The whole run of a plan: tokens over throughput, money and energy by part, stages.
#include "planner/forecast.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "core/spec/spec_document.hpp"
#include "planner/objective.hpp"
#include "planner/replan.hpp"
#include "planner/search.hpp"
#include "sim/run/profile_model.hpp"
#include "sim/step/simulate.hpp"
#include "tests/thrown.hpp"

namespace shardwright::planner {
namespace {

using nlohmann::json;
using sim::RunPart;

ForecastRequest llama_on(std::int64_t gpus, const json& run) {
  ForecastRequest request;
  request.scenario = read_scenario({{"schema", "shardwright/plan"},
                                    {"version", 1},
                                    {"model", "llama3-8b"},
                                    {"cluster", "dgx-h100"},
                                    {"stack", "megatron-core"},
                                    {"plan",
                                     {{"dp", gpus / 2},
                                      {"tp", 2},
                                      {"pp", 1},
                                      {"micro_batch", 1},
                                      {"global_batch", 64},
                                      {"seq_len", 8192}}}},
                                   "plan");
  request.run = read_given_run(run, "run");
  request.tokens = 1e11;
  request.options.runs = 40;
  return request;
}

const json kQuiet = {
    {"schema", "shardwright/run"},
    {"version", 1},
    {"name", "quiet"},
    {"checkpoint",
     {{"fixed_s", 10}, {"store_write_bytes_per_s", 1e11}, {"store_read_bytes_per_s", 1e11}}}};

Forecast forecast_of(const ForecastRequest& request) {
  return forecast(request, run_stages(request), {});
}

TEST(Forecast, WithoutFailuresItIsTokensOverThroughput) {
  const ForecastRequest request = llama_on(16, kQuiet);
  const Forecast run = forecast_of(request);
  ASSERT_EQ(run.stages.size(), 1u);
  const sim::StepResult& step = run.stages[0].step;
  const double seconds = request.tokens / (step.throughput.tokens_per_s_per_gpu * 16.0);
  // The last step is a whole one, and its state is saved.
  const double rest = step.step.value() + run.model.checkpoint.stall.value();
  EXPECT_GE(run.statistics.wall.p50, seconds);
  EXPECT_LE(run.statistics.wall.p50, seconds + rest);
  EXPECT_EQ(run.statistics.wall.p10, run.statistics.wall.p90);
  EXPECT_NEAR(run.goodput, 1.0, 1e-4);
  EXPECT_NEAR(run.mfu, step.throughput.mfu, 1e-3);
  // bf16 weights, fp32 master weights and two fp32 moments.
  EXPECT_NEAR(run.model.checkpoint.bytes.value() / (14.0 * 8.03e9), 1.0, 0.01);
}

TEST(Forecast, MoneyAndEnergyAddUpOverTheParts) {
  ForecastRequest request = llama_on(64, {{"base", "rented-fleet"},
                                          {"recovery", {{"spare_ratio", 0.125}}},
                                          {"price", {{"dollars_per_gpu_hour", 3.0}}}});
  request.tokens = 1e12;
  const Forecast run = forecast_of(request);
  const RunExpense total = run.total();
  const double hours = 64.0 * run.statistics.mean_wall().value() / 3600.0;
  EXPECT_NEAR(total.gpu_hours, hours, 1e-9 * hours);
  EXPECT_NEAR(total.cost.value(), 3.0 * hours, 1e-9 * hours);
  // One spare node for 8.
  EXPECT_NEAR(run.spares.cost.value(), 3.0 * hours / 8.0, 1e-9 * hours);
  EXPECT_NEAR(run.costs[Contract::Spot] / run.costs[Contract::OnDemand], 0.425, 1e-9);
  // A kept step takes the energy of a step.
  const ForecastStage& stage = run.stages[0];
  const StepExpense step = step_expense(request.scenario.cluster, stage.plan, stage.step.step,
                                        computing_time(stage.step));
  EXPECT_NEAR(run.expenses[RunPart::Step].energy / (static_cast<double>(stage.steps) * step.energy),
              1.0, 1e-9);
  EXPECT_GT(run.expenses[RunPart::LostWork].energy, Joules());
  ASSERT_FALSE(run.gains.empty());
  EXPECT_EQ(run.gains.front().name, "step_time");
  for (const RunGain& gain : run.gains) EXPECT_GT(gain.share, -1e-3) << gain.name;
  // The error of the step widens the range of days, and moves no mean.
  const Forecast wide = forecast(request, run_stages(request), {0.9, 1.4});
  EXPECT_EQ(wide.total().gpu_hours, total.gpu_hours);
  EXPECT_GT(wide.statistics.wall.p90, 1.1 * run.statistics.wall.p90);
}

TEST(Forecast, StagesTrainTheirTokensAndThePlanTheRest) {
  json run = kQuiet;
  run["stages"] = {
      {{"name", "ramp-up"}, {"tokens", 1e10}, {"global_batch", 32}},
      {{"name", "long"}, {"tokens", 2e10}, {"seq_len", 32768}, {"cp", 4}, {"global_batch", 16}}};
  const Forecast all = forecast_of(llama_on(16, run));
  ASSERT_EQ(all.stages.size(), 3u);
  EXPECT_EQ(all.stages[0].plan.global_batch, 32);
  EXPECT_EQ(all.stages[1].plan.dp, 2) << "four ranks of dp are now of cp";
  EXPECT_DOUBLE_EQ(all.stages[2].tokens, 7e10);
  Seconds steps;
  for (const ForecastStage& stage : all.stages)
    steps += static_cast<double>(stage.steps) * stage.step.step;
  EXPECT_NEAR(all.statistics.mean[RunPart::Step] / steps, 1.0, 1e-12);

  run["stages"] = {{{"name", "a"}, {"tokens", 1e12}},
                   {{"name", "b"}, {"tokens", 1e9}, {"global_batch", 33}}};
  const std::string problems = thrown_by([&] { run_stages(llama_on(16, run)); });
  EXPECT_THAT(problems, testing::HasSubstr("at most the 1e+11"));
  EXPECT_THAT(problems, testing::HasSubstr("/stages/1"));
}

// A stage that recomputes everything does the forward pass twice in its backward pass: four parts
// of work where the plan does three.
TEST(Forecast, AStageMaySetFurtherFieldsOfItsPlan) {
  json run = kQuiet;
  run["stages"] = {
      {{"name", "full"}, {"tokens", 1e10}, {"set", {"recompute=full", "zero_stage=0"}}}};
  ForecastRequest request = llama_on(16, run);
  request.scenario.plan.recompute = RecomputePolicy::Selective;
  request.scenario.plan.recompute_modules = {RecomputeModule::LayerNorm};
  const std::vector<ForecastStage> stages = run_stages(request);
  EXPECT_EQ(stages[0].plan.recompute, RecomputePolicy::Full);
  EXPECT_TRUE(stages[0].plan.recompute_modules.empty());
  EXPECT_EQ(stages[0].plan.zero_stage, 0);
  EXPECT_EQ(stages[1].plan, request.scenario.plan);
  EXPECT_NEAR(stages[0].step.step / stages[1].step.step, 4.0 / 3.0, 0.1);
  run["stages"][0]["set"] = {"recompute=some", "zero_stage=7", "speed=2"};
  const std::string problems = thrown_by([&] { run_stages(llama_on(16, run)); });
  for (const char* each : {"/stages/0/set/recompute", "/stages/0/set/zero_stage", "speed"})
    EXPECT_THAT(problems, testing::HasSubstr(each));
}

// A checkpoint holds each parameter once, an embedding that two stages hold copies of, too.
TEST(Forecast, CheckpointsHoldASharedEmbeddingOnce) {
  const auto bytes = [](std::int64_t pp) {
    ForecastRequest request = llama_on(16, kQuiet);
    request.scenario.model = load_model("gpt2-xl");
    request.scenario.plan.seq_len = 1024;
    request.scenario.plan.pp = pp;
    request.scenario.plan.dp = 8 / pp;
    return run_model(request, run_stages(request)).checkpoint.bytes.value();
  };
  EXPECT_DOUBLE_EQ(bytes(2) / bytes(1), 1.0);
  EXPECT_DOUBLE_EQ(bytes(4) / bytes(1), 1.0);
}

// Nor of adapters, a half of which each tensor-parallel rank holds whole: 41.9 M parameters of rank
// 16 on all projections of Llama 3 8B, 14 bytes each.
TEST(Forecast, CheckpointsOfAdaptersDoNotDependOnThePlan) {
  for (const std::int64_t tp : {1, 2, 8}) {
    ForecastRequest request = llama_on(16, kQuiet);
    request.scenario.plan.tp = tp;
    request.scenario.plan.dp = 16 / tp;
    request.scenario.plan.lora = Lora{};
    for (const LoraTarget target : enumerators<LoraTarget>())
      request.scenario.plan.lora->targets.insert(target);
    const double bytes = run_model(request, run_stages(request)).checkpoint.bytes.value();
    EXPECT_NEAR(bytes / (14.0 * 41'943'040.0), 1.0, 1e-9) << tp;
  }
}

// Half of the run on half of the nodes: interruptions follow the node-days, and MFU the GPU-hours.
TEST(Forecast, AStageOfFewerGpusFailsLessOften) {
  json run = kQuiet;
  run["failures"] = {{"host", {{"per_1000_node_days", 100.0}, {"replaced_ratio", 0}}}};
  run["stages"] = {{{"name", "half"}, {"tokens", 5e10}, {"dp", 16}}};
  ForecastRequest request = llama_on(64, run);
  request.options.runs = 400;
  const Forecast all = forecast_of(request);
  double node_days = 0.0, floating = 0.0;
  for (const ForecastStage& stage : all.stages) {
    const double days = static_cast<double>(stage.steps) * stage.step.step.value() / kSecondsPerDay;
    const auto gpus = static_cast<double>(stage.plan.world_size());
    node_days += days * gpus / 8.0;
    floating += days * 24.0 * gpus * stage.step.throughput.mfu;
  }
  ASSERT_GT(node_days, 15.0);
  EXPECT_NEAR(all.statistics.by_cause[FailureCause::Host] / (0.1 * node_days / all.goodput), 1.0,
              0.1);
  EXPECT_NEAR(all.mfu * all.total().gpu_hours / floating, 1.0, 1e-6);
}

// The request with two pipeline stages, of which the second lies on a node of this cluster.
ForecastRequest on_two_pools(ForecastRequest request, const std::string& cluster_of_pool) {
  Scenario& scenario = request.scenario;
  scenario.plan.pp = 2;
  scenario.plan.dp /= 2;
  const ClusterSpec other = load_cluster(cluster_of_pool);
  scenario.cluster.pools = {
      {"second", other.accelerator, other.node, other.fabric, 1, other.price}};
  scenario.plan.stage_pools = {scenario.cluster.name, "second"};
  return request;
}

json failing_run() {
  json run = kQuiet;
  run["failures"] = {{"gpu", {{"per_1000_node_days", 400}}}};
  run["recovery"] = {
      {"detection_s", 300}, {"restart_s", 300}, {"repair_s", 7200}, {"spare_ratio", 0.5}};
  return run;
}

TEST(Forecast, EqualPoolsChangeNothing) {
  const ForecastRequest on_pools = on_two_pools(llama_on(16, failing_run()), "dgx-h100");
  ForecastRequest on_one = on_pools;
  on_one.scenario.plan.stage_pools.clear();
  on_one.scenario.cluster.pools.clear();
  const Forecast many = forecast_of(on_pools), one = forecast_of(on_one);
  EXPECT_EQ(many.statistics.wall.p90, one.statistics.wall.p90);
  EXPECT_GT(one.statistics.interruptions.p50, 1.0);
  EXPECT_NEAR(many.total().cost / one.total().cost, 1.0, 1e-12);
  EXPECT_NEAR(many.total().energy / one.total().energy, 1.0, 1e-12);
  EXPECT_NEAR(many.spares.cost / one.spares.cost, 1.0, 1e-12);
}

TEST(Forecast, EachPoolHasItsPriceItsNodesAndItsFailures) {
  json run = failing_run();
  run["failures"]["pools"] = {{{"pool", "second"}, {"rate_ratio", 3}}};
  ForecastRequest request = on_two_pools(llama_on(16, run), "dgx-a100");
  request.scenario.cluster.price = dollars_per_hour(4.0);
  request.scenario.cluster.pools[0].price = dollars_per_hour(1.0);
  // A node of the second pool has half of the accelerators, so that it fills two of them.
  request.scenario.cluster.pools[0].node.accelerators = 4;
  request.scenario.cluster.pools[0].node.scale_up.domain = 4;
  const Forecast forecast = forecast_of(request);
  const double failures_of_node = 400.0 / (1000.0 * kSecondsPerDay);
  EXPECT_NEAR(forecast.model.failures[FailureCause::Gpu].rate.value(),
              (1.0 + 2.0 * 3.0) * failures_of_node, 1e-12);
  EXPECT_NEAR(forecast.total().cost.value(), 2.5 * forecast.total().gpu_hours, 1e-6);

  request.run.fleet.pools = {{request.scenario.cluster.name, 0.0}, {"second", 0.0}};
  EXPECT_EQ(forecast_of(request).model.failures[FailureCause::Gpu].rate.value(), 0.0);
  request.run.fleet.pools = {{"second", 3.0}};

  request.run.fleet.pools[0].pool = "third";
  request.run.recovery.shrinks = true;
  EXPECT_THAT(problems_of([&] { run_stages(request); }),
              testing::ElementsAre(testing::HasSubstr("/recovery/shrinks"),
                                   testing::HasSubstr("/failures/pools/0/pool")));
}

TEST(Forecast, AStageOnAPoolIsHeldAgainstTheMemoryOfItsPool) {
  ForecastRequest request = on_two_pools(llama_on(16, kQuiet), "dgx-a100");
  const std::vector<ForecastStage> stages = run_stages(request);
  EXPECT_EQ(stage_beyond_memory(stages, request.scenario.cluster), nullptr);
  request.scenario.cluster.pools[0].accelerator.memory = Bytes(1e9);
  const std::vector<ForecastStage> fuller = run_stages(request);
  EXPECT_EQ(stage_beyond_memory(fuller, request.scenario.cluster), &fuller[0]);
}

TEST(Forecast, AStageMayHaveOtherDegrees) {
  json run = kQuiet;
  run["stages"] = {{{"name", "deep"}, {"tokens", 1e10}, {"tp", 4}, {"pp", 2}}};
  const Forecast all = forecast_of(llama_on(16, run));
  EXPECT_EQ(all.stages[0].plan.tp, 4);
  EXPECT_EQ(all.stages[0].plan.pp, 2);
  EXPECT_EQ(all.stages[0].plan.dp, 2);
  EXPECT_EQ(all.stages[1].plan.tp, 2);
}

// Eight replicas, of which four share a node, survive the loss of one of two nodes but not of the
// only one.
TEST(Forecast, CopiesOnOneNodeAreLostWithIt) {
  json run = kQuiet;
  run["failures"] = {{"host", {{"per_1000_node_days", 100.0}}}};
  run["recovery"] = {{"from_replicas", true}, {"spare_replicas", 1}};
  const auto model_of = [&](std::int64_t gpus) {
    ForecastRequest request = llama_on(gpus, run);
    request.scenario.plan.zero_stage = 0;
    return run_model(request, run_stages(request));
  };
  EXPECT_FALSE(model_of(8).from_replicas);
  EXPECT_TRUE(model_of(16).from_replicas);
  EXPECT_EQ(model_of(16).spare_replicas, 0) << "a node has four replicas";
}

// A tenth less of each thing saves a tenth of the time that it takes, whatever the recovery is.
TEST(Forecast, GainsAreATenthOfTheirParts) {
  json run = kQuiet;
  run["failures"] = {{"host", {{"per_1000_node_days", 300.0}, {"replaced_ratio", 0}}}};
  run["recovery"] = {{"from_replicas", true}, {"restart_s", 100}, {"detection_s", 500}};
  run["checkpoint"]["replica_bytes_per_s"] = 1e7;
  run["checkpoint"]["interval_s"] = 1e5;
  ForecastRequest request = llama_on(16, run);
  request.scenario.plan.zero_stage = 0;
  request.options.runs = 400;
  const Forecast all = forecast_of(request);
  const auto gain_of = [&](const std::string& name) {
    return std::ranges::find(all.gains, name, &RunGain::name)->share;
  };
  const auto share_of = [&](RunPart part) {
    return all.statistics.mean[part] / all.statistics.mean_wall();
  };
  ASSERT_GT(share_of(RunPart::Restart), 0.01);
  EXPECT_NEAR(gain_of("restart") / share_of(RunPart::Restart), 0.1, 0.03);
  EXPECT_NEAR(gain_of("detection") / share_of(RunPart::Detection), 0.1, 0.03);
}

// Where the input sets the pace, shorter steps only wait longer.
TEST(Forecast, AStarvedInputPipelineSetsThePace) {
  json run = kQuiet;
  run["input"] = {{"tokens_per_s", 1e4}};
  const Forecast starved = forecast_of(llama_on(16, run));
  const auto gain = std::ranges::find(starved.gains, "step_time", &RunGain::name);
  ASSERT_NE(gain, starved.gains.end());
  EXPECT_NEAR(gain->share, 0.0, 1e-6);
  EXPECT_NEAR(starved.statistics.mean_wall().value() / (1e11 / 1e4), 1.0, 1e-3);
}

// Steps that are longer than predicted wait less for their input, and take no longer until they are
// longer than it takes.
TEST(Forecast, StepsThatWaitForInputHideTheirError) {
  json run = kQuiet;
  run["failures"] = {{"rate_ratio", 0.0}};
  ForecastRequest request = llama_on(16, run);
  request.options.runs = 1000;
  const std::vector<ForecastStage> stages = run_stages(request);
  const Seconds step = stages.front().step.step;
  const auto steps = static_cast<double>(stages.front().steps);
  const double tokens = stages.front().tokens / steps;
  const auto wall = [&](double supply_over_step) {
    request.run.input.tokens_per_s = tokens / (supply_over_step * step.value());
    return forecast(request, stages, {0.9, 1.2}).statistics.wall;
  };
  const double never = wall(1e-6).p50 - steps * step.value();
  for (const double ratio : {0.95, 1.05, 1.5}) {
    const sim::Percentiles found = wall(ratio);
    const auto expected = [&](double factor) {
      return never + steps * step.value() * std::max(factor, ratio);
    };
    EXPECT_NEAR(found.p10 / expected(0.9), 1.0, 2e-3) << ratio;
    EXPECT_NEAR(found.p50 / expected(1.0), 1.0, 2e-3) << ratio;
    EXPECT_NEAR(found.p90 / expected(1.2), 1.0, 2e-3) << ratio;
  }
}

// Llama 3.1 405B had 466 interruptions in 54 days on 2,048 nodes, of them 419 unexpected. The rates
// of the profile are those of six other fleets.
TEST(Forecast, TheInterruptionsOfLlama3AreInsideTheRange) {
  sim::RunModel model =
      sim::run_model(load_run("settled-fleet"), {{1.0, 1.0, Seconds(54.0 * 86'400.0 * 0.9)}},
                     {2048, Bytes(5.67e12)});
  model.interval = Seconds(120);
  const sim::RunStatistics all = sim::simulate_runs(model, {.runs = 1000});
  EXPECT_LT(all.interruptions.p10, 419.0);
  EXPECT_GT(all.interruptions.p90, 466.0);
  EXPECT_GT(model.total_work().value() / all.wall.p50, 0.9)
      << "effective time, published as above 90 %";
}

// A stage of long sequences trains fewer tokens an hour than the one before it.
TEST(Forecast, TokensFollowTheStagesOfTheRun) {
  json staged = kQuiet;
  staged["stages"] = {{{"name", "short"}, {"tokens", 4e10}},
                      {{"name", "long"}, {"global_batch", 16}, {"seq_len", 32768}}};
  const Forecast run = forecast_of(llama_on(16, staged));
  ASSERT_EQ(run.stages.size(), 2u);
  const auto time = [](const ForecastStage& stage) {
    return static_cast<double>(stage.steps) * stage.step.step.value();
  };
  const double first = time(run.stages[0]) / (time(run.stages[0]) + time(run.stages[1]));
  EXPECT_EQ(run.tokens_at(0.0), 0.0);
  EXPECT_NEAR(run.tokens_at(first), 4e10, 1e4);
  EXPECT_NEAR(run.tokens_at(0.5 * first), 2e10, 1e4);
  EXPECT_NEAR(run.tokens_at(1.0), 1e11, 1e5);
  EXPECT_LT(run.tokens_at(first + 0.1) - 4e10, 4e10 * 0.1 / first);
}

// A failing host waits ten hours for its repair, while the run goes on without it.
json shrinking_run() {
  json run = kQuiet;
  run["failures"] = {{"host", {{"per_1000_node_days", 300}}}};
  run["recovery"] = {{"repair_s", 36'000}, {"shrinks", true}};
  return run;
}

double own_speed_on_one_node(const Scenario& scenario) {
  return shrunk_speed(scenario, std::vector{scenario.plan}, sim::simulate_step(scenario), 8);
}

// Eight replicas on two nodes: without one node four of them train the batch, in twice the
// microbatches.
TEST(Forecast, ARunShrinksToTheFastestPlanForTheRest) {
  const ForecastRequest request = llama_on(16, shrinking_run());
  Scenario half = request.scenario;
  half.plan.dp = 4;
  const Seconds whole = sim::simulate_step(request.scenario).step;
  const double own = own_speed_on_one_node(request.scenario);
  EXPECT_DOUBLE_EQ(own, whole / sim::simulate_step(half).step);
  // Half of the gradient's reduction crosses no node any more: it is more than half as fast.
  EXPECT_GT(own, 0.5);
  EXPECT_LT(own, 0.6);

  const Forecast shrunk = forecast_of(request);
  ASSERT_EQ(shrunk.model.shrunk_speeds.size(), 1U);
  EXPECT_GE(shrunk.model.shrunk_speeds[0], own);
  // No plan for the rest is faster than the best of all plans for one node.
  PlanRequest all;
  all.model = half.model;
  all.cluster = half.cluster;
  all.stack = half.stack;
  all.gpus = 8;
  all.global_batch = half.plan.global_batch;
  all.seq_len = half.plan.seq_len;
  const SearchResult best = search(all);
  ASSERT_FALSE(best.plans.empty());
  EXPECT_LE(shrunk.model.shrunk_speeds[0], whole / best.plans.front().result.step * 1.001);
}

// The only replica spans both nodes: on one of them another layout goes on.
TEST(Forecast, ARunOfOneReplicaShrinksToAnotherLayout) {
  ForecastRequest request = llama_on(16, shrinking_run());
  request.scenario.plan.dp = 1;
  request.scenario.plan.tp = 8;
  request.scenario.plan.pp = 2;
  EXPECT_EQ(own_speed_on_one_node(request.scenario), 0.0);
  const Forecast shrunk = forecast_of(request);
  ASSERT_EQ(shrunk.model.shrunk_speeds.size(), 1U);
  EXPECT_GT(shrunk.model.shrunk_speeds[0], 0.4);
}

// A plan that does not fit on the ranks that are left does not count.
TEST(Forecast, ARunDoesNotShrinkBeyondItsMemory) {
  ForecastRequest request = llama_on(16, shrinking_run());
  const double peak = sim::simulate_step(request.scenario).memory().peak.value();
  request.scenario.cluster.accelerator.memory = Bytes(peak * 1.01);
  Scenario half = request.scenario;
  half.plan.dp = 4;
  ASSERT_GT(sim::simulate_step(half).memory().peak.value(), peak * 1.01);
  EXPECT_EQ(own_speed_on_one_node(request.scenario), 0.0);
}

}  // namespace
}  // namespace shardwright::planner
