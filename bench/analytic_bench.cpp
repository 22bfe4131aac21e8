// Evaluations of the analytic rung a second, on one thread and by the search's own path: rules,
// costs, memory, bound and analytic time of every plan of one cut of the layers.
#include <benchmark/benchmark.h>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/plan_evaluation.hpp"

namespace shardwright::planner {
namespace {

void evaluate_plans(benchmark::State& state) {
  PlanRequest request;
  request.model = load_model("gpt3-175b");
  request.cluster = load_cluster("dgx-a100");
  request.stack = load_stack("megatron-core");
  request.gpus = 4096;
  request.global_batch = 1536;
  request.seq_len = 2048;
  const std::vector<Plan> cuts = layer_cuts(space_of(request));
  sim::ScheduleProfiles profiles;
  std::int64_t evaluated = 0;
  for (auto unused : state) {
    for (std::uint32_t cut = 0; cut < cuts.size(); ++cut) {
      const Evaluation evaluation = evaluate_cut(request, cuts, cut, profiles);
      evaluated += static_cast<std::int64_t>(evaluation.plans.size()) + evaluation.too_large;
    }
  }
  state.counters["evaluations_per_s"] =
      benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
}

BENCHMARK(evaluate_plans)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwright::planner
