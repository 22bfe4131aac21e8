// The same flow scenarios through Shardwright and through SimGrid in one run: prints flows a second
// of each and the ratio, by the processor time of one thread, which other work on the machine does
// not change much. That of SimGrid is its engine's run alone; ours holds the preparation of the
// simulation too.
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <string_view>

#include "tests/simgrid/simgrid_run.hpp"

namespace {

using namespace shardwright;
using namespace shardwright::sim::fixtures;

constexpr int kRepetitions = 3;

double our_cpu_s(const HostScenario& scenario) {
  double best = infinite<Seconds>().value();
  for (int i = 0; i < kRepetitions; ++i) {
    const std::clock_t begin = std::clock();
    const auto result = sim::simulate_flows(scenario.flows);
    best = std::min(best, static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
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
  const double ours = our_cpu_s(scenario);
  const auto full = run_in_simgrid(scenario, SimGridUpdate::Full);
  const auto lazy = run_in_simgrid(scenario, SimGridUpdate::Lazy);
  const auto flows = static_cast<double>(scenario.flows.flow_count());
  fmt::print("{:<44} {:>8.0f} {:>12.0f} {:>12.0f} {:>12.0f} {:>8.1f} {:>8.1f} {:>10.1e}\n",
             scenario.name, flows, flows / ours, flows / full.cpu_s, flows / lazy.cpu_s,
             full.cpu_s / ours, lazy.cpu_s / ours, worst_difference(scenario, full));
  std::fflush(stdout);
}

// The scenarios of thousands of flows and more.
std::vector<HostScenario> scenarios() {
  const Seconds span = milliseconds(20.0);
  const Bytes megabyte(1e6), gigabyte(1e9);
  std::vector<HostScenario> all;
  const auto add = [&](HostScenario scenario) { all.push_back(std::move(scenario)); };
  const auto spread = [&](std::string name, const Fabric& fabric, std::uint32_t flows,
                          Seconds within) {
    add(random_starts(std::move(name), fabric, flows, within, 1));
  };
  add(random_chains("fat tree k=8, 180 in the air", Fabric::fat_tree(8), 180, 6, 1));
  add(random_chains("fat tree k=8, 180 in the air", Fabric::fat_tree(8), 180, 60, 1));
  add(random_chains("fat tree k=8, 1,000 in the air", Fabric::fat_tree(8), 1000, 3, 1));
  add(random_chains("fat tree k=8, 1,000 in the air", Fabric::fat_tree(8), 1000, 10, 1));
  add(random_chains("fat tree k=8, 4,000 in the air", Fabric::fat_tree(8), 4000, 3, 1));
  spread("fat tree k=8, random starts", Fabric::fat_tree(8), 10'000, span);
  spread("leaf-spine 2:1, random starts", Fabric::leaf_spine(8, 8, 4, 2.0), 2000, span);
  spread("leaf-spine 2:1, random starts", Fabric::leaf_spine(8, 8, 4, 2.0), 10'000, span);
  spread("leaf-spine 4:1, random starts", Fabric::leaf_spine(8, 8, 4, 4.0), 10'000, span);
  spread("star of 64, random starts", Fabric::star(64), 2000, span);
  spread("star of 64, hundreds in the air", Fabric::star(64), 10'000, 4.0 * span);
  spread("star of 64, thousands in the air", Fabric::star(64), 10'000, span);
  spread("star of 256, hundreds in the air", Fabric::star(256), 20'000, 3.0 * span);
  spread("star of 256, thousands in the air", Fabric::star(256), 10'000, 0.25 * span);
  add(ring_all_reduce("ring all-reduce, 32 hosts", Fabric::star(32), gigabyte));
  add(ring_all_reduce("ring all-reduce, 128 hosts", Fabric::star(128), gigabyte));
  add(ring_all_reduce("unequal ring all-reduce, 128 hosts", Fabric::star(128), gigabyte, false));
  add(all_to_all("all-to-all, 48 hosts", Fabric::star(48), megabyte, true));
  add(all_to_all("all-to-all, 128 hosts", Fabric::star(128), megabyte, true));
  add(all_to_all("unequal all-to-all, 48 hosts, leaf-spine 2:1", Fabric::leaf_spine(6, 8, 4, 2.0),
                 megabyte, false));
  add(all_to_all("unequal all-to-all, 128 hosts", Fabric::star(128), megabyte, false));
  return all;
}

}  // namespace

// Runs, given a word, only the scenarios that have it in their name.
int main(int count, char** arguments) {
  const std::string_view wanted = count > 1 ? arguments[1] : "";
  fmt::print("{:<44} {:>8} {:>12} {:>12} {:>12} {:>8} {:>8} {:>10}\n", "scenario", "flows",
             "ours, 1/s", "SimGrid full", "SimGrid lazy", "x full", "x lazy", "difference");
  for (const HostScenario& scenario : scenarios()) {
    if (scenario.name.find(wanted) != std::string::npos) compare(scenario);
  }
  return 0;
}
