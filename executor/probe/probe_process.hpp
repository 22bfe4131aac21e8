// `shardwright-executor probe`: one rank of a probe.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "executor/launch/launch_place.hpp"
#include "executor/launch/rank_backend.hpp"

namespace CLI {
class App;
}

namespace shardwright::executor {

struct ProbeOptions {
  std::filesystem::path out;
  std::string device = "auto";  // "cpu", "cuda" or "auto"
  bool share_gpu = false;       // several ranks may use one GPU
  std::int64_t ranks = 0;       // to start on this machine; 0: one for each core, or for each GPU
  std::int64_t steps = 12;      // of each model
  double timeout_s = 120.0;
  bool local = false;  // the ranks are started here, whatever another launcher has set
  bool no_progress = false;

  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
  }
};

void add_probe_options(CLI::App& app, ProbeOptions& options);

// What is probed: GPUs that compute in bf16, where there are any and the CPU is not asked for.
// Throws InputError if GPUs are asked for and there are none such.
Device probe_device(const ProbeOptions& options);

// Ranks that a probe starts here.
std::int64_t probe_ranks(const ProbeOptions& options, Device device);

// Writes, from rank 0, `out/machine.json` (a cluster profile with what the machine says of itself)
// and `out/exchanges.json`, `out/hardware.json` (hardware_file.hpp: what this host says of its GPUs
// and network devices), and a run's files for each of the probe's models,
// `out/runs/NAME/plan.json`, `timeline-STEP-RANK.json`, `metrics.jsonl`. The folder exists and is
// shared by all ranks. Throws CommunicationError, OpError, RuntimeFailure, CudaError. On GPUs not
// yet run.
void probe_rank(const ProbeOptions& options, const LaunchPlace& place, Device device,
                const std::string& token);

}  // namespace shardwright::executor
