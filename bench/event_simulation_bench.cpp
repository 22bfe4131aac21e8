// One event simulation of a whole step, from the plan to times and memory, as the search runs it.
#include <benchmark/benchmark.h>

#include "bench/llama_405b.hpp"
#include "core/lowering/lowering.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/simulate.hpp"

namespace {

using namespace shardwright;

// The argument is the number of chunks a stage (vpp).
Scenario scenario(const benchmark::State& state) {
  return llama_405b_on_16384_gpus(state.range(0));
}

void whole_simulation(benchmark::State& state) {
  const Scenario given = scenario(state);
  double step = 0.0;
  for ([[maybe_unused]] auto _ : state) step = sim::simulate_step(given).step.value();
  state.counters["step_s"] = step;
}
BENCHMARK(whole_simulation)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

void lowering(benchmark::State& state) {
  const Scenario given = scenario(state);
  std::int64_t ops = 0;
  for ([[maybe_unused]] auto _ : state) {
    const Program program = lower(given.model, given.plan, given.stack);
    ops = 0;
    for (const RankProgram& rank : program.stages) ops += rank.ops;
  }
  state.counters["ops"] = static_cast<double>(ops);
}
BENCHMARK(lowering)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

void pricing(benchmark::State& state) {
  const Scenario given = scenario(state);
  const Program program = lower(given.model, given.plan, given.stack);
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(sim::price(program, given.cluster, given.stack));
}
BENCHMARK(pricing)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

void replay(benchmark::State& state) {
  const Scenario given = scenario(state);
  const Program program = lower(given.model, given.plan, given.stack);
  const sim::Prices prices = sim::price(program, given.cluster, given.stack);
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(sim::replay_folded(program, prices));
}
BENCHMARK(replay)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

void memory(benchmark::State& state) {
  const Scenario given = scenario(state);
  const Program program = lower(given.model, given.plan, given.stack);
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(sim::peak_memory(program, given.stack));
}
BENCHMARK(memory)->Arg(1)->Arg(8)->Unit(benchmark::kMillisecond);

}  // namespace
