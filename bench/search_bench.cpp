// The whole space of each request, on two threads.
#include <benchmark/benchmark.h>

#include "bench/published_requests.hpp"

namespace shardwright::planner {
namespace {

void search_whole_space(benchmark::State& state, PlanRequest request) {
  request.threads = 2;
  for ([[maybe_unused]] auto _ : state) {
    const SearchResult result = search(request);
    state.counters["space"] = static_cast<double>(result.counts.space);
    state.counters["evaluated"] = static_cast<double>(result.counts.evaluated);
    state.counters["simulated"] = static_cast<double>(result.counts.simulated);
  }
}

void search_gpt3_on_4096_a100(benchmark::State& state) {
  search_whole_space(state, gpt3_on_4096_a100());
}

void search_llama_405b_on_16384_h100(benchmark::State& state) {
  search_whole_space(state, llama_405b_on_16384_h100());
}

void search_llama_70b_on_512_h100(benchmark::State& state) {
  search_whole_space(state, llama_70b_on_512_h100());
}

BENCHMARK(search_gpt3_on_4096_a100)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(search_llama_405b_on_16384_h100)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(search_llama_70b_on_512_h100)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shardwright::planner
