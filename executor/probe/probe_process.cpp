#include "executor/probe/probe_process.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "core/spec/cluster_json.hpp"
#include "executor/data/counter_random.hpp"
#include "executor/kernels/cpu/cpu_kernels.hpp"
#include "executor/launch/meeting.hpp"
#include "executor/probe/exchange_probe.hpp"
#include "executor/probe/machine.hpp"
#include "executor/probe/probe_models.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/telemetry/metrics_log.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

void write(const std::filesystem::path& file, const nlohmann::ordered_json& document) {
  constexpr int kIndent = 2;
  std::ofstream stream(file);
  stream << document.dump(kIndent) << '\n';
  if (!stream.flush()) throw RuntimeFailure(file.string() + " cannot be written");
}

Batch random_batch(const Scenario& scenario, std::int64_t rank, std::int64_t step) {
  const Plan& plan = scenario.plan;
  Batch batch;
  batch.tokens_each = plan.micro_batch * plan.seq_len;
  const std::int64_t tokens = batch.tokens_each * plan.microbatches();
  const auto key = static_cast<std::uint64_t>(rank * 1'000 + step);
  const auto vocabulary = static_cast<std::uint64_t>(scenario.model.vocab);
  for (std::int64_t i = 0; i <= tokens; ++i) {
    const auto token =
        static_cast<std::int32_t>(random_bits(key, static_cast<std::uint64_t>(i)) % vocabulary);
    if (i < tokens) batch.tokens.push_back(token);
    if (i > 0) batch.targets.push_back(token);
  }
  return batch;
}

// Each rank trains a copy of the model by itself, all at the same time, so that they share memory
// and cores as in a run. The second half of rank 0's steps is recorded.
void train(const ProbeOptions& options, const Scenario& scenario, std::int64_t rank) {
  const auto folder = options.out / "runs" / scenario.model.name;
  std::filesystem::create_directories(folder);
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  CpuKernels<float> kernels;
  TrainingOptions training;
  training.steps = options.steps;
  RankTrainer trainer(scenario.model, program, 0, kernels, nullptr, training);
  std::optional<MetricsLog> metrics;
  if (rank == 0) {
    write_plan(folder, scenario);
    metrics.emplace(folder / "metrics.jsonl", figures_of(scenario), 0);
  }
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const Batch batch = random_batch(scenario, rank, step);
    const bool recorded = rank == 0 && step >= options.steps / 2;
    StepRecorder recorder(scenario.plan, 0);
    const StepReport report = trainer.step(step, batch, recorded ? &recorder : nullptr);
    if (recorded) write_timeline(folder, step, 0, recorder.take());
    if (metrics) metrics->write(report, Bytes(static_cast<double>(trainer.peak_tensor_bytes())));
  }
}

}  // namespace

void add_probe_options(CLI::App& app, ProbeOptions& options) {
  app.add_option("--out", options.out, "Folder of the measurements")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--ranks", options.ranks, "Ranks on this machine (default: one for each core)")
      ->check(CLI::Range(1, 1024));
  app.add_option("--steps", options.steps, "Steps of each of the probe's models")
      ->check(CLI::Range(2, 10'000));
  app.add_option("--timeout", options.timeout_s, "Seconds until a silent rank has failed")
      ->check(CLI::Range(0.1, 1e6));
}

std::int64_t probe_ranks(const ProbeOptions& options) {
  if (options.ranks > 0) return options.ranks;
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

void probe_rank(const ProbeOptions& options, const LaunchPlace& place, const std::string& token) {
  Meeting meeting(place, token, options.timeout());
  const std::int64_t per_host = std::max<std::int64_t>(1, place.local_world);
  const ClusterSpec machine =
      describe_machine(per_host, std::max<std::int64_t>(1, place.world / per_host));
  const auto samples = probe_exchanges(place.rank, place.world, meeting.opener("exchanges/"));
  if (place.rank == 0) {
    std::filesystem::create_directories(options.out);
    write(options.out / "machine.json", to_json(machine));
    write(options.out / "exchanges.json", to_json(samples));
  }
  const auto together = place.world == 1
                            ? nullptr
                            : meeting.opener("models/")("world", static_cast<int>(place.rank),
                                                        static_cast<int>(place.world));
  for (const Scenario& scenario : probe_scenarios(machine)) {
    double ready = 1.0;
    if (together) together->all_reduce(&ready, 1, Element::Float64, Reduction::Sum, nullptr);
    train(options, scenario, place.rank);
  }
}

}  // namespace shardwright::executor
