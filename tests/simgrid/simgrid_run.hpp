// The same scenario in SimGrid (https://simgrid.org), as an independent answer to compare with.
#pragma once

#include <vector>

#include "sim/network/flow_simulation.hpp"
#include "tests/sim/network/scenarios.hpp"

namespace shardwright::sim::fixtures {

// The rates that SimGrid updates at each change: all of them, or those that it affects. Both give
// the same times.
enum class SimGridUpdate { Full, Lazy };

struct SimGridRun {
  std::vector<FlowTimes> flows;
  // The CPU time of the simulation itself, without building the platform and the flows.
  double cpu_s = 0.0;
};

// SimGrid has one engine a process, so each run is a child process that sends its answer back.
// Throws RuntimeFailure if the child fails.
SimGridRun run_in_simgrid(const HostScenario& scenario, SimGridUpdate update = SimGridUpdate::Full);

}  // namespace shardwright::sim::fixtures
