// The whole space of two published trainings, on two threads.
#include <benchmark/benchmark.h>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/search.hpp"

namespace shardwright::planner {
namespace {

void search_whole_space(benchmark::State& state, const PlanRequest& request) {
  for (auto unused : state) {
    const SearchResult result = search(request);
    state.counters["space"] = static_cast<double>(result.counts.space);
    state.counters["evaluated"] = static_cast<double>(result.counts.evaluated);
    state.counters["simulated"] = static_cast<double>(result.counts.simulated);
  }
}

void search_gpt3_on_4096_a100(benchmark::State& state) {
  PlanRequest request;
  request.model = load_model("gpt3-175b");
  request.cluster = load_cluster("dgx-a100");
  request.stack = load_stack("megatron-core");
  request.gpus = 4096;
  request.global_batch = 1536;
  request.seq_len = 2048;
  request.threads = 2;
  search_whole_space(state, request);
}

void search_llama_405b_on_16384_h100(benchmark::State& state) {
  PlanRequest request;
  request.model = load_model("llama3.1-405b");
  request.cluster = load_cluster("grand-teton-h100-roce");
  request.stack = load_stack("megatron-core");
  request.gpus = 16384;
  request.global_batch = 2048;
  request.seq_len = 8192;
  request.threads = 2;
  search_whole_space(state, request);
}

BENCHMARK(search_gpt3_on_4096_a100)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK(search_llama_405b_on_16384_h100)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shardwright::planner
