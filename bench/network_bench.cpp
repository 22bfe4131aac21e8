// Flows a second of the flow-level network. One item is one flow from start to finish, the
// preparation of the simulation included.
#include <benchmark/benchmark.h>

#include "sim/network/flow_simulation.hpp"
#include "tests/sim/network/scenarios.hpp"

namespace {

using namespace shardwright;
using sim::fixtures::Fabric;
using sim::fixtures::HostScenario;

void simulate(benchmark::State& state, const HostScenario& scenario) {
  for ([[maybe_unused]] auto _ : state) {
    auto result = sim::simulate_flows(scenario.flows);
    benchmark::DoNotOptimize(result);
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(scenario.flows.flow_count()));
}

void fat_tree_with_180_flows_in_the_air(benchmark::State& state) {
  simulate(state, sim::fixtures::random_chains("", Fabric::fat_tree(8), 180, 60, 1));
}
BENCHMARK(fat_tree_with_180_flows_in_the_air)->Unit(benchmark::kMillisecond);

void fat_tree_with_1000_flows_in_the_air(benchmark::State& state) {
  simulate(state, sim::fixtures::random_chains("", Fabric::fat_tree(8), 1000, 10, 1));
}
BENCHMARK(fat_tree_with_1000_flows_in_the_air)->Unit(benchmark::kMillisecond);

void ring_of_256_hosts(benchmark::State& state) {
  simulate(state, sim::fixtures::ring_all_reduce("", Fabric::star(256), Bytes(1e9)));
}
BENCHMARK(ring_of_256_hosts)->Unit(benchmark::kMillisecond);

void all_to_all_of_128_hosts(benchmark::State& state) {
  simulate(state, sim::fixtures::all_to_all("", Fabric::star(128), Bytes(1e6), true));
}
BENCHMARK(all_to_all_of_128_hosts)->Unit(benchmark::kMillisecond);

void unequal_all_to_all_of_64_hosts(benchmark::State& state) {
  simulate(state,
           sim::fixtures::all_to_all("", Fabric::leaf_spine(8, 8, 4, 2.0), Bytes(1e6), false));
}
BENCHMARK(unequal_all_to_all_of_64_hosts)->Unit(benchmark::kMillisecond);

}  // namespace
