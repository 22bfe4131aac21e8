#include "sim/network/flow_simulation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <map>

#include "core/base/error.hpp"
#include "tests/sim/network/scenarios.hpp"

namespace shardwright::sim {
namespace {

using fixtures::Fabric;
using fixtures::HostScenario;
using fixtures::Random;

constexpr double kTight = 1e-12;

bool near(double found, double expected, double tolerance = 1e-9) {
  return std::abs(found - expected) <= tolerance * std::max(std::abs(expected), 1e-30);
}

// Link of 10 B/s and 1 s; x1 = x2 = 5 until the shorter ends: 1 + 50/5 = 11 s; the longer has then
// 50 of its 100 bytes left, alone: 11 + 50/10 = 16 s.
TEST(FlowSimulation, TwoFlowsOnOneLink) {
  FlowScenario scenario;
  const std::vector<LinkIndex> route{scenario.add_link("l", BytesPerSecond(10.0), Seconds(1.0))};
  scenario.add_flow("short", Bytes(50.0), route, Seconds(0.0));
  scenario.add_flow("long", Bytes(100.0), route, Seconds(0.0));
  const auto result = simulate_flows(scenario);
  EXPECT_NEAR(result.flows[0].finish.value(), 11.0, kTight);
  EXPECT_NEAR(result.flows[1].finish.value(), 16.0, kTight);
  EXPECT_NEAR(result.makespan.value(), 16.0, kTight);
}

// The second flow's bytes begin at 4 s when the first has 60 left; both run at 5: first ends at
// 4 + 60/5 = 16; second has 100 - 60 = 40 left at 10 B/s: 20 s.
TEST(FlowSimulation, LaterFlowTakesItsShareFromTheFirst) {
  FlowScenario scenario;
  const std::vector<LinkIndex> route{scenario.add_link("l", BytesPerSecond(10.0), Seconds(0.0))};
  scenario.add_flow("first", Bytes(100.0), route, Seconds(0.0));
  scenario.add_flow("second", Bytes(100.0), route, Seconds(4.0));
  const auto result = simulate_flows(scenario);
  EXPECT_NEAR(result.flows[0].finish.value(), 16.0, kTight);
  EXPECT_NEAR(result.flows[1].finish.value(), 20.0, kTight);
}

TEST(FlowSimulation, LatencyOfARouteIsPaidOnceAndWithoutUsingTheLink) {
  FlowScenario scenario;
  const auto a = scenario.add_link("a", BytesPerSecond(10.0), Seconds(1.0));
  const auto b = scenario.add_link("b", BytesPerSecond(20.0), Seconds(2.0));
  const std::vector<LinkIndex> route{a, b}, only_a{a};
  scenario.add_flow("over both", Bytes(100.0), route, Seconds(0.0));
  // Ends before the other's bytes begin at 3 s, so neither slows the other.
  scenario.add_flow("before", Bytes(20.0), only_a, Seconds(0.0));
  const auto result = simulate_flows(scenario);
  EXPECT_NEAR(result.flows[0].finish.value(), 13.0, kTight);
  EXPECT_NEAR(result.flows[1].finish.value(), 3.0, kTight);
}

TEST(FlowSimulation, ZeroBytesTakeTheLatencyAndAnEmptyRouteTakesNothing) {
  FlowScenario scenario;
  const std::vector<LinkIndex> route{scenario.add_link("l", BytesPerSecond(10.0), Seconds(0.5))};
  scenario.add_flow("nothing", Bytes(0.0), route, Seconds(1.0));
  scenario.add_flow("local", Bytes(1e9), {}, Seconds(2.0));
  const auto result = simulate_flows(scenario);
  EXPECT_EQ(result.flows[0], (FlowTimes{Seconds(1.0), Seconds(1.5)}));
  EXPECT_EQ(result.flows[1], (FlowTimes{Seconds(2.0), Seconds(2.0)}));
}

TEST(FlowSimulation, AfterWaitsForTheLastOfItsList) {
  FlowScenario scenario;
  const std::vector<LinkIndex> fast{scenario.add_link("f", BytesPerSecond(10.0), Seconds(0.0))};
  const std::vector<LinkIndex> slow{scenario.add_link("s", BytesPerSecond(1.0), Seconds(0.0))};
  const std::vector<FlowIndex> both{1, 2}, last{0};
  scenario.add_flow_after("third", Bytes(10.0), fast, both);  // names flows that come later
  scenario.add_flow("first", Bytes(10.0), fast, Seconds(0.0));
  scenario.add_flow("second", Bytes(10.0), slow, Seconds(0.0));
  scenario.add_flow_after("fourth", Bytes(0.0), {}, last);
  const auto result = simulate_flows(scenario);
  EXPECT_EQ(result.flows[0].start, result.flows[2].finish);
  EXPECT_NEAR(result.flows[0].finish.value(), 11.0, kTight);
  EXPECT_EQ(result.flows[3].finish, result.flows[0].finish);
}

TEST(FlowSimulation, FlowsThatWaitForEachOtherAreAnError) {
  FlowScenario scenario;
  const std::vector<FlowIndex> on_second{1}, on_first{0};
  scenario.add_flow_after("first", Bytes(1.0), {}, on_second);
  scenario.add_flow_after("second", Bytes(1.0), {}, on_first);
  EXPECT_EQ(find_dependency_cycle(scenario).size(), 2U);
  EXPECT_THROW(simulate_flows(scenario), InputError);
}

TEST(FlowSimulation, LongChainOfEmptyFlowsNeedsNoStack) {
  FlowScenario scenario;
  scenario.add_flow("0", Bytes(0.0), {}, Seconds(1.0));
  for (FlowIndex i = 0; i < 200'000; ++i)
    scenario.add_flow_after("", Bytes(0.0), {}, std::vector<FlowIndex>{i});
  EXPECT_EQ(simulate_flows(scenario).makespan, Seconds(1.0));
  EXPECT_TRUE(find_dependency_cycle(scenario).empty());
}

// Ring all-reduce of S bytes over n hosts of bandwidth B: 2(n-1) steps, each S/(n B) and the
// latency of a hop (Patarasuk and Yuan 2009; the 2(n-1)/n of NCCL's bus bandwidth).
TEST(FlowSimulation, RingAllReduceTakesItsClosedForm) {
  for (const std::uint32_t n : {2U, 3U, 8U, 64U}) {
    const auto scenario = fixtures::ring_all_reduce("ring", Fabric::star(n), Bytes(64e6));
    const double hop_latency = 2e-6, bandwidth = 50e9;
    const double expected = 2.0 * (n - 1) / n * 64e6 / bandwidth + 2.0 * (n - 1) * hop_latency;
    EXPECT_NEAR(simulate_flows(scenario.flows).makespan.value(), expected, 1e-9 * expected);
  }
}

// Equal sizes keep every host link full to the end: (n-1) S / B after the latency.
TEST(FlowSimulation, EqualAllToAllTakesItsClosedForm) {
  const auto scenario = fixtures::all_to_all("all", Fabric::star(32), Bytes(1e6), true);
  const auto result = simulate_flows(scenario.flows);
  for (const FlowTimes& times : result.flows)
    ASSERT_NEAR(times.finish.value(), 2e-6 + 31 * 1e6 / 50e9, 1e-15);
}

// Replays the result: between neighbouring moments of change no link may carry more than its
// capacity, were every flow to move its bytes at the reference's rates.
std::vector<double> replayed_bytes(const FlowScenario& scenario, const FlowResult& result) {
  std::map<double, int> moments;
  const auto latency = [&](FlowIndex flow) {
    Seconds sum;
    for (const LinkIndex link : scenario.route(flow)) sum += scenario.links()[link].latency;
    return sum.value();
  };
  const auto flows = static_cast<FlowIndex>(scenario.flow_count());
  for (FlowIndex flow = 0; flow < flows; ++flow) {
    moments[result.flows[flow].start.value() + latency(flow)];
    moments[result.flows[flow].finish.value()];
  }
  std::vector<double> moved(flows, 0.0);
  for (auto now = moments.begin(); now != moments.end() && std::next(now) != moments.end(); ++now) {
    const double begin = now->first, end = std::next(now)->first, middle = (begin + end) / 2;
    MaxMinProblem problem;
    for (const ScenarioLink& link : scenario.links()) problem.capacities.push_back(link.bandwidth);
    std::vector<FlowIndex> moving;
    for (FlowIndex flow = 0; flow < flows; ++flow) {
      const FlowTimes& times = result.flows[flow];
      if (times.start.value() + latency(flow) > middle || times.finish.value() < middle) continue;
      const auto route = scenario.route(flow);
      problem.flows.push_back({{route.begin(), route.end()}, {}});
      moving.push_back(flow);
    }
    const auto rates = max_min_rates(problem);
    for (std::size_t i = 0; i < moving.size(); ++i)
      moved[moving[i]] += rates[i].value() * (end - begin);
  }
  return moved;
}

HostScenario any_scenario(Random& random, bool dense = false) {
  const auto seed = random();
  const std::uint32_t flows = dense ? 120 : 30;
  const Seconds span = milliseconds(dense ? 0.5 : 1.0);
  switch (random() % 4) {
    case 0:
      return fixtures::random_starts("star", Fabric::star(6), flows, span, seed);
    case 1:
      return fixtures::random_starts("leaf-spine", Fabric::leaf_spine(3, 3, 2, 3.0), flows, span,
                                     seed);
    case 2:
      return fixtures::random_chains("fat tree", Fabric::fat_tree(4), dense ? 60 : 8, dense ? 2 : 4,
                                     seed);
    default:
      return fixtures::all_to_all("all", dense ? Fabric::star(9) : Fabric::leaf_spine(2, 3, 1, 2.0),
                                  Bytes(1e6), !dense && seed % 2 == 0, seed);
  }
}

// The rates that the reference gives for the flows in the air move exactly the bytes asked for.
RC_GTEST_PROP(FlowSimulation, EveryFlowMovesItsBytesAtMaxMinFairRates, (std::uint32_t seed)) {
  Random random(seed);
  const auto scenario = any_scenario(random);
  const auto moved = replayed_bytes(scenario.flows, simulate_flows(scenario.flows));
  for (FlowIndex flow = 0; flow < moved.size(); ++flow)
    RC_ASSERT(near(moved[flow], scenario.flows.bytes(flow).value(), 1e-6));
}

// The same simulation without anything clever: all rates anew at each event.
class PlainSimulation {
 public:
  explicit PlainSimulation(const FlowScenario& scenario)
      : scenario_(scenario), flows_(scenario.flow_count()) {
    for (const ScenarioLink& link : scenario.links()) capacities_.push_back(link.bandwidth);
    for (FlowIndex flow = 0; flow < flows_.size(); ++flow) {
      flows_[flow].left = scenario.bytes(flow).value();
      start_if_ready(flow);
    }
  }

  std::vector<double> finish_times() {
    while (step()) {
    }
    std::vector<double> times;
    for (const Flow& flow : flows_) times.push_back(flow.finish);
    return times;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();
  struct Flow {
    double arrival = kNever, finish = kNever;
    double left = 0.0, rate = 0.0;
    bool done = false;
  };

  void start_if_ready(FlowIndex index) {
    double start = scenario_.start(index).value();
    for (const FlowIndex other : scenario_.after(index)) {
      if (!flows_[other].done) return;
      start = std::max(start, flows_[other].finish);
    }
    double latency = 0.0;
    for (const LinkIndex link : scenario_.route(index))
      latency += scenario_.links()[link].latency.value();
    flows_[index].arrival = start + latency;
  }

  bool is_moving(const Flow& flow) const { return flow.arrival <= now_ && !flow.done; }

  void share() {
    MaxMinProblem problem{capacities_, {}};
    std::vector<Flow*> moving;
    for (FlowIndex index = 0; index < flows_.size(); ++index) {
      if (!is_moving(flows_[index])) continue;
      const auto route = scenario_.route(index);
      problem.flows.push_back({{route.begin(), route.end()}, {}});
      moving.push_back(&flows_[index]);
    }
    const auto rates = max_min_rates(problem);
    for (std::size_t i = 0; i < moving.size(); ++i) moving[i]->rate = rates[i].value();
  }

  // Goes on to the next arrival or finish; false if there is none.
  bool step() {
    share();
    double next = kNever;
    for (const Flow& flow : flows_) {
      if (flow.done) continue;
      next = std::min(next, is_moving(flow) ? now_ + flow.left / flow.rate : flow.arrival);
    }
    if (next == kNever) return false;
    std::vector<FlowIndex> finished;
    for (FlowIndex index = 0; index < flows_.size(); ++index) {
      Flow& flow = flows_[index];
      if (!is_moving(flow)) continue;
      flow.left -= flow.rate * (next - now_);
      if (flow.left <= flow.rate * next * 1e-12) finished.push_back(index);
    }
    now_ = next;
    for (const FlowIndex index : finished) {
      flows_[index].done = true;
      flows_[index].finish = now_;
    }
    if (finished.empty()) return true;
    for (FlowIndex index = 0; index < flows_.size(); ++index) {
      if (flows_[index].arrival == kNever) start_if_ready(index);
    }
    return true;
  }

  const FlowScenario& scenario_;
  std::vector<BytesPerSecond> capacities_;
  std::vector<Flow> flows_;
  double now_ = 0.0;
};

RC_GTEST_PROP(FlowSimulation, FinishTimesEqualThoseOfThePlainSimulation, (std::uint32_t seed)) {
  Random random(seed);
  const bool dense = random() % 2 == 0;
  const auto scenario = any_scenario(random, dense);
  const auto expected = PlainSimulation(scenario.flows).finish_times();
  const auto result = simulate_flows(scenario.flows);
  for (FlowIndex flow = 0; flow < expected.size(); ++flow)
    RC_ASSERT(near(result.flows[flow].finish.value(), expected[flow]));
}

FlowScenario scaled(const FlowScenario& scenario, double factor) {
  FlowScenario result;
  for (const ScenarioLink& link : scenario.links())
    result.add_link(link.id, link.bandwidth * factor, link.latency / factor);
  for (FlowIndex flow = 0; flow < scenario.flow_count(); ++flow) {
    if (scenario.after(flow).empty()) {
      result.add_flow("", scenario.bytes(flow), scenario.route(flow),
                      scenario.start(flow) / factor);
    } else {
      result.add_flow_after("", scenario.bytes(flow), scenario.route(flow), scenario.after(flow));
    }
  }
  return result;
}

// Capacities times k, latencies and starts over k: all times over k.
RC_GTEST_PROP(FlowSimulation, ScalingAllRatesScalesAllTimes, (std::uint32_t seed)) {
  Random random(seed);
  const auto scenario = any_scenario(random).flows;
  const double factor = std::uniform_real_distribution<double>(0.01, 100.0)(random);
  const auto result = simulate_flows(scenario);
  const auto faster = simulate_flows(scaled(scenario, factor));
  for (std::size_t i = 0; i < result.flows.size(); ++i)
    RC_ASSERT(near(faster.flows[i].finish.value() * factor, result.flows[i].finish.value()));
}

TEST(FlowSimulation, SameScenarioGivesTheSameTimesToTheBit) {
  Random random(7);
  const auto scenario = any_scenario(random);
  EXPECT_EQ(simulate_flows(scenario.flows).flows, simulate_flows(scenario.flows).flows);
}

}  // namespace
}  // namespace shardwright::sim
