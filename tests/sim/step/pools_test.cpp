// Steps whose stages, or whose replicas, lie on several pools of a cluster.
#include "core/spec/pools.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/lowering/lowering.hpp"
#include "core/program/group_lattice.hpp"
#include "core/program/validate.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/fidelity.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/simulate.hpp"
#include "tests/faster_accelerator.hpp"
#include "tests/sim/step/random_scenario.hpp"
#include "tests/thrown.hpp"

namespace shardwright::sim {
namespace {

using fixtures::any_small_scenario;
using fixtures::one_of;
using fixtures::pool_like_first;
using fixtures::small_scenario;

// Puts the stages from `first` on onto the second pool.
void place_from(std::int64_t first, Scenario& scenario) {
  for (std::int64_t stage = 0; stage < scenario.plan.pp; ++stage)
    scenario.plan.stage_pools.push_back(stage < first ? scenario.cluster.name : "second");
}

// 16 ranks on two stages of a node each, the second on a pool of its own.
Scenario two_pools(std::int64_t layers = 16) {
  Scenario scenario = small_scenario(1, 8, 2);
  scenario.model.layers = layers;
  scenario.model.attention.kv_heads = 8;
  scenario.cluster.pools = {pool_like_first(scenario.cluster)};
  place_from(1, scenario);
  return scenario;
}

// A random plan whose last stages lie on the second one of two equal pools.
Scenario any_on_equal_pools() {
  Scenario scenario;
  do {
    scenario = any_small_scenario();
    std::erase(scenario.plan.rank_order, Axis::Pipeline);
    scenario.plan.rank_order.push_back(Axis::Pipeline);
    scenario.cluster.pools = {pool_like_first(scenario.cluster)};
    place_from(one_of<std::int64_t>({0, 1, 2, 3}), scenario);
  } while (scenario.plan.pp == 1 || scenario.plan.stage_pools.back() != "second" ||
           first_broken_rule(scenario.model, scenario.cluster, scenario.plan));
  return scenario;
}

Scenario on_one_pool(Scenario scenario) {
  scenario.cluster.pools.clear();
  scenario.cluster.between_pools = {};
  scenario.plan.stage_pools.clear();
  scenario.plan.replica_pools.clear();
  return scenario;
}

// All that a step's report says, as text.
std::string shown(const StepResult& result) {
  nlohmann::ordered_json document = {{"step", result.step.value()},
                                     {"bottleneck", result.bottleneck},
                                     {"fullest", result.fullest},
                                     {"formula", result.basis.formula.value()},
                                     {"tokens", result.throughput.tokens_per_s_per_gpu},
                                     {"mfu", result.throughput.mfu},
                                     {"hfu", result.throughput.hfu}};
  for (const StageResult& stage : result.stages)
    document["stages"].push_back({time_json(stage.time), memory_json(stage.memory)});
  return document.dump();
}

RC_GTEST_PROP(Pools, EqualPoolsAreAsOne, ()) {
  Scenario scenario = any_on_equal_pools();
  // A network between pools that is no worse than the fabrics changes nothing.
  if (any_flag()) scenario.cluster.between_pools = {BytesPerSecond(1e15), Seconds(1e-9)};
  RC_ASSERT(shown(simulate_step(scenario)) == shown(simulate_step(on_one_pool(scenario))));
}

RC_GTEST_PROP(Pools, EqualPoolsAreAsOneAtTheFullLevel, ()) {
  const Scenario scenario = any_on_equal_pools();
  FullOptions options;
  options.contention = any_flag();
  const auto result = [&](const Scenario& each) {
    return shown(simulate_at(each, Fidelity::Full, options).result);
  };
  RC_ASSERT(result(scenario) == result(on_one_pool(scenario)));
}

RC_GTEST_PROP(Pools, EqualPoolsAreAsOneInClosedForm, ()) {
  Scenario scenario = any_on_equal_pools();
  if (any_flag()) scenario.cluster.between_pools = {BytesPerSecond(1e15), Seconds(1e-9)};
  const StepEstimate mixed = estimate_step(scenario), one = estimate_step(on_one_pool(scenario));
  RC_ASSERT(mixed.bound == one.bound);
  RC_ASSERT(mixed.analytic == one.analytic);
  RC_ASSERT(mixed.memory == one.memory);
}

// Long steps are replayed in part where they have a steady state, and all ranks are alike.
RC_GTEST_PROP(Pools, LongStepsAndAllRanksAgreeOnUnlikePools, ()) {
  Scenario scenario = any_on_equal_pools();
  scenario.cluster.pools[0].node.nic.per_node = 4;
  scenario.cluster.pools[0].node.host.speed = 0.5;
  double_speed(scenario.cluster.pools[0].accelerator);
  scenario.cluster.between_pools.latency = milliseconds(1);
  const Seconds whole = simulate_at(scenario, Fidelity::Event).result.step;
  RC_ASSERT(std::abs(simulate_at(scenario, Fidelity::Full).result.step / whole - 1.0) < 1e-6);
  scenario.plan.global_batch = scenario.plan.dp * scenario.plan.micro_batch * 64;
  RC_PRE(!first_broken_rule(scenario.model, scenario.cluster, scenario.plan));
  const Seconds replayed = simulate_at(scenario, Fidelity::Event).result.step;
  RC_ASSERT(std::abs(simulate_step(scenario).step / replayed - 1.0) < 1e-9);
}

// A random plan on two pools that differ in all that a step takes.
Scenario any_on_unlike_pools() {
  Scenario scenario = any_on_equal_pools();
  PoolSpec& second = scenario.cluster.pools[0];
  if (any_flag()) double_speed(second.accelerator);
  second.node.nic.per_node = one_of({1, 4, 8});
  second.node.host.speed = one_of({0.25, 0.5, 1.0, 2.0});
  second.node.scale_up.bandwidth = second.node.scale_up.bandwidth * one_of({0.5, 1.0, 2.0});
  scenario.cluster.between_pools.latency = one_of({Seconds(), milliseconds(1), milliseconds(20)});
  scenario.cluster.between_pools.bandwidth = BytesPerSecond(one_of({0.0, 1e9, 2e10}));
  return scenario;
}

RC_GTEST_PROP(Pools, TheMemoryIsThatOfTheEventLevelInClosedForm, ()) {
  const Scenario scenario = any_on_unlike_pools();
  const StepEstimate estimate = estimate_step(scenario);
  const StepResult step = simulate_step(scenario);
  RC_ASSERT(estimate.analytic >= estimate.bound);
  RC_ASSERT(std::abs(estimate.memory / step.memory().peak - 1.0) < 1e-9);
}

// Hosts that decide how long slots take, and beside whose slots the reductions of the last one run.
RC_GTEST_PROP(Pools, HardlyAStepOfSlowHostsFallsBelowTheBound, ()) {
  Scenario scenario = any_on_unlike_pools();
  scenario.cluster.pools[0].node.host.speed = one_of({0.1, 0.2, 0.25});
  if (scenario.plan.vpp == 1) scenario.plan.schedule = ScheduleKind::GPipe;
  RC_PRE(!first_broken_rule(scenario.model, scenario.cluster, scenario.plan));
  RC_ASSERT(estimate_step(scenario).bound <= simulate_step(scenario).step * 1.003);
}

// 20 ms between stages that compute for less: the messages follow each other on one channel.
TEST(Pools, ClosedFormsKnowSlowLinksInTheMiddleOfThePipeline) {
  for (const ScheduleKind schedule : {ScheduleKind::GPipe, ScheduleKind::OneFOneB}) {
    Scenario scenario = small_scenario(1, 8, 4);
    scenario.model.attention.kv_heads = 8;
    scenario.plan.schedule = schedule;
    scenario.cluster.pools = {pool_like_first(scenario.cluster)};
    scenario.cluster.between_pools.latency = milliseconds(20);
    place_from(3, scenario);
    const Seconds step = simulate_step(scenario).step;
    EXPECT_GT(step, milliseconds(2 * 20));
    EXPECT_LE(estimate_step(scenario).bound, step);
    EXPECT_NEAR(estimate_step(scenario).analytic / step, 1.0, 0.05);
  }
}

RC_GTEST_PROP(Pools, AFasterPoolNeverMakesAStepSlowerInClosedForm, ()) {
  Scenario scenario = any_on_unlike_pools();
  const StepEstimate slow = estimate_step(scenario);
  double_speed(scenario.cluster.pools[0].accelerator);
  const StepEstimate fast = estimate_step(scenario);
  // Faster kernels stand still longer for collectives, and the list of a schedule is timed with
  // rounded times.
  RC_ASSERT(fast.bound <= slow.bound * 1.005);
  RC_ASSERT(fast.analytic <= slow.analytic * 1.02);
}

TEST(Pools, APoolOfTwiceTheSpeedTakesTwiceTheLayersInTheSameTime) {
  Scenario scenario = two_pools(15);
  scenario.plan.stage_layers = {5, 10};
  double_speed(scenario.cluster.pools[0].accelerator);
  const StepResult result = simulate_step(scenario);
  const TimeBreakdown &slow = result.stages[0].time, &fast = result.stages[1].time;
  // Attention runs in layers alone; GEMMs and norms also in the head, on the second stage.
  EXPECT_GT(slow.attention.value(), 0.0);
  EXPECT_NEAR(fast.attention / slow.attention, 1.0, 1e-6);
  EXPECT_GT(fast.gemm, slow.gemm);
}

// With tensor parallelism inside of nodes and one replica, only messages between the pools leave a
// node, so that the network between pools is as good as a worse fabric.
TEST(Pools, TheNetworkBetweenPoolsIsThatOfTheirMessages) {
  Scenario scenario = two_pools();
  const Seconds near = simulate_step(scenario).step;
  scenario.cluster.between_pools = {BytesPerSecond(5e9), milliseconds(20)};
  const Seconds far = simulate_step(scenario).step;
  Scenario slow = on_one_pool(scenario);
  NicSpec& nic = slow.cluster.node.nic;
  nic.bandwidth = scenario.cluster.between_pools.bandwidth /
                  (nic.efficiency * static_cast<double>(nic.per_node));
  slow.cluster.fabric.base_latency = milliseconds(20);
  EXPECT_NEAR(far / simulate_step(slow).step, 1.0, 1e-9);
  // A microbatch and its gradient pass between the pools before the last one does.
  EXPECT_GT(far - near, milliseconds(2 * 20));
}

TEST(Pools, TheFullestStageIsTheOneThatItsOwnPoolLeavesLeastRoom) {
  Scenario scenario = two_pools();
  const StepResult alike = simulate_step(scenario);
  ASSERT_EQ(alike.fullest, alike.stages[0].memory.peak > alike.stages[1].memory.peak ? 0 : 1);
  scenario.cluster.pools[0].accelerator.memory = alike.stages[1].memory.peak;
  EXPECT_EQ(simulate_step(scenario).fullest, 1);
  scenario.cluster.pools[0].accelerator.memory = gigabytes(1000);
  EXPECT_EQ(simulate_step(scenario).fullest, 0);
}

TEST(Pools, UtilisationIsOverTheMeanPeakOfTheRanks) {
  Scenario scenario = two_pools();
  AcceleratorSpec& second = scenario.cluster.pools[0].accelerator;
  second.matrix.bf16 = second.matrix.bf16 * 0.5;
  const StepResult result = simulate_step(scenario);
  const double peak = scenario.cluster.accelerator.matrix.bf16.value();
  EXPECT_NEAR(result.throughput.tflops_per_gpu * 1e12 / result.throughput.mfu, 0.75 * peak,
              1e-9 * peak);
}

// A random plan whose last replicas lie on the second one of two equal pools, and run as many
// microbatches as the first ones.
Scenario any_replicas_on_equal_pools() {
  Scenario scenario;
  std::int64_t first = 1;
  do {
    scenario = any_small_scenario();
    Plan& plan = scenario.plan;
    std::erase(plan.rank_order, Axis::Data);
    plan.rank_order.push_back(Axis::Data);
    scenario.cluster.pools = {pool_like_first(scenario.cluster)};
    first = one_of<std::int64_t>({1, 2, 3});
    if (first >= plan.dp) continue;
    plan.replica_pools = {{scenario.cluster.name, first, plan.microbatches()},
                          {"second", plan.dp - first, plan.microbatches()}};
  } while (scenario.plan.replica_pools.empty() || spreads_experts(scenario.plan) ||
           first_broken_rule(scenario.model, scenario.cluster, scenario.plan));
  return scenario;
}

// Lets the pools of replicas differ in all that a step takes, and the replicas in their shares of
// the batch where the plan allows it.
void make_unlike(Scenario& scenario) {
  PoolSpec& second = scenario.cluster.pools[0];
  if (any_flag()) double_speed(second.accelerator);
  second.node.nic.per_node = one_of({1, 4, 8});
  second.node.host.speed = one_of({0.5, 1.0, 2.0});
  scenario.cluster.between_pools.latency = one_of({Seconds(), milliseconds(1), milliseconds(20)});
  scenario.cluster.between_pools.bandwidth = BytesPerSecond(one_of({0.0, 1e9, 2e10}));
  Plan unequal = scenario.plan;
  unequal.replica_pools.back().microbatches *= one_of<std::int64_t>({1, 2, 3});
  unequal.global_batch = batch_of_pools(unequal);
  if (!first_broken_rule(scenario.model, scenario.cluster, unequal)) scenario.plan = unequal;
}

Scenario any_replicas_on_unlike_pools() {
  Scenario scenario = any_replicas_on_equal_pools();
  make_unlike(scenario);
  return scenario;
}

void expect_sound_program(const Scenario& scenario) {
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  RC_ASSERT(static_cast<std::int64_t>(program.stages.size()) == count_stages(scenario.plan));
  for (const Finding& finding : validate(program)) RC_FAIL(finding.text);
}

RC_GTEST_PROP(PoolsOfReplicas, HaveSoundPrograms, ()) {
  expect_sound_program(any_replicas_on_unlike_pools());
}

// Replicas that wait for each other's collectives change nothing where all run the same.
void expect_as_one(const Scenario& scenario) {
  const Fidelity fidelity = any_flag() ? Fidelity::Event : Fidelity::Full;
  const StepResult mixed = simulate_at(scenario, fidelity).result;
  const StepResult one = simulate_at(on_one_pool(scenario), fidelity).result;
  const double rounding = 1e-9 * one.step.value();
  RC_ASSERT(mixed.step == one.step);
  RC_ASSERT(mixed.stages.size() == replica_parts(scenario.plan) * one.stages.size());
  for (std::size_t stage = 0; stage < mixed.stages.size(); ++stage) {
    const StageResult &part = mixed.stages[stage], &whole = one.stages[stage % one.stages.size()];
    for (const StepPart of : enumerators<StepPart>())
      RC_ASSERT(std::abs((part.time.of(of) - whole.time.of(of)).value()) < rounding);
    RC_ASSERT(memory_json(part.memory) == memory_json(whole.memory));
  }
  RC_ASSERT(std::abs(mixed.throughput.hfu / one.throughput.hfu - 1.0) < 1e-12);
  const StepEstimate closed = estimate_step(scenario);
  RC_ASSERT(closed.analytic == estimate_step(on_one_pool(scenario)).analytic);
  RC_ASSERT(closed.memory == estimate_step(on_one_pool(scenario)).memory);
}

RC_GTEST_PROP(PoolsOfReplicas, ThatAreEqualAreAsOne, ()) {
  Scenario scenario = any_replicas_on_equal_pools();
  if (any_flag()) scenario.cluster.between_pools = {BytesPerSecond(1e15), Seconds(1e-9)};
  expect_as_one(scenario);
}

// One program for each pool says nearly the same as all ranks by themselves: there a collective
// starts on all pools when the one before it has ended on all, here on each when it has ended
// there. They end apart by what the kernels beside them cost.
RC_GTEST_PROP(PoolsOfReplicas, AllRanksAgreeWithOneOfEachStage, ()) {
  const Scenario scenario = any_replicas_on_unlike_pools();
  const StepResult event = simulate_at(scenario, Fidelity::Event).result;
  const Seconds full = simulate_at(scenario, Fidelity::Full).result.step;
  RC_ASSERT(std::abs(full / event.step - 1.0) < 0.02);
  RC_ASSERT(simulate_step(scenario).step == event.step);
}

RC_GTEST_PROP(PoolsOfReplicas, ClosedFormsKnowThem, ()) {
  const Scenario scenario = any_replicas_on_unlike_pools();
  const StepEstimate closed = estimate_step(scenario);
  const StepResult step = simulate_step(scenario);
  RC_ASSERT(closed.bound <= step.step);
  RC_ASSERT(closed.bound <= closed.analytic);
  RC_ASSERT(std::abs(closed.memory / step.memory().peak - 1.0) < 1e-9);
}

// No replica ends its step before the slowest one does, as each alone would.
RC_GTEST_PROP(PoolsOfReplicas, TakeNoLessThanThoseOfEachPoolAlone, ()) {
  Scenario scenario = any_replicas_on_unlike_pools();
  const Seconds step = simulate_at(scenario, Fidelity::Event).result.step;
  for (std::size_t part = 0; part < 2; ++part) {
    Scenario alone = scenario;
    alone.plan = plan_of_part(scenario.plan, part);
    const std::string pool = alone.plan.replica_pools[part].pool;
    alone.plan.replica_pools.clear();
    alone.cluster = *pool_cluster(scenario.cluster, pool);
    RC_ASSERT(simulate_at(alone, Fidelity::Event).result.step <= step * (1.0 + 1e-9));
  }
}

// Eight replicas on a node, and eight on another one that computes twice as fast: two thirds of the
// batch there take less time than a half, and that node stands still no longer.
TEST(PoolsOfReplicas, AFasterPoolTakesALargerShareOfTheBatch) {
  Scenario scenario = small_scenario(16, 1, 1);
  scenario.plan.micro_batch = 2;
  scenario.cluster.pools = {pool_like_first(scenario.cluster)};
  double_speed(scenario.cluster.pools[0].accelerator);
  const auto with_shares = [&](std::int64_t first, std::int64_t second) {
    scenario.plan.replica_pools = {{scenario.cluster.name, 8, first}, {"second", 8, second}};
    scenario.plan.global_batch = batch_of_pools(scenario.plan);
    return simulate_step(scenario);
  };
  const StepResult even = with_shares(30, 30), shared = with_shares(20, 40);
  EXPECT_NEAR(shared.step / even.step, 2.0 / 3.0, 0.05);
  EXPECT_GT(even.stages[1].time.stall.value(), 0.4 * even.step.value());
  EXPECT_LT(shared.stages[1].time.stall.value(), 0.15 * shared.step.value());
  EXPECT_NEAR(even.stages[1].time.total() / even.step, 1.0, 1e-9);
}

// Puts the ranks from stage `border` of the last replicas on onto the second pool. Where replicas
// are outermost, those before and behind the one that this splits lie on one pool each.
void split_replicas(std::int64_t border, bool stages_outermost, Scenario& scenario) {
  Plan& plan = scenario.plan;
  const std::string& own = scenario.cluster.name;
  const std::int64_t each = plan.microbatches(), first = plan.dp / 2;
  const auto from = [&](std::int64_t stage) {
    std::vector<std::string> pools;
    for (std::int64_t s = 0; s < plan.pp; ++s) pools.push_back(s < stage ? own : "second");
    return pools;
  };
  plan.rank_order = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data, Axis::Pipeline};
  plan.replica_pools = {{"", first, each, from(border + 1)},
                        {"", plan.dp - first, each, from(border)}};
  if (stages_outermost) return;
  std::swap(plan.rank_order[3], plan.rank_order[4]);
  plan.replica_pools = {{own, first, each}, {"", 1, each, from(border)}};
  if (first + 1 < plan.dp) plan.replica_pools.push_back({"second", plan.dp - first - 1, each});
}

// A random plan that places both stages and replicas on two equal pools of small nodes.
Scenario any_split_on_equal_pools() {
  Scenario scenario;
  do {
    scenario = any_small_scenario();
    if (scenario.plan.pp == 1 || scenario.plan.dp == 1) continue;
    NodeSpec& node = scenario.cluster.node;
    node.accelerators = node.scale_up.domain = scenario.plan.tp * scenario.plan.cp;
    scenario.cluster.pools = {pool_like_first(scenario.cluster)};
    const auto border = *rc::gen::inRange<std::int64_t>(0, scenario.plan.pp);
    split_replicas(border, any_flag(), scenario);
  } while (!splits_replicas(scenario.plan) ||
           first_broken_rule(scenario.model, scenario.cluster, scenario.plan));
  return scenario;
}

RC_GTEST_PROP(PoolsOfStagesAndReplicas, HaveSoundPrograms, ()) {
  expect_sound_program(any_split_on_equal_pools());
}

RC_GTEST_PROP(PoolsOfStagesAndReplicas, ThatAreEqualAreAsOne, ()) {
  Scenario scenario = any_split_on_equal_pools();
  if (any_flag()) scenario.cluster.between_pools = {BytesPerSecond(1e15), Seconds(1e-9)};
  expect_as_one(scenario);
}

void expect_same_step(const Scenario& a, const Scenario& b) {
  const Fidelity fidelity = any_flag() ? Fidelity::Event : Fidelity::Full;
  RC_ASSERT(shown(simulate_at(a, fidelity).result) == shown(simulate_at(b, fidelity).result));
  const StepEstimate closed = estimate_step(a), other = estimate_step(b);
  RC_ASSERT(closed.bound == other.bound);
  RC_ASSERT(closed.analytic == other.analytic);
  RC_ASSERT(closed.memory == other.memory);
}

// One part whose stages lie on pools is a plan that places stages.
RC_GTEST_PROP(PoolsOfStagesAndReplicas, OfOnePartAreStagesOnPools, ()) {
  const Scenario stages = any_on_unlike_pools();
  Scenario part = stages;
  part.plan.stage_pools.clear();
  part.plan.replica_pools = {{"", part.plan.dp, part.plan.microbatches(), stages.plan.stage_pools}};
  RC_PRE(!first_broken_rule(part.model, part.cluster, part.plan));
  expect_same_step(part, stages);
}

RC_GTEST_PROP(PoolsOfStagesAndReplicas, OfOnePoolEachAreReplicasOnPools, ()) {
  const Scenario replicas = any_replicas_on_unlike_pools();
  Scenario parts = replicas;
  for (PoolReplicas& part : parts.plan.replica_pools)
    part.stage_pools.assign(static_cast<std::size_t>(parts.plan.pp), std::exchange(part.pool, ""));
  RC_ASSERT(!first_broken_rule(parts.model, parts.cluster, parts.plan));
  expect_same_step(parts, replicas);
}

RC_GTEST_PROP(PoolsOfStagesAndReplicas, AgreeAtAllLevels, ()) {
  Scenario scenario = any_split_on_equal_pools();
  make_unlike(scenario);
  const StepResult event = simulate_at(scenario, Fidelity::Event).result;
  const Seconds full = simulate_at(scenario, Fidelity::Full).result.step;
  RC_ASSERT(std::abs(full / event.step - 1.0) < 0.02);
  const StepEstimate closed = estimate_step(scenario);
  RC_ASSERT(closed.bound <= event.step * 1.003);
  RC_ASSERT(closed.bound <= closed.analytic);
  RC_ASSERT(std::abs(closed.memory / event.memory().peak - 1.0) < 1e-9);
}

// Seconds of the collectives between replicas on a stage's rank.
Seconds reducing(const Scenario& scenario, std::size_t stage) {
  const auto joins = [&](const Op& op) {
    const auto* message = std::get_if<CommunicationWork>(&op.work);
    return message != nullptr && joins_pools_of_replicas(message->group, scenario.plan);
  };
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const Prices prices = price(program, scenario.cluster, scenario.stack);
  Seconds sum;
  for (const Call& call : program.stages[stage].calls) {
    const std::vector<Op>& ops = program.blocks[call.block].ops;
    for (std::size_t i = 0; i < ops.size(); ++i)
      if (joins(ops[i])) sum += prices.blocks[call.block][i];
  }
  return sum;
}

// Of two replicas of two stages, the last stage of the last one is on a pool of its own: a slow
// network between pools slows the collectives of the last stages down, on both pools alike.
TEST(PoolsOfStagesAndReplicas, OnlyStagesOnSeveralPoolsReduceBetweenThem) {
  Scenario scenario = small_scenario(2, 8, 2);
  scenario.model.attention.kv_heads = 8;
  scenario.cluster.pools = {pool_like_first(scenario.cluster)};
  const std::string& own = scenario.cluster.name;
  const std::int64_t each = scenario.plan.microbatches();
  scenario.plan.replica_pools = {{own, 1, each}, {"", 1, each, {own, "second"}}};
  ASSERT_FALSE(first_broken_rule(scenario.model, scenario.cluster, scenario.plan));
  Scenario slow = scenario;
  slow.cluster.between_pools.bandwidth = BytesPerSecond(1e9);
  EXPECT_EQ(reducing(slow, 0), reducing(scenario, 0));
  EXPECT_EQ(reducing(slow, 2), reducing(scenario, 2));
  EXPECT_GT(reducing(slow, 1), 10.0 * reducing(scenario, 1));
  EXPECT_EQ(reducing(slow, 1), reducing(slow, 3));
}

TEST(Pools, SharedLinksOfUnlikeNodesAreRefused) {
  Scenario scenario = two_pools();
  scenario.cluster.pools[0].node.nic.per_node = 4;
  FullOptions options;
  const auto refused = [&] {
    return thrown_by([&] { simulate_at(scenario, Fidelity::Full, options); });
  };
  EXPECT_EQ(refused(), "");
  options.contention = true;
  EXPECT_NE(refused(), "");
}

}  // namespace
}  // namespace shardwright::sim
