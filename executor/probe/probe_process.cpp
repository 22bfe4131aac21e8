#include "executor/probe/probe_process.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "core/base/error.hpp"
#include "core/lowering/lowering.hpp"
#include "core/spec/cluster_json.hpp"
#include "executor/data/hash.hpp"
#include "executor/launch/rendezvous.hpp"
#include "executor/launch/run_options.hpp"
#include "executor/probe/communication_probe.hpp"
#include "executor/probe/gpu_machine.hpp"
#include "executor/probe/machine.hpp"
#include "executor/runtime/rank_trainer.hpp"
#include "executor/telemetry/log.hpp"
#include "executor/telemetry/metrics_log.hpp"
#include "executor/telemetry/run_files.hpp"

namespace shardwright::executor {
namespace {

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
  trainer.set_initial_parameters();
  std::optional<MetricsLog> metrics;
  if (rank == 0) {
    write_json(folder / "plan.json", to_json(scenario));
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
                                               ProgressLine& progress) {
  const auto backend =
      open_backend(device, rendezvous.store(), place, {options.timeout(), options.share_gpu});
  return probe_communication(place.rank, place.world, *backend, device,
                             [&](const std::string& text) { progress.show("probing: " + text); });
}

struct Sizes {
  const char* name;
  std::int64_t hidden, heads, kv_heads, ffn, vocab, seq_len, micro_batch;
  std::int64_t layers = 2;
};

// The sizes give each dimension of the GEMMs several values.
constexpr Sizes kLlamas[] = {{"probe-llama-64", 64, 4, 2, 192, 256, 64, 2},
                             {"probe-llama-128", 128, 4, 2, 384, 1024, 256, 1},
                             {"probe-llama-256", 256, 8, 4, 704, 512, 128, 2},
                             {"probe-llama-512", 512, 8, 8, 1408, 256, 64, 1}};
constexpr Sizes kGpts[] = {{"probe-gpt-96", 96, 6, 6, 384, 768, 128, 1},
                           {"probe-gpt-320", 320, 5, 5, 1280, 320, 64, 2}};
// Few layers and small vocabularies: the host makes the initial values, which takes longer than the
// steps.
constexpr Sizes kGpuLlamas[] = {{"probe-llama-1024", 1024, 16, 8, 2816, 16'384, 1024, 4},
                                {"probe-llama-2048", 2048, 16, 4, 5632, 8192, 2048, 2},
                                {"probe-llama-3072", 3072, 24, 24, 8192, 4096, 1024, 2, 1},
                                {"probe-llama-4096", 4096, 32, 8, 14'336, 8192, 2048, 1, 1}};
constexpr Sizes kGpuGpts[] = {{"probe-gpt-1536", 1536, 16, 16, 6144, 8192, 1024, 2},
                              {"probe-gpt-2560", 2560, 32, 32, 10'240, 4096, 2048, 2, 1}};
constexpr std::int64_t kMicrobatches = 2;

ModelSpec sized(const Sizes& sizes) {
  ModelSpec model;
  model.name = sizes.name;
  model.source = "made up for probing";
  model.layers = sizes.layers;
  model.hidden = sizes.hidden;
  model.vocab = sizes.vocab;
  model.max_seq_len = sizes.seq_len;
  model.attention.heads = sizes.heads;
  model.attention.kv_heads = sizes.kv_heads;
  model.attention.head_dim = sizes.hidden / sizes.heads;
  model.mlp.ffn_hidden = sizes.ffn;
  return model;
}

ModelSpec llama(const Sizes& sizes) {
  ModelSpec model = sized(sizes);
  model.family = "llama";
  return model;
}

ModelSpec gpt(const Sizes& sizes) {
  ModelSpec model = sized(sizes);
  model.family = "gpt2";
  model.attention.qkv_bias = model.attention.output_bias = true;
  model.mlp.activation = Activation::Gelu;
  model.mlp.gated = false;
  model.mlp.bias = true;
  model.norm = NormKind::LayerNorm;
  model.norm_bias = true;
  model.position = PositionKind::Learned;
  model.position_embeddings = sizes.seq_len;
  model.tied_embeddings = true;
  return model;
}

Plan plan_of(const Sizes& sizes, Device device) {
  Plan plan;
  plan.zero_stage = 0;
  plan.micro_batch = sizes.micro_batch;
  plan.global_batch = sizes.micro_batch * kMicrobatches;
  plan.seq_len = sizes.seq_len;
  plan.precision = device == Device::Cuda ? Precision::Bf16 : Precision::Fp32;
  return plan;
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
  // A probe takes minutes on a busy machine.
  ProgressLine progress(place.rank == 0 && !options.no_progress);
  const auto samples = time_communication(options, place, device, rendezvous, progress);
  if (place.rank == 0) {
    std::filesystem::create_directories(options.out);
    write_json(options.out / "machine.json", to_json(machine));
    write_json(options.out / "exchanges.json", to_json(samples));
    write_json(options.out / "hardware.json",
               hardware_json(on_gpus ? gpus : gpus_beside_cpus(), network_devices()));
  }
  const auto together = place.world == 1
                            ? nullptr
                            : rendezvous.opener("models/")("world", static_cast<int>(place.rank),
                                                           static_cast<int>(place.world));
  const std::vector<Scenario> scenarios = probe_scenarios(machine, device);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    const Scenario& scenario = scenarios[i];
    progress.show(fmt::format("probing: kernels, model {} of {}: {}", i + 1, scenarios.size(),
                              scenario.model.name));
    double ready = 1.0;
    if (together) together->all_reduce(&ready, 1, Element::Float64, Reduction::Sum, nullptr);
    train(options, scenario, place, device);
  }
}

std::vector<Scenario> probe_scenarios(const ClusterSpec& machine, Device device) {
  const bool on_gpu = device == Device::Cuda;
  std::vector<Scenario> scenarios;
  const auto add = [&](ModelSpec model, const Sizes& sizes) {
    scenarios.push_back({std::move(model), machine, *machine.stack, plan_of(sizes, device)});
  };
  for (const Sizes& sizes : on_gpu ? std::span(kGpuLlamas) : std::span(kLlamas))
    add(llama(sizes), sizes);
  for (const Sizes& sizes : on_gpu ? std::span(kGpuGpts) : std::span(kGpts)) add(gpt(sizes), sizes);
  return scenarios;
}

}  // namespace shardwright::executor
