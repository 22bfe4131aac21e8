// Evaluations of the analytic level a second, on one thread and by the search's own path: rules,
// costs, memory, bound and analytic time of every plan of one cut of the layers.
#include <benchmark/benchmark.h>

#include "bench/published_requests.hpp"
#include "planner/plan_evaluation.hpp"

namespace shardwright::planner {
namespace {

void evaluate(benchmark::State& state, const PlanRequest& request) {
  const std::vector<Plan> cuts = layer_cuts(space_of(request));
  sim::ScheduleProfiles profiles;
  std::int64_t evaluated = 0;
  for ([[maybe_unused]] auto _ : state) {
    for (std::uint32_t cut = 0; cut < cuts.size(); ++cut) {
      const Evaluation evaluation = evaluate_cut(request, cuts, cut, profiles);
      evaluated += static_cast<std::int64_t>(evaluation.plans.size()) + evaluation.too_large;
    }
  }
  state.counters["evaluations_per_s"] =
      benchmark::Counter(static_cast<double>(evaluated), benchmark::Counter::kIsRate);
}

// Four fifths of these plans do not fit, which their memory shows.
void evaluate_plans(benchmark::State& state) {
  evaluate(state, gpt3_on_4096_a100());
}

// All plans fit, so that each is timed.
void evaluate_fitting_plans(benchmark::State& state) {
  PlanRequest request = gpt3_on_4096_a100();
  request.cluster.accelerator.memory = Bytes(1e15);
  evaluate(state, request);
}

BENCHMARK(evaluate_plans)->Unit(benchmark::kMillisecond);
BENCHMARK(evaluate_fitting_plans)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwright::planner
