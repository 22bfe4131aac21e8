#include "sim/step/fidelity.hpp"

#include <algorithm>
#include <utility>

#include "core/program/rank_grid.hpp"
#include "core/spec/pools.hpp"
#include "sim/step/analytic.hpp"

namespace shardwright::sim {
namespace {

void set_step(SimulatedStep& simulated, Seconds step) {
  const double faster = simulated.result.step / step;
  Throughput& rates = simulated.result.throughput;
  for (double* rate : {&rates.tokens_per_s_per_gpu, &rates.tflops_per_gpu, &rates.mfu, &rates.hfu})
    *rate *= faster;
  simulated.result.step = step;
}

double factor_of(std::int64_t rank, const RankVariation& variation) {
  return rank_factor(variation, static_cast<std::uint32_t>(rank));
}

// The number within its stage of the rank whose kernels take longest, of equals the first.
std::int64_t slowest_index(const RankGrid& grid, const RankVariation& variation) {
  std::int64_t slowest = 0;
  for (std::int64_t rank = 1; rank < grid.world_size(); ++rank) {
    if (factor_of(rank, variation) > factor_of(slowest, variation)) slowest = rank;
  }
  return grid.locate(slowest).index;
}

// The rank of each stage whose kernels take longest, of equals the one in the pipeline of the
// slowest of all, whose messages it exchanges.
std::vector<std::int64_t> slowest_of_stages(const Plan& plan, const RankVariation& variation) {
  const RankGrid grid(plan);
  const std::int64_t preferred = slowest_index(grid, variation);
  std::vector<std::int64_t> slowest;
  for (std::int64_t stage = 0; stage < count_stages(plan); ++stage) {
    const std::int64_t ranks = grid.stage_size(stage);
    slowest.push_back(grid.rank_at({stage, std::min(preferred, ranks - 1)}));
    for (std::int64_t index = 0; index < ranks; ++index) {
      const std::int64_t rank = grid.rank_at({stage, index});
      if (factor_of(rank, variation) > factor_of(slowest.back(), variation)) slowest.back() = rank;
    }
  }
  return slowest;
}

FullOptions watching_stages(FullOptions options, const Plan& plan) {
  std::vector<std::int64_t> watched = slowest_of_stages(plan, options.variation);
  for (const std::int64_t rank : options.watched_ranks) {
    if (std::find(watched.begin(), watched.end(), rank) == watched.end()) watched.push_back(rank);
  }
  options.watched_ranks = std::move(watched);
  return options;
}

void take_stages(const FullReplay& replay, StepResult& result) {
  for (std::size_t s = 0; s < result.stages.size(); ++s) {
    StageResult& stage = result.stages[s];
    const WatchedRank& watched = replay.watched[s];
    const RankUse& use = replay.ranks[static_cast<std::size_t>(watched.rank)];
    stage.time = watched.time;
    stage.streams = stream_uses(use.busy, replay.step);
  }
}

// Adds the wait for servers to the step that each rank makes by itself.
void wait_until(Seconds end, StepResult& result) {
  for (StageResult& stage : result.stages)
    stage.time.exposed[Axis::Data] += end - stage.time.total();
}

void take_full_replay(const Scenario& scenario, const PricedStep& step, const FullOptions& options,
                      SimulatedStep& result) {
  const FullOptions watching = watching_stages(options, scenario.plan);
  FullReplay replay =
      options.variation.rank_jitter > 0.0
          ? replay_full(step.program, scenario.cluster,
                        prices_of_alike_ranks(scenario, step.program), watching)
          : replay_full(step.program, scenario.cluster, step.prices, watching, &result.event);
  result.cancelled = replay.cancelled;
  // A part of a step says nothing about the whole.
  if (replay.cancelled) {
    result.fidelity = Fidelity::Event;
    return;
  }
  take_stages(replay, result.result);
  if (result.served) {
    result.served = serve(scenario, *result.servers, result.event.step, options.variation,
                          step.program.stages.front().ops);
    wait_until(std::max(replay.step, result.served->step), result.result);
  }
  set_step(result, result.served ? result.served->step : replay.step);
  set_bottleneck(step.program, step.prices, result.result);
  result.full = std::move(replay);
}

}  // namespace

Prices prices_of_alike_ranks(const Scenario& scenario, const Program& program) {
  ClusterSpec cluster = scenario.cluster;
  cluster.accelerator.speed_variation = 0.0;
  for (PoolSpec& pool : cluster.pools) pool.accelerator.speed_variation = 0.0;
  return price(program, cluster, scenario.stack);
}

SimulatedStep simulate_at(const Scenario& scenario, Fidelity fidelity, const FullOptions& options) {
  return simulate_at(scenario, lower_and_price(scenario), fidelity, options, false);
}

SimulatedStep simulate_at(const Scenario& scenario, const PricedStep& step, Fidelity fidelity,
                          const FullOptions& options, bool keep_finish_times) {
  const bool is_full = fidelity == Fidelity::Full;
  if (is_full) {
    check_variation(options.variation, scenario.plan.world_size());
    check_replay_memory(step.program);
  }
  SimulatedStep result;
  result.fidelity = fidelity;
  result.event =
      replay_folded(step.program, step.prices, {.keep_finish_times = keep_finish_times || is_full});
  result.result = step_result(scenario, step.program, step.prices, result.event);
  result.event_step = result.result.step;
  if (scenario.plan.replicas.has_servers())
    result.servers = server_use(served_parameters_of(step.program), scenario);
  if (scenario.plan.replicas.stale())
    result.served =
        serve(scenario, *result.servers, result.event.step, {}, step.program.stages.front().ops);
  if (is_full) {
    take_full_replay(scenario, step, options, result);
  } else if (fidelity != Fidelity::Event) {
    const StepEstimate estimate = estimate_step(scenario);
    set_step(result, fidelity == Fidelity::Bound ? estimate.bound : estimate.analytic);
  }
  return result;
}

}  // namespace shardwright::sim
