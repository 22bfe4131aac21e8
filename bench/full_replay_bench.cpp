// The unfolded run of one step: every rank of 16,384 on its own.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include "bench/llama_405b.hpp"
#include "core/lowering/lowering.hpp"
#include "sim/step/full_replay.hpp"
#include "sim/step/prices.hpp"

namespace {

using namespace shardwright;

constexpr double kKibibyte = 1024.0;

double peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * kKibibyte;
}

void run(benchmark::State& state, const sim::FullOptions& options) {
  const Scenario given = llama_405b_on_16384_gpus(state.range(0));
  const Program program = lower(given.model, given.plan, given.stack);
  const sim::Prices prices = sim::price(program, given.cluster, given.stack);
  sim::FullReplay result;
  for ([[maybe_unused]] auto _ : state)
    result = sim::replay_full(program, given.cluster, prices, options);
  state.SetItemsProcessed(static_cast<std::int64_t>(result.ops) * state.iterations());
  state.counters["ops"] = static_cast<double>(result.ops);
  state.counters["step_s"] = result.step.value();
  state.counters["slowdown"] = result.slowdown();
  state.counters["peak_resident_bytes"] = peak_resident_bytes();
}

void all_alike(benchmark::State& state) {
  run(state, {});
}
BENCHMARK(all_alike)->Arg(1)->Arg(8)->Iterations(1)->Unit(benchmark::kSecond);

void jitter(benchmark::State& state) {
  sim::FullOptions options;
  options.variation.rank_jitter = 0.01;
  options.variation.op_jitter = 0.02;
  run(state, options);
}
BENCHMARK(jitter)->Arg(8)->Iterations(1)->Unit(benchmark::kSecond);

void contention(benchmark::State& state) {
  sim::FullOptions options;
  options.contention = true;
  run(state, options);
}
BENCHMARK(contention)->Arg(8)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
