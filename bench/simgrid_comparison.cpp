// The same flow scenarios through Shardwright and through SimGrid in one run: prints flows a second
// of each and the ratio. The wall time of SimGrid is that of its engine's run alone; ours holds the
// preparation of the simulation too.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "tests/simgrid/simgrid_run.hpp"

namespace {

using namespace shardwright;
using namespace shardwright::sim::testing;

constexpr int kRepetitions = 3;

double our_wall_s(const HostScenario& scenario) {
  double best = infinite<Seconds>().value();
  for (int i = 0; i < kRepetitions; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto result = sim::simulate_flows(scenario.flows);
    const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
    best = std::min(best, wall.count());
  }
  return best;
}

double worst_difference(const HostScenario& scenario, const SimGridRun& theirs) {
  const auto ours = sim::simulate_flows(scenario.flows);
  double worst = 0.0;
  for (std::size_t i = 0; i < ours.flows.size(); ++i) {
    const double expected = theirs.flows[i].finish.value();
    worst = std::max(worst, std::abs(ours.flows[i].finish.value() - expected) / expected);
  }
  return worst;
}

void compare(const HostScenario& scenario) {
  const double ours = our_wall_s(scenario);
  const auto full = run_in_simgrid(scenario, SimGridUpdate::Full);
  const auto lazy = run_in_simgrid(scenario, SimGridUpdate::Lazy);
  const auto flows = static_cast<double>(scenario.flows.flow_count());
  fmt::print("{:<44} {:>8.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>8.1f} {:>8.1f} {:>10.1e}\n",
             scenario.name, flows, flows / ours, flows / full.wall_s, flows / lazy.wall_s,
             full.wall_s / ours, lazy.wall_s / ours, worst_difference(scenario, full));
  std::fflush(stdout);
}

}  // namespace

int main() {
  fmt::print("{:<44} {:>8} {:>12} {:>12} {:>12} {:>8} {:>8} {:>10}\n", "scenario", "flows",
             "ours, 1/s", "SimGrid full", "SimGrid lazy", "x full", "x lazy", "difference");
  compare(random_chains("fat tree k=8, 180 in the air", Fabric::fat_tree(8), 180, 6, 1));
  compare(random_chains("fat tree k=8, 180 in the air", Fabric::fat_tree(8), 180, 60, 1));
  compare(random_chains("fat tree k=8, 1,000 in the air", Fabric::fat_tree(8), 1000, 3, 1));
  compare(random_starts("leaf-spine 2:1, random starts", Fabric::leaf_spine(8, 8, 4, 2.0), 2000,
                        milliseconds(20.0), 1));
  compare(
      random_starts("star of 64, random starts", Fabric::star(64), 2000, milliseconds(20.0), 1));
  compare(random_starts("star of 64, thousands in the air", Fabric::star(64), 10'000,
                        milliseconds(20.0), 1));
  compare(ring_all_reduce("ring all-reduce, 32 hosts", Fabric::star(32), Bytes(1e9)));
  compare(ring_all_reduce("ring all-reduce, 128 hosts", Fabric::star(128), Bytes(1e9)));
  compare(all_to_all("all-to-all, 48 hosts", Fabric::star(48), Bytes(1e6), true));
  compare(all_to_all("all-to-all, 128 hosts", Fabric::star(128), Bytes(1e6), true));
  compare(all_to_all("unequal all-to-all, 48 hosts, leaf-spine 2:1",
                     Fabric::leaf_spine(6, 8, 4, 2.0), Bytes(1e6), false));
  return 0;
}
