#include "sim/step/simulate.hpp"

#include <algorithm>

#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::sim {
namespace {

Throughput throughput(const Scenario& scenario, const Program& program, Seconds step) {
  const Plan& plan = scenario.plan;
  const auto gpus = static_cast<double>(plan.world_size());
  const double tokens = static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
  const double peak = scenario.cluster.accelerator.matrix.of(plan.precision).value();
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

}  // namespace

Seconds TimeBreakdown::exposed_total() const {
  Seconds sum;
  for (const Seconds each : exposed) sum += each;
  return sum;
}

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
  set_bottleneck(program, prices, result);
  result.fullest = best_stage(result.stages, [](const StageResult& a, const StageResult& b) {
    return a.memory.peak < b.memory.peak;
  });
  result.throughput = throughput(scenario, program, result.step);
  return result;
}

StepResult simulate_step(const Scenario& scenario) {
  return *simulate_step(scenario, std::stop_token());
}

std::optional<StepResult> simulate_step(const Scenario& scenario, const std::stop_token& stop) {
  if (stop.stop_requested()) return std::nullopt;
  const PricedStep step = lower_and_price(scenario);
  const FoldedReplay replay = replay_folded(step.program, step.prices, {.stop = stop});
  if (replay.cancelled) return std::nullopt;
  return step_result(scenario, step.program, step.prices, replay);
}

std::array<StreamUse, kStreams> stream_uses(const std::array<Seconds, kStreams>& busy,
                                            Seconds step) {
  std::array<StreamUse, kStreams> uses;
  for (std::size_t i = 0; i < uses.size(); ++i) uses[i] = {busy[i], step - busy[i]};
  return uses;
}

void set_bottleneck(const Program& program, const Prices& prices, StepResult& result) {
  result.bottleneck = best_stage(result.stages, [](const StageResult& a, const StageResult& b) {
    return a.time.compute() + a.time.optimizer < b.time.compute() + b.time.optimizer;
  });
  result.basis = basis_of(program.stages[static_cast<std::size_t>(result.bottleneck)], prices);
}

Flop hardware_flop_per_step(const Program& program) {
  std::vector<double> of_block;
  for (const Block& block : program.blocks) {
    Flop sum;
    for (const Op& op : block.ops) sum += model_flop(op.work);
    of_block.push_back(sum.value());
  }
  double sum = 0.0;
  for (const RankProgram& rank : program.stages) {
    for (const Call& call : rank.calls) sum += of_block[call.block];
  }
  return Flop(sum * static_cast<double>(program.plan.world_size()) /
              static_cast<double>(program.plan.pp));
}

}  // namespace shardwright::sim
