// Calibration on steps that a known profile made: it must find that profile back, as far as the
// steps determine, and predict plans that it has not seen.
#include "calibration/calibrate.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "calibration/part_calibration.hpp"
#include "core/base/error.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/cost/collective_cost.hpp"
#include "tests/calibration/simulated_run.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

using fixtures::Degrees;
using fixtures::four_hosts;
using fixtures::scenario_of;
using fixtures::simulated_run;

// Four ranks have no place on a machine of two: an error, not a broken invariant.
TEST(Calibrate, RefusesRunsAndExchangesOfMoreRanksThanTheProfileHas) {
  const ClusterSpec four = four_hosts(1.0, 1.0);
  ClusterSpec two = four;
  two.nodes = 2;
  two.fabric.levels = {{2, 1.0, Seconds(0)}};
  CalibrationData data;
  data.runs = {simulated_run(four, scenario_of(four, {1, 1, 4}))};
  data.exchanges = {{OpKind::AllReduce, 4, 1, Bytes(1e6), Seconds(1e-3)}};
  const std::vector<Problem> problems = problems_thrown_by([&] { calibrate(two, data, "test"); });
  ASSERT_EQ(problems.size(), 2U);
  EXPECT_THAT(problems[0].where, ::testing::HasSubstr("run run, /plan"));
  EXPECT_THAT(problems[0].expected.text, ::testing::HasSubstr("a profile of 4 ranks"));
  EXPECT_EQ(problems[1].found, "among 4 ranks");
}

TEST(Calibrate, RefusesARunOnSeveralPools) {
  const ClusterSpec cluster = four_hosts(1.0, 1.0);
  CalibrationData data;
  data.runs = {simulated_run(cluster, scenario_of(cluster, {1, 1, 4}))};
  data.runs.front().scenario.plan.stage_pools = {"fast", "fast", "slow", "slow"};
  const std::vector<Problem> problems =
      problems_thrown_by([&] { calibrate(cluster, data, "test"); });
  ASSERT_EQ(problems.size(), 1U);
  EXPECT_EQ(problems[0].where, "run run, /plan/stage_pools");
  EXPECT_EQ(problems[0].found, "stages on pools: fast, slow");
}

ClusterSpec nodes_of(std::int64_t accelerators, std::int64_t domain) {
  ClusterSpec cluster;
  cluster.node.accelerators = accelerators;
  cluster.node.scale_up.domain = domain;
  return cluster;
}

sim::GroupPlacement placed_on(const ClusterSpec& cluster, std::int64_t members,
                              std::int64_t hosts) {
  const ExchangeSample sample{OpKind::AllReduce, members,       1,
                              Bytes(1e6),        Seconds(1e-3), HostSpread{hosts, 1}};
  return placed(sample, cluster).placement;
}

// Whatever else fits into a node, ranks on two hosts meet through the network; but not through that
// of a rack whose hosts share their links.
TEST(Calibrate, PlacesExchangesOnTheHostsThatTheyRanOn) {
  const sim::GroupPlacement apart = placed_on(nodes_of(8, 8), 2, 2);
  EXPECT_EQ(apart.nodes, 2);
  EXPECT_EQ(apart.per_node, 1);
  EXPECT_EQ(apart.groups_per_node, 1);
  EXPECT_EQ(sim::extent_of(apart), 2);
  EXPECT_EQ(placed_on(nodes_of(8, 8), 2, 1).nodes, 1);
  EXPECT_EQ(placed_on(nodes_of(8, 8), 8, 2).per_node, 4);
  EXPECT_EQ(placed_on(nodes_of(4, 72), 72, 18).nodes, 1);
  EXPECT_EQ(placed_on(nodes_of(4, 72), 144, 36).nodes, 2);
  // Full nodes lie as the cluster numbers its ranks.
  const ExchangeSample numbered{OpKind::AllReduce, 16, 1, Bytes(1e6), Seconds(1e-3)};
  EXPECT_EQ(placed_on(nodes_of(8, 8), 16, 2), placed(numbered, nodes_of(8, 8)).placement);
}

TEST(Calibrate, RefusesExchangesOfHostsThatTheProfileHasNot) {
  const auto problem = [](std::int64_t members, std::int64_t hosts) {
    CalibrationData data;
    data.exchanges = {
        {OpKind::AllReduce, members, 1, Bytes(1e6), Seconds(1e-3), HostSpread{hosts, 1}}};
    const std::vector<Problem> problems =
        problems_thrown_by([&] { calibrate(four_hosts(1.0, 1.0), data, "test"); });
    return problems.empty() ? Problem{} : problems.front();
  };
  EXPECT_EQ(problem(2, 1).found, "among 2 ranks of one host");
  EXPECT_EQ(problem(2, 1).expected.text, "at most 1, which the profile has");
  EXPECT_EQ(problem(2, 8).found, "among 8 hosts");
  EXPECT_EQ(problem(4, 4), Problem{});
}

// The time by which a recorded op is longer: of the two events around it on a GPU.
MeasuredRun with_events(MeasuredRun run, Seconds each) {
  for (MeasuredStep& step : run.steps) {
    Seconds before;
    for (Span& span : step.ranks.front().spans) {
      span.start += before;
      span.duration += each;
      before += each;
    }
    run.recording_time = before;
  }
  return run;
}

// The clock of the measured steps is in their rates, so a factor for it would count it twice; and
// the time of the recording's events is not part of a step.
TEST(Calibrate, RatesOfAGpuAreThoseOfItsSteps) {
  ClusterSpec truth = load_cluster("h100-pcie-server");
  truth.stack = load_stack("shardwright");
  truth.accelerator.sustained_clock_ratio = 0.95;
  truth.accelerator.efficiency.memory = 0.6;
  truth.accelerator.efficiency.attention_forward *= 0.8;
  ClusterSpec guess = truth;
  guess.accelerator = load_cluster("h100-pcie-server").accelerator;
  guess.accelerator.sustained_clock_ratio = 0.6;
  Scenario scenario{load_model("gpt2"), guess, *guess.stack, {}};
  scenario.plan.micro_batch = 8;
  scenario.plan.global_batch = 16;
  scenario.plan.seq_len = 1024;
  scenario.plan.precision = Precision::Bf16;
  const MeasuredRun run = with_events(simulated_run(truth, scenario), microseconds(4.0));
  const ClusterSpec calibrated = calibrate(guess, {{run}, {}}, "test").cluster;
  const Seconds expected = predicted_step(scenario, truth);
  EXPECT_GT(predicted_step(scenario, guess) / expected, 1.1);
  EXPECT_NEAR(predicted_step(scenario, calibrated) / expected, 1.0, 0.03);
  EXPECT_EQ(calibrated.accelerator.sustained_clock_ratio, 1.0);
  for (const KernelCurve& curve : calibrated.accelerator.kernel_curves)
    EXPECT_TRUE(curve.kind != OpKind::Gemm && curve.kind != OpKind::Attention);
}

// MFU is a share of the peak, so a machine that turned out faster has a higher one.
TEST(Calibrate, RaisesThePeakWithTheCurves) {
  const ClusterSpec guess = four_hosts(1.0, 1.0), truth = four_hosts(3.0, 1.0);
  const AcceleratorSpec device =
      calibrate(guess, {{simulated_run(truth, scenario_of(guess, {4, 1, 1}))}, {}}, "test")
          .cluster.accelerator;
  FlopPerSecond best;
  for (const KernelCurve& curve : device.kernel_curves) {
    if (curve.kind == OpKind::Gemm) best = std::max(best, curve.flop_rate);
  }
  EXPECT_GT(best / guess.accelerator.matrix.fp32, 2.0);
  EXPECT_EQ(device.matrix.fp32, best);
  EXPECT_EQ(device.sources.at("/matrix/fp32_flop_per_s").source, "test");
}

TEST(Calibrate, ReportsAStepThatGotWorse) {
  const Seconds measured(1.0);
  EXPECT_TRUE((StepComparison{"run", measured, Seconds(1.05), Seconds(0.8)}).got_worse());
  EXPECT_FALSE((StepComparison{"run", measured, Seconds(1.5), Seconds(0.8)}).got_worse());
  EXPECT_FALSE((StepComparison{"run", measured, Seconds(1.02), Seconds(0.975)}).got_worse());
}

TEST(Calibrate, ReportsOpsThatGotWorse) {
  OpErrors ops{"all_reduce", Seconds(1.0), {}, {}};
  const auto got_worse = [&](double before, double after) {
    ops.before.median_abs = before;
    ops.after.median_abs = after;
    return ops.got_worse();
  };
  EXPECT_TRUE(got_worse(0.392, 0.457));
  EXPECT_FALSE(got_worse(0.10, 0.11));
  EXPECT_FALSE(got_worse(0.457, 0.392));
}

// A step of one rank, each kind of op so much longer or shorter as chance has it.
MeasuredRun contradictory_run(const ClusterSpec& cluster, std::mt19937_64& random) {
  MeasuredRun run = simulated_run(cluster, scenario_of(cluster, {1, 1, 1}));
  run.steps.resize(1);
  std::vector<Span>& spans = run.steps.front().ranks.front().spans;
  std::stable_sort(spans.begin(), spans.end(),
                   [](const Span& a, const Span& b) { return a.start < b.start; });
  std::normal_distribution<double> logarithm(0.0, 2.0);
  std::map<std::pair<std::string, Phase>, double> factors;
  Seconds now = spans.front().start;
  for (Span& span : spans) {
    const auto [factor, is_new] = factors.try_emplace({span.name, span.phase}, 1.0);
    if (is_new) factor->second = std::exp(logarithm(random));
    span.start = now;
    span.duration *= factor->second;
    now = span.end();
  }
  return run;
}

TEST(Calibrate, StepsThatDetermineNothingChangeNothing) {
  ClusterSpec guess = four_hosts(1.0, 1.0);
  guess.accelerator.matrix.fp32 = guess.accelerator.vector_fp32 = FlopPerSecond(7e10);
  // One phase is priced by the curve of another one.
  std::erase_if(guess.accelerator.kernel_curves, [](const KernelCurve& curve) {
    return curve.kind == OpKind::Norm && curve.phase == Phase::BackwardInput;
  });
  std::mt19937_64 random(2026);
  int silent = 0;
  for (int i = 0; i < 20; ++i) {
    const Calibration calibration =
        calibrate(guess, {{contradictory_run(guess, random)}, {}}, "test");
    if (std::any_of(calibration.figures.begin(), calibration.figures.end(),
                    [](const auto& figure) { return is_determined(figure.fit.verdict); }))
      continue;
    ++silent;
    EXPECT_EQ(to_json(calibration.cluster), to_json(guess));
    EXPECT_EQ(calibration.steps.front().before, calibration.steps.front().after);
    EXPECT_THAT(calibration.without_curve, ::testing::Contains("norm backward_input"));
  }
  EXPECT_GE(silent, 1);
}

double error_of(const Scenario& scenario, const ClusterSpec& profile, const ClusterSpec& truth) {
  return predicted_step(scenario, profile) / predicted_step(scenario, truth) - 1.0;
}

TEST(Calibrate, FindsTheMachineBackThatMadeTheSteps) {
  const ClusterSpec guess = four_hosts(1.0, 1.0), truth = four_hosts(0.55, 0.4);
  CalibrationData data;
  data.runs = {simulated_run(truth, scenario_of(guess, {4, 1, 1})),
               simulated_run(truth, scenario_of(guess, {1, 2, 2}))};
  const Calibration calibration = calibrate(guess, data, "test");
  for (const StepComparison& step : calibration.steps) {
    EXPECT_GT(std::abs(step.error_before()), 0.2);
    EXPECT_LT(std::abs(step.error_after()), 0.02);
  }
  // Plans and a batch that it has not seen.
  for (const Degrees& degrees : {Degrees{2, 2, 1}, Degrees{2, 1, 2}, Degrees{1, 1, 4}})
    EXPECT_LT(std::abs(error_of(scenario_of(guess, degrees), calibration.cluster, truth)), 0.1);
  const Scenario larger = scenario_of(guess, {4, 1, 1}, 64);
  EXPECT_LT(std::abs(error_of(larger, calibration.cluster, truth)), 0.03);
}

// Two stages lie on each of two pools, of which the second one is half as fast as its profile says.
TEST(Calibrate, RefitsThePoolOfItsNameToARunOnSeveral) {
  ClusterSpec guess = four_hosts(1.0, 1.0);
  guess.pools = {{.name = "slow",
                  .accelerator = guess.accelerator,
                  .node = guess.node,
                  .fabric = guess.fabric,
                  .nodes = 4,
                  .price = {}}};
  ClusterSpec truth = guess;
  truth.pools[0].accelerator = four_hosts(0.5, 1.0).accelerator;
  Scenario scenario = scenario_of(guess, {1, 1, 4});
  scenario.plan.stage_pools = {"four", "four", "slow", "slow"};
  CalibrationData data;
  data.runs = {simulated_run(truth, scenario)};
  const auto refitted = [&](const char* pool) {
    const ClusterSpec profile = *pool_cluster(guess, pool);
    Calibration calibration = calibrate(profile, data, "test");
    const auto rate = [](const ClusterSpec& of) {
      return of.accelerator.kernel_curves.front().flop_rate;
    };
    return std::pair(calibration.steps.front(), rate(calibration.cluster) / rate(profile));
  };
  const auto [slow_step, slow] = refitted("slow");
  EXPECT_LT(slow_step.error_before(), -0.1);
  EXPECT_LT(std::abs(slow_step.error_after()), 0.02);
  EXPECT_NEAR(slow, 0.5, 0.02);
  EXPECT_NEAR(refitted("four").second, 1.0, 0.02);
}

// Messages of two sizes pass between the pools, over a link that the profile says nothing of.
TEST(Calibrate, RefitsTheNetworkBetweenThePoolsOfARun) {
  ClusterSpec guess = four_hosts(1.0, 1.0);
  guess.pools = {{.name = "far",
                  .accelerator = guess.accelerator,
                  .node = guess.node,
                  .fabric = guess.fabric,
                  .nodes = 4,
                  .price = {}}};
  ClusterSpec truth = guess;
  const NicSpec& nic = guess.node.nic;
  truth.between_pools.bandwidth =
      nic.bandwidth * (0.2 * nic.efficiency * static_cast<double>(nic.per_node));
  truth.between_pools.latency = milliseconds(3);
  CalibrationData data;
  for (const std::int64_t micro_batch : {1, 4}) {
    Scenario scenario = scenario_of(guess, {1, 1, 2});
    scenario.plan.micro_batch = micro_batch;
    scenario.plan.stage_pools = {"four", "far"};
    data.runs.push_back(simulated_run(truth, scenario));
  }
  const Calibration calibration = calibrate(guess, data, "test");
  const PoolNetwork& found = calibration.cluster.between_pools;
  EXPECT_NEAR(found.bandwidth / truth.between_pools.bandwidth, 1.0, 0.05);
  EXPECT_NEAR(found.latency / truth.between_pools.latency, 1.0, 0.05);
  EXPECT_TRUE(to_json(calibration.cluster)["between_pools"]["latency_s"].contains("source"));
  for (const StepComparison& step : calibration.steps) {
    EXPECT_LT(step.error_before(), -0.02);
    EXPECT_LT(std::abs(step.error_after()), 0.02);
  }
  // The profile of one pool alone says nothing of it.
  const ClusterSpec alone = *pool_cluster(guess, "far");
  EXPECT_EQ(calibrate(alone, data, "test").cluster.between_pools, alone.between_pools);
}

TEST(Calibrate, KeepsWhereEachFigureCameFrom) {
  const ClusterSpec guess = four_hosts(1.0, 1.0), truth = four_hosts(0.5, 1.0);
  const Calibration calibration =
      calibrate(guess, {{simulated_run(truth, scenario_of(guess, {4, 1, 1}))}, {}},
                "shardwright calibrate run");
  const Sources& sources = calibration.cluster.accelerator.sources;
  const Provenance& rate = sources.at("/kernel_curves/0/flop_per_s");
  EXPECT_EQ(rate.source, "shardwright calibrate run");
  EXPECT_EQ(rate.confidence, Confidence::Fitted);
  EXPECT_LE(rate.low, calibration.cluster.accelerator.kernel_curves[0].flop_rate.value());
  EXPECT_GE(rate.high, calibration.cluster.accelerator.kernel_curves[0].flop_rate.value());
}

// A first profile has no curves, and what no timing determines of one stays a guess. Kept in a
// file, it rests on the same figures as before.
TEST(Calibrate, WrittenAndReadBackRestsOnTheSameFigures) {
  ClusterSpec first = four_hosts(1.0, 1.0);
  first.accelerator.kernel_curves.clear();
  first.accelerator.l2_cache = Bytes(3e7);
  first.accelerator.max_clock = Hertz(1e9);
  first.accelerator.power = Watts(10.0);
  first.node.name = first.fabric.name = "host";
  first.node.host.memory = gigabytes(32.0);
  first.node.host.accelerator_link = gigabytes_per_second(2.0);
  const ClusterSpec guess = read_cluster(to_json(first), "machine.json", PartLibrary());
  CalibrationData data;
  data.runs = {simulated_run(four_hosts(0.5, 0.5), scenario_of(guess, {2, 2, 1}))};
  data.exchanges = {{OpKind::AllReduce, 4, 1, Bytes(1e6), Seconds(1e-2)}};
  const ClusterSpec made = calibrate(guess, data, "test").cluster;
  ASSERT_FALSE(made.accelerator.kernel_curves.empty());
  ASSERT_FALSE(made.exchange_curves.empty());
  const ClusterSpec read = read_cluster(to_json(made), "here.json", PartLibrary());
  EXPECT_EQ(read.sources, made.sources);
  EXPECT_EQ(read.accelerator.sources, made.accelerator.sources);
  EXPECT_EQ(read.node.sources, made.node.sources);
  EXPECT_EQ(read.fabric.sources, made.fabric.sources);
  EXPECT_EQ(read.stack->sources, made.stack->sources);
  // The exchange that a curve is of is no figure.
  EXPECT_FALSE(made.sources.contains("/exchange_curves/0/members"));
  EXPECT_TRUE(made.sources.contains("/exchange_curves/0/skew_s"));
}

TEST(Calibrate, LeavesAloneWhatTheRunsDoNotDetermine) {
  const ClusterSpec guess = four_hosts(1.0, 1.0);
  const Calibration calibration = calibrate(
      guess, {{simulated_run(four_hosts(0.5, 0.5), scenario_of(guess, {1, 1, 4}))}, {}}, "test");
  // A pipeline's messages say nothing about the sizes of edges, of which one shape each ran.
  const auto edge = std::find_if(
      calibration.figures.begin(), calibration.figures.end(),
      [](const CalibratedFigure& f) { return f.pointer.ends_with("/kernel_curves/1/score_s"); });
  ASSERT_NE(edge, calibration.figures.end());
  EXPECT_EQ(edge->fit.verdict, FitVerdict::Undetermined);
  EXPECT_EQ(calibration.cluster.accelerator.kernel_curves[1].score,
            guess.accelerator.kernel_curves[1].score);
}

// An all-reduce of all four as `truth` predicts it, give or take 2 %.
ExchangeSample timed_all_reduce(const ClusterSpec& truth, double bytes, double off) {
  ExchangeSample sample{OpKind::AllReduce, 4, 1, Bytes(bytes), Seconds(0)};
  const sim::GroupPlacement placement = placed(sample, truth).placement;
  sample.time =
      sim::collective_cost(sample.kind, sample.bytes, placement, truth, StackSpec{}).time *
      (1.0 + off);
  return sample;
}

CalibrationData timed_all_reduces(const ClusterSpec& truth, const std::vector<double>& sizes) {
  CalibrationData data;
  for (const double bytes : sizes)
    for (const double off : {-0.02, 0.0, 0.02})
      data.exchanges.push_back(timed_all_reduce(truth, bytes, off));
  return data;
}

const FittedParameter& figure_at(const Calibration& calibration, const std::string& pointer) {
  const auto found =
      std::find_if(calibration.figures.begin(), calibration.figures.end(),
                   [&](const CalibratedFigure& figure) { return figure.pointer == pointer; });
  EXPECT_NE(found, calibration.figures.end()) << pointer;
  return found->fit;
}

// All that the timings say of the latency is that it is less than the profile's.
TEST(Calibrate, KeepsALatencyThatTheTimingsOnlyBound) {
  ClusterSpec guess = four_hosts(1.0, 1.0), truth = guess;
  guess.fabric.base_latency = microseconds(4380.0);
  truth.fabric.base_latency = Seconds(1e-8);
  const Calibration calibration =
      calibrate(guess, timed_all_reduces(truth, {1e5, 3e5, 1e6, 3e6}), "test");
  const FittedParameter& latency = figure_at(calibration, "/fabric/base_latency_s");
  EXPECT_FALSE(is_determined(latency.verdict));
  EXPECT_EQ(latency.value, latency.before);
  EXPECT_EQ(calibration.cluster.fabric.base_latency, guess.fabric.base_latency);
  EXPECT_FALSE(calibration.cluster.fabric.sources.contains("/base_latency_s"));
}

// The sizes of a curve are those behind its alpha and beta.
TEST(Calibrate, KeepsTheSizesOfFiguresThatStay) {
  const ClusterSpec machine = four_hosts(1.0, 1.0);
  const auto sizes_after = [](const ClusterSpec& before, const CalibrationData& data) {
    const ClusterSpec after = calibrate(before, data, "test").cluster;
    const ExchangeCurve& curve = after.exchange_curves.front();
    return std::pair(std::pair(curve.least.value(), curve.most.value()), after);
  };
  const auto [seen, probed] =
      sizes_after(machine, timed_all_reduces(machine, {64.0, 4096.0, 262144.0, 4194304.0}));
  EXPECT_EQ(seen, std::pair(64.0, 4194304.0));
  CalibrationData one;  // determines nothing
  one.exchanges = {timed_all_reduce(machine, 4.0, 0.5)};
  EXPECT_EQ(sizes_after(probed, one).first, seen);
  // Alpha is of the small ones now, and beta still of the others.
  EXPECT_EQ(sizes_after(probed, timed_all_reduces(machine, {4.0, 8.0})).first,
            std::pair(4.0, 4194304.0));
  EXPECT_EQ(sizes_after(probed, timed_all_reduces(machine, {1e4, 1e5, 1e6, 1e7})).first,
            std::pair(1e4, 1e7));
}

TEST(Calibrate, RefusesATimelineOfAnotherPlan) {
  const ClusterSpec guess = four_hosts(1.0, 1.0);
  CalibrationData data;
  data.runs = {simulated_run(guess, scenario_of(guess, {4, 1, 1}))};
  data.runs.front().scenario = scenario_of(guess, {1, 1, 4});
  EXPECT_THROW(calibrate(guess, data, "test"), InputError);
}

TEST(SideBySide, PutsEachRanksPredictionBesideIt) {
  const ClusterSpec guess = four_hosts(1.0, 1.0);
  const MeasuredRun run = simulated_run(guess, scenario_of(guess, {2, 1, 2}));
  const Timeline both = side_by_side(run, guess);
  ASSERT_EQ(both.ranks.size(), 8U);
  EXPECT_THAT(both.ranks[0].label, ::testing::HasSubstr("measured"));
  EXPECT_THAT(both.ranks[1].label, ::testing::HasSubstr("predicted"));
  // The machine did what was predicted: the same spans at the same times.
  for (std::int32_t rank = 0; rank < 4; ++rank) {
    std::vector<Span> measured, predicted;
    for (Span span : both.spans) {
      const bool is_measured = span.rank == 2 * rank;
      if (!is_measured && span.rank != 2 * rank + 1) continue;
      span.rank = 0;
      span.peer = span.peer < 0 ? -1 : span.peer / 2;
      (is_measured ? measured : predicted).push_back(span);
    }
    EXPECT_EQ(measured, predicted);
  }
}

}  // namespace
}  // namespace shardwright::calibration
