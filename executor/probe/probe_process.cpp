#include "executor/probe/probe_process.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

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
#include "executor/launch/option_checks.hpp"
#include "executor/probe/exchange_probe.hpp"
#include "executor/probe/hardware_file.hpp"
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

// A GPU that cannot be asked is no reason not to probe the CPUs.
GpuHost gpus_of_host() {
  try {
    std::string why_none;
    return probe_gpus(why_none);
  } catch (const std::exception& error) {
    fmt::print(stderr, "the GPUs are left out: {}\n", error.what());
    return {};
  }
}

// A line on standard error, from the first rank, where that is a terminal: probing takes minutes on
// a busy machine.
class ProbeProgress {
 public:
  explicit ProbeProgress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) == 1) {}
  ~ProbeProgress() {
    if (wanted_) fmt::print(stderr, "\r\033[K");
  }
  ProbeProgress(const ProbeProgress&) = delete;
  ProbeProgress& operator=(const ProbeProgress&) = delete;

  void show(const std::string& text) const {
    if (wanted_) fmt::print(stderr, "\rprobing: {}\033[K", text);
  }

 private:
  bool wanted_;
};

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
    if (metrics) metrics->write(report, memory_of(trainer, kernels));
  }
}

}  // namespace

void add_probe_options(CLI::App& app, ProbeOptions& options) {
  app.add_option("--out", options.out, "Folder of the measurements")
      ->required()
      ->type_name("FOLDER");
  app.add_option("--ranks", options.ranks, "Ranks on this machine (default: one for each core)")
      ->check(number_from(1, 1024));
  app.add_option("--steps", options.steps, "Steps of each of the probe's models")
      ->check(number_from(2, 10'000))
      ->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "Seconds until a silent rank has failed")
      ->check(number_from(0.1, 1e6))
      ->capture_default_str();
  app.add_flag("--no-progress", options.no_progress, "No progress line on the terminal");
  app.add_flag("--local", options.local,
               "Start the ranks here, whatever a launcher has set; `shardwright probe` says it")
      ->group("");
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
  const ProbeProgress progress(place.rank == 0 && !options.no_progress);
  const auto samples = probe_exchanges(place.rank, place.world, meeting.opener("exchanges/"),
                                       [&](const std::string& text) { progress.show(text); });
  if (place.rank == 0) {
    std::filesystem::create_directories(options.out);
    write(options.out / "machine.json", to_json(machine));
    write(options.out / "exchanges.json", to_json(samples));
    write(options.out / "hardware.json", hardware_json(gpus_of_host(), network_devices()));
  }
  const auto together = place.world == 1
                            ? nullptr
                            : meeting.opener("models/")("world", static_cast<int>(place.rank),
                                                        static_cast<int>(place.world));
  const std::vector<Scenario> scenarios = probe_scenarios(machine);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Scenario& scenario = scenarios[i];
    progress.show(
        fmt::format("kernels, model {} of {}: {}", i + 1, scenarios.size(), scenario.model.name));
    double ready = 1.0;
    if (together) together->all_reduce(&ready, 1, Element::Float64, Reduction::Sum, nullptr);
    train(options, scenario, place.rank);
  }
}

}  // namespace shardwright::executor
