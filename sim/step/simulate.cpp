#include "sim/step/simulate.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "core/spec/pools.hpp"
#include "sim/memory/memory_replay.hpp"
#include "sim/step/server_use.hpp"

namespace shardwright::sim {
namespace {

// The memory of an accelerator of each stage.
std::vector<Bytes> capacities(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  std::vector<Bytes> memory(static_cast<std::size_t>(count_stages(plan)),
                            scenario.cluster.accelerator.memory);
  if (!names_pools(plan)) return memory;
  const std::vector<ClusterSpec> pools = pool_clusters(scenario.cluster, plan);
  for (std::size_t stage = 0; stage < memory.size(); ++stage)
    memory[stage] = pools[static_cast<std::size_t>(pool_of_stage(plan, stage))].accelerator.memory;
  return memory;
}

// The stage that leaves the least memory free.
std::int32_t fullest_stage(const Scenario& scenario, const std::vector<StageResult>& stages) {
  const std::vector<Bytes> memory = capacities(scenario);
  std::size_t fullest = 0;
  for (std::size_t stage = 1; stage < stages.size(); ++stage) {
    if (stages[stage].memory.peak - memory[stage] > stages[fullest].memory.peak - memory[fullest])
      fullest = stage;
  }
  return static_cast<std::int32_t>(fullest);
}

Throughput throughput(const Scenario& scenario, const Program& program, Seconds step) {
  const Plan& plan = scenario.plan;
  const auto gpus = static_cast<double>(plan.world_size());
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  const double peak = mean_peak(scenario.cluster, plan).value();
  const double per_gpu = model_flop_per_step(scenario.model, plan).value() / gpus / step.value();
  Throughput rates;
  rates.tokens_per_s_per_gpu = tokens / gpus / step.value();
  rates.tflops_per_gpu = per_gpu / 1e12;
  rates.mfu = per_gpu / peak;
  rates.hfu = hardware_flop_per_step(program).value() / gpus / step.value() / peak;
  return rates;
}

template <class Less>
std::int32_t best_stage(const std::vector<StageResult>& stages, Less less) {
  return static_cast<std::int32_t>(std::max_element(stages.begin(), stages.end(), less) -
                                   stages.begin());
}

BasisTimes basis_of(const RankProgram& rank, const Prices& prices) {
  BasisTimes times;
  if (prices.basis.empty()) return times;
  for (const Call& call : rank.calls) times += prices.basis[call.block];
  return times;
}

Flop flop_of(const Block& block) {
  Flop sum;
  for (const Op& op : block.ops) sum += model_flop(op.work);
  return sum;
}

// Where replicas push without an agreement, servers that are busy all the time make them wait.
void wait_for_servers(const Scenario& scenario, const Program& program, StepResult& result) {
  if (!scenario.plan.replicas.stale()) return;
  const Seconds served =
      served_step(served_parameters_of(program), scenario.plan, scenario.cluster, scenario.stack);
  if (served <= result.step) return;
  for (StageResult& stage : result.stages) {
    stage.time.exposed[Axis::Data] += served - result.step;
    for (StreamUse& use : stage.streams) use.idle += served - result.step;
  }
  result.step = served;
}

// Adds the periods that were left out to a replay of the rest.
void lengthen(FoldedReplay& replay, double periods) {
  const PeriodTimes& period = *replay.period;
  replay.step += period.step * periods;
  for (std::size_t s = 0; s < replay.time.size(); ++s) {
    replay.time[s].add(period.time[s], periods);
    for (std::size_t i = 0; i < replay.busy[s].size(); ++i)
      replay.busy[s][i] += period.busy[s][i] * periods;
  }
}

// The calls of a stage's period.
std::span<const Call> calls_of(const RankProgram& rank, const StagePeriod& period) {
  return std::span(rank.calls).subspan(period.first, period.calls());
}

// Counts the calls that were left out: in what the kernels computed, and in the basis of their
// prices.
void count_repeated(const Scenario& scenario, const ShortStep& step, const Prices& prices,
                    StepResult& result) {
  double flop = 0.0;
  for (std::size_t s = 0; s < step.periods.size(); ++s) {
    for (const Call& call : calls_of(step.program.stages[s], step.periods[s]))
      flop += flop_of(step.program.blocks[call.block]).value();
  }
  const Plan& plan = scenario.plan;
  const double peak = mean_peak(scenario.cluster, plan).value();
  result.throughput.hfu +=
      flop * step.left_out / static_cast<double>(plan.pp) / result.step.value() / peak;
  const auto bottleneck = static_cast<std::size_t>(result.bottleneck);
  if (prices.basis.empty()) return;
  BasisTimes period;
  for (const Call& call : calls_of(step.program.stages[bottleneck], step.periods[bottleneck]))
    period += prices.basis[call.block];
  result.basis.measured += period.measured * step.left_out;
  result.basis.formula += period.formula * step.left_out;
  result.basis.extrapolated += period.extrapolated * step.left_out;
}

}  // namespace

PricedStep lower_and_price(const Scenario& scenario) {
  PricedStep step{lower(scenario.model, scenario.plan, scenario.stack), {}};
  step.prices = price(step.program, scenario.cluster, scenario.stack);
  return step;
}

StepResult step_result(const Scenario& scenario, const Program& program, const Prices& prices,
                       const FoldedReplay& replay) {
  SHARDWRIGHT_CHECK(!replay.deadlocked, "stages wait for each other in a circle");
  const std::vector<MemoryPeak> memory = peak_memory(program, scenario.stack);
  StepResult result;
  result.step = replay.step;
  for (std::size_t s = 0; s < program.stages.size(); ++s) {
    StageResult& stage = result.stages.emplace_back();
    stage.time = replay.time[s];
    stage.memory = memory[s];
    stage.streams = stream_uses(replay.busy[s], replay.step);
  }
  wait_for_servers(scenario, program, result);
  set_bottleneck(program, prices, result);
  result.fullest = fullest_stage(scenario, result.stages);
  result.throughput = throughput(scenario, program, result.step);
  return result;
}

StepResult step_result(const Scenario& scenario, const ShortStep& step, const Prices& prices,
                       FoldedReplay replay) {
  lengthen(replay, step.left_out);
  StepResult result = step_result(scenario, step.program, prices, replay);
  for (std::size_t s = 0; s < result.stages.size(); ++s) {
    const RankProgram& rank = step.program.stages[s];
    const std::uint32_t end = rank.calls[step.periods[s].end].first_op;
    const std::uint32_t ops = end - rank.calls[step.periods[s].first].first_op;
    std::uint32_t& peak = result.stages[s].memory.op;
    if (peak >= end) peak += ops * static_cast<std::uint32_t>(step.left_out);
  }
  count_repeated(scenario, step, prices, result);
  return result;
}

StepResult simulate_step(const Scenario& scenario) {
  return *simulate_step(scenario, std::stop_token());
}

std::optional<StepResult> simulate_step(const Scenario& scenario, const std::stop_token& stop) {
  if (stop.stop_requested()) return std::nullopt;
  const BlockSet blocks = make_blocks(scenario.model, scenario.plan, scenario.stack);
  const auto replay = [&](const Program& program, const Prices& prices,
                          std::span<const StagePeriod> periods) {
    return replay_folded(program, prices, {.stop = stop, .periods = periods});
  };
  for (const std::int64_t microbatches : short_steps(scenario.plan)) {
    const std::optional<ShortStep> step = shorten(scenario, blocks, microbatches);
    if (!step) continue;
    const Prices prices = price(step->program, scenario.cluster, scenario.stack);
    FoldedReplay short_replay = replay(step->program, prices, step->periods);
    if (short_replay.cancelled) return std::nullopt;
    if (short_replay.period) return step_result(scenario, *step, prices, std::move(short_replay));
  }
  const Program program = lower(scenario.model, scenario.plan, scenario.stack, blocks,
                                make_schedule(scenario.plan.schedule, shape_of(scenario.plan)));
  const Prices prices = price(program, scenario.cluster, scenario.stack);
  const FoldedReplay whole = replay(program, prices, {});
  if (whole.cancelled) return std::nullopt;
  return step_result(scenario, program, prices, whole);
}

EnumArray<Stream, StreamUse> stream_uses(const std::array<Seconds, kStreams>& busy, Seconds step) {
  EnumArray<Stream, StreamUse> uses;
  for (std::size_t i = 0; i < uses.size(); ++i) uses[i] = {busy[i], step - busy[i]};
  return uses;
}

void set_bottleneck(const Program& program, const Prices& prices, StepResult& result) {
  // Chooses the first of stages that are alike, whatever the last digits of their sums are.
  constexpr double kRounding = 1.0 + 1e-9;
  result.bottleneck = best_stage(result.stages, [](const StageResult& a, const StageResult& b) {
    return (a.time.compute() + a.time.optimizer) * kRounding < b.time.compute() + b.time.optimizer;
  });
  result.basis = basis_of(program.stages[static_cast<std::size_t>(result.bottleneck)], prices);
}

Flop hardware_flop_per_step(const Program& program) {
  std::vector<double> of_block;
  for (const Block& block : program.blocks) of_block.push_back(flop_of(block).value());
  double sum = 0.0;
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage) {
    double of_rank = 0.0;
    for (const Call& call : program.stages[stage].calls) of_rank += of_block[call.block];
    sum += of_rank * static_cast<double>(ranks_of_stage(program.plan, stage));
  }
  return Flop(sum);
}

}  // namespace shardwright::sim
