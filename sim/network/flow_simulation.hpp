// Simulates flows over links that they share max-min fairly.
//
// A flow of b bytes over route R that starts at time s first pays the latency of its route once and
// then moves its bytes at the rate x(t) that the sharing gives it:
//
//   finish = T  with  integral from s + sum of latencies over R to T of x(t) dt = b.
//
// Rates change only when a flow's bytes begin or end to move; between two such moments they are
// constant (see flow_network.hpp for what they are). A flow of zero bytes finishes after the
// latency, a flow without links at once.
//
// Per path (the flows of one route) the simulation knows the bytes that each of its flows was
// served; a flow ends when the path has served what it had on the flow's arrival plus the flow's
// bytes. The paths that one link holds back are counted on one clock (bottleneck_clocks.hpp). So a
// change of rates touches one number and one predicted finish a bottleneck, however many paths and
// flows it has. Events within a relative 1e-12 of each other count as simultaneous and are solved
// for once. Deterministic; runs in threads side by side.
//
// Assumptions: fluid flows and fixed routes; packets, queues, losses and congestion control are
// beneath its resolution. Good for messages that are long against bandwidth times latency.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/units.hpp"
#include "sim/network/flow_scenario.hpp"

namespace shardwright::sim {

struct FlowTimes {
  Seconds start;
  Seconds finish;

  bool operator==(const FlowTimes&) const = default;
};

struct FlowResult {
  // Times in the order of the scenario.
  std::vector<FlowTimes> flows;
  // The last finish; zero without flows.
  Seconds makespan;
  // The number of events that the simulation handled.
  std::uint64_t events = 0;
};

// Throws InputError if flows wait for each other in a circle.
FlowResult simulate_flows(const FlowScenario& scenario);

}  // namespace shardwright::sim
