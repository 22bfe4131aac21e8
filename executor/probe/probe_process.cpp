#include "executor/probe/probe_process.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/base/error.hpp"
#include "core/base/standard_streams.hpp"
#include "core/lowering/lowering.hpp"
#include "core/spec/cluster_json.hpp"
#include "executor/data/counter_random.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/launch/rendezvous.hpp"
#include "executor/launch/run_options.hpp"
#include "executor/probe/communication_probe.hpp"
#include "executor/probe/gpu_machine.hpp"
#include "executor/probe/machine.hpp"
#include "executor/probe/probe_models.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/telemetry/log.hpp"
#include "executor/telemetry/metrics_log.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

void write(const std::filesystem::path& file, const nlohmann::ordered_json& document) {
  constexpr int kIndent = 2;
  std::ofstream stream(file);
  stream << document.dump(kIndent) << '\n';
  if (!stream.flush()) fail_to_write(file);
}

// A failing GPU does not prevent a probe of the CPUs.
GpuHost gpus_beside_cpus() {
  try {
    std::string why_none;
    return probe_gpus(why_none);
  } catch (const std::exception& error) {
    log_warning(fmt::format("the profile of this machine omits its GPUs: {}", error.what()));
    return {};
  }
}

// Only rank 0, which writes the profile, times copies of GPUs; others would disturb it.
ClusterSpec describe(const ProbeOptions& options, const LaunchPlace& place, Device device,
                     const GpuHost& gpus) {
  RanksOnGpus ranks;
  ranks.per_host = std::max<std::int64_t>(1, place.local_world);
  ranks.hosts = std::max<std::int64_t>(1, place.world / ranks.per_host);
  if (device == Device::Cpu) return describe_machine(ranks.per_host, ranks.hosts);
  const auto count = static_cast<std::int64_t>(gpus.gpus.size());
  if (options.share_gpu) ranks.per_gpu = (ranks.per_host + count - 1) / count;
  return describe_gpus(gpus, host_facts(), ranks);
}

// A progress line on standard error if that is a terminal; a probe takes minutes on a busy machine.
class ProbeProgress {
 public:
  explicit ProbeProgress(bool wanted) : wanted_(wanted && isatty(STDERR_FILENO) == 1) {}
  ~ProbeProgress() {
    if (wanted_) write_to_stderr("\r\033[K");
  }
  ProbeProgress(const ProbeProgress&) = delete;
  ProbeProgress& operator=(const ProbeProgress&) = delete;

  void show(const std::string& text) const {
    if (wanted_) write_to_stderr(fmt::format("\rprobing: {}\033[K", text));
  }

 private:
  bool wanted_;
};

Batch random_batch(const Scenario& scenario, std::int64_t rank, std::int64_t step) {
  const Plan& plan = scenario.plan;
  Batch batch;
  const std::int64_t tokens = plan.micro_batch * plan.seq_len * plan.microbatches();
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

// Each rank trains its own copy of the model at the same time, so that they share memory and cores
// as in a run. The second half of rank 0's steps is recorded.
//
// Each model has its own backend, which releases its memory: the process's memory is one of the
// figures.
void train(const ProbeOptions& options, const Scenario& scenario, const LaunchPlace& place,
           Device device) {
  const std::int64_t rank = place.rank;
  const auto folder = options.out / "runs" / scenario.model.name;
  std::filesystem::create_directories(folder);
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  const auto backend = open_backend(device, nullptr, place, {options.timeout(), options.share_gpu});
  TrainingOptions training;
  training.steps = options.steps;
  RankTrainer trainer(scenario.model, program, 0, backend->kernels(), nullptr, training,
                      backend->queues());
  std::optional<MetricsLog> metrics;
  if (rank == 0) {
    write_plan(folder, scenario);
    metrics.emplace(folder / "metrics.jsonl", figures_of(scenario, name_of(device)), 0);
  }
  for (std::int64_t step = 0; step < options.steps; ++step) {
    const Batch batch = random_batch(scenario, rank, step);
    const bool recorded = rank == 0 && step >= options.steps / 2;
    StepRecorder recorder(scenario.plan, 0);
    const StepReport report = trainer.step(step, batch, recorded ? &recorder : nullptr);
    if (recorded) write_timeline(folder, step, 0, recorder.take());
    if (metrics) metrics->write(report, memory_of(trainer, backend->kernels()));
  }
}

std::vector<ExchangeSample> time_communication(const ProbeOptions& options,
                                               const LaunchPlace& place, Device device,
                                               const Rendezvous& rendezvous,
                                               const ProbeProgress& progress) {
  const auto backend =
      open_backend(device, rendezvous.store(), place, {options.timeout(), options.share_gpu});
  return probe_communication(place.rank, place.world, *backend, device,
                             [&](const std::string& text) { progress.show(text); });
}

}  // namespace

void add_probe_options(CLI::App& app, ProbeOptions& options) {
  app.add_option("--out", options.out, "Folder of the measurements")
      ->required()
      ->type_name("FOLDER");
  add_device_options(app, options.device, options.share_gpu, "on GPUs if there are any");
  app.add_option("--ranks", options.ranks,
                 "Ranks on this machine (default: one for each GPU or core)")
      ->check(integer_from(1, 1024));
  app.add_option("--steps", options.steps, "Steps of each of the probe's models")
      ->check(integer_from(2, 10'000))
      ->capture_default_str();
  app.add_option("--timeout", options.timeout_s, "Seconds until a silent rank has failed")
      ->check(number_from(0.1, 1e6))
      ->capture_default_str();
  app.add_flag("--no-progress", options.no_progress, "No progress line on the terminal");
  app.add_flag("--local", options.local,
               "Start the ranks here, even under another launcher; `shardwright probe` sets it")
      ->group("");
}

Device probe_device(const ProbeOptions& options) {
  const Device device = choose_device(options.device, Precision::Bf16);
  if (device == Device::Cpu) return device;
  std::string why;
  for (const GpuFacts& gpu : list_gpus(why)) {
    if (has_bf16(gpu)) continue;
    if (options.device == "auto") return Device::Cpu;
    throw InputError(
        "--device",
        {{"", fmt::format("{}, which has compute capability {}", gpu.name, gpu.compute_capability),
          "GPUs that compute in bf16 (8.0 and above), or --device cpu"}});
  }
  return device;
}

std::int64_t probe_ranks(const ProbeOptions& options, Device device) {
  if (options.ranks > 0) return options.ranks;
  std::string why;
  return device == Device::Cuda ? visible_gpus(why) : host_facts().cores;
}

void probe_rank(const ProbeOptions& options, const LaunchPlace& place, Device device,
                const std::string& token) {
  Rendezvous rendezvous(place, token, options.timeout());
  const bool on_gpus = device == Device::Cuda;
  std::string why;
  GpuHost gpus;
  if (on_gpus) gpus = place.rank == 0 ? probe_gpus(why) : GpuHost{list_gpus(why), {}, {}, {}};
  const ClusterSpec machine = describe(options, place, device, gpus);
  const ProbeProgress progress(place.rank == 0 && !options.no_progress);
  const auto samples = time_communication(options, place, device, rendezvous, progress);
  if (place.rank == 0) {
    std::filesystem::create_directories(options.out);
    write(options.out / "machine.json", to_json(machine));
    write(options.out / "exchanges.json", to_json(samples));
    write(options.out / "hardware.json",
          hardware_json(on_gpus ? gpus : gpus_beside_cpus(), network_devices()));
  }
  const auto together = place.world == 1
                            ? nullptr
                            : rendezvous.opener("models/")("world", static_cast<int>(place.rank),
                                                           static_cast<int>(place.world));
  const std::vector<Scenario> scenarios = probe_scenarios(machine, device);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Scenario& scenario = scenarios[i];
    progress.show(
        fmt::format("kernels, model {} of {}: {}", i + 1, scenarios.size(), scenario.model.name));
    double ready = 1.0;
    if (together) together->all_reduce(&ready, 1, Element::Float64, Reduction::Sum, nullptr);
    train(options, scenario, place, device);
  }
}

}  // namespace shardwright::executor
