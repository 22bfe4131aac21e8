// 10,000 runs of 60 days on 16,384 GPUs: the runs alone, and a whole forecast with the best
// checkpoint interval and what would help most.
#include <benchmark/benchmark.h>

#include "bench/llama_405b.hpp"
#include "planner/forecast.hpp"

namespace shardwright::planner {
namespace {

ForecastRequest sixty_days() {
  ForecastRequest request;
  request.scenario = llama_405b_on_16384_gpus(8);
  request.run = load_run("settled-fleet");
  request.tokens = 1e12;
  request.options.runs = 10'000;
  const double days =
      forecast(request, run_stages(request), {}).statistics.mean_wall().value() / kSecondsPerDay;
  request.tokens *= 60.0 / days;
  return request;
}

void simulate_runs(benchmark::State& state) {
  const ForecastRequest request = sixty_days();
  sim::RunModel model = run_model(request, run_stages(request));
  model.interval = Seconds(600);
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(sim::simulate_runs(model, request.options));
}
BENCHMARK(simulate_runs)->Unit(benchmark::kMillisecond)->UseRealTime();

void forecast_run(benchmark::State& state) {
  const ForecastRequest request = sixty_days();
  const std::vector<ForecastStage> stages = run_stages(request);
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(forecast(request, stages, {0.93, 1.2}));
}
BENCHMARK(forecast_run)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace shardwright::planner
