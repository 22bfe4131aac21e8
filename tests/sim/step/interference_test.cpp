#include "sim/step/interference.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/lowering/lowering.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/simulate.hpp"
#include "tests/sim/step/random_scenario.hpp"

namespace shardwright::sim {
namespace {

using testing::any_small_scenario;

// A collective from 1 s to 3 s at s = 1/2: a kernel of 2 s from 0 s has done 1 s when it begins,
// needs 1.5 s for the rest, and ends at 2.5 s.
TEST(RunningCollectives, StretchTheKernelsBesideThem) {
  RunningCollectives running;
  running.add(Stream::GradientReduce, 1.0, 3.0);
  EXPECT_DOUBLE_EQ(running.finish_of_kernel(0.0, 0.5, 0.5), 0.5);
  EXPECT_DOUBLE_EQ(running.finish_of_kernel(0.0, 2.0, 0.5), 2.5);
  // Of 1 s, 1/3 s is done until 3 s.
  EXPECT_DOUBLE_EQ(running.finish_of_kernel(2.5, 1.0, 0.5), 3.0 + 2.0 / 3.0);
  EXPECT_DOUBLE_EQ(running.finish_of_kernel(4.0, 1.0, 0.5), 5.0);
}

struct Interval {
  double start, finish;
};

// The same integral, from one boundary of any interval to the next.
double finish_by_boundaries(const std::vector<Interval>& intervals, double start, double left,
                            double slowdown) {
  std::vector<double> boundaries;
  for (const auto& [from, to] : intervals) {
    if (from > start) boundaries.push_back(from);
    if (to > start) boundaries.push_back(to);
  }
  std::sort(boundaries.begin(), boundaries.end());
  double time = start;
  for (const double boundary : boundaries) {
    const bool beside = std::any_of(intervals.begin(), intervals.end(), [&](const Interval& each) {
      return each.start <= time && time < each.finish;
    });
    const double stretch = beside ? 1.0 + slowdown : 1.0;
    if (time + left * stretch <= boundary) return time + left * stretch;
    left -= (boundary - time) / stretch;
    time = boundary;
  }
  return time + left;
}

RC_GTEST_PROP(RunningCollectives, SolveTheIntegralForAnyStreams, ()) {
  const double slowdown = *rc::gen::element(0.0, 0.05, 0.5, 2.0);
  RunningCollectives running;
  std::vector<Interval> intervals;
  for (const Stream stream :
       {Stream::TensorParallel, Stream::GradientReduce, Stream::ParameterGather}) {
    double time = 0.0;
    for (int i = *rc::gen::inRange(0, 6); i > 0; --i) {
      const double start = time + *rc::gen::inRange(0, 5), finish = start + *rc::gen::inRange(0, 5);
      running.add(stream, start, finish);
      intervals.push_back({start, finish});
      time = finish;
    }
  }
  double time = 0.0;
  for (int kernel = 0; kernel < 8; ++kernel) {
    time += *rc::gen::inRange(0, 3);
    const double duration = *rc::gen::inRange(0, 6);
    const double finish = running.finish_of_kernel(time, duration, slowdown);
    RC_ASSERT(std::abs(finish - finish_by_boundaries(intervals, time, duration, slowdown)) < 1e-9);
    time = finish;
  }
}

Scenario with_slowdown(Scenario scenario, double slowdown) {
  scenario.stack.overlap_slowdown = slowdown;
  return scenario;
}

Seconds kernels(const TimeBreakdown& time) {
  return time.compute() + time.optimizer;
}

// Kernels take between 1 and 1 + s times as long, all else is as long as without; an event graph's
// end grows with its durations.
RC_GTEST_PROP(Interference, CostsAtMostItsShareOfTheStep, ()) {
  const Scenario scenario = any_small_scenario();
  const double slowdown = *rc::gen::element(0.02, 0.1, 0.4);
  const StepResult without = simulate_step(with_slowdown(scenario, 0.0));
  const StepResult with = simulate_step(with_slowdown(scenario, slowdown));
  constexpr double kRounding = 1e-9;
  RC_ASSERT(with.step >= without.step * (1.0 - kRounding));
  RC_ASSERT(with.step <= without.step * ((1.0 + slowdown) * (1.0 + kRounding)));
  for (std::size_t s = 0; s < with.stages.size(); ++s) {
    const TimeBreakdown& time = with.stages[s].time;
    RC_ASSERT(time.interference <= kernels(time) * (slowdown * (1.0 + kRounding)));
    RC_ASSERT(without.stages[s].time.interference == Seconds());
    RC_ASSERT(kernels(time) == kernels(without.stages[s].time));
    RC_ASSERT(std::abs(time.total() / with.step - 1.0) < kRounding);
    const StreamUse& compute = with.stages[s].streams[static_cast<std::size_t>(Stream::Compute)];
    RC_ASSERT(std::abs((compute.busy - kernels(time) - time.interference) / with.step) < kRounding);
  }
}

// One rank with no pipeline: collectives start when a kernel has ended, so all of the step grows.
TEST(Interference, GrowsWithTheSlowdown) {
  for (const int zero_stage : {1, 3}) {
    Scenario scenario;
    scenario.model = testing::small_model(false, false);
    scenario.cluster = load_cluster("dgx-h100");
    scenario.stack = load_stack(zero_stage == 3 ? "fsdp2" : "megatron-core");
    scenario.plan.dp = 16;
    scenario.plan.zero_stage = zero_stage;
    scenario.plan.global_batch = 64;
    scenario.plan.seq_len = 4096;
    Seconds previous;
    for (const double slowdown : {0.0, 0.05, 0.1, 0.2, 0.4, 0.8}) {
      const Seconds step = simulate_step(with_slowdown(scenario, slowdown)).step;
      EXPECT_GT(step, previous) << zero_stage << " " << slowdown;
      previous = step;
    }
  }
}

// Without communication there is nothing to run beside.
TEST(Interference, LeavesASingleRankAlone) {
  Scenario scenario;
  scenario.model = testing::small_model(false, false);
  scenario.cluster = load_cluster("dgx-h100");
  scenario.stack = load_stack("megatron-core");
  scenario.plan.global_batch = 4;
  scenario.plan.seq_len = 2048;
  EXPECT_EQ(simulate_step(with_slowdown(scenario, 0.5)).step,
            simulate_step(with_slowdown(scenario, 0.0)).step);
}

}  // namespace
}  // namespace shardwright::sim
