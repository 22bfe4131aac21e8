// One rank of `shardwright-executor probe`.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/spec/scenario.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/rank_backend.hpp"

namespace CLI {
class App;
}

namespace shardwright::executor {

struct ProbeOptions {
  std::filesystem::path out;
  // "cpu", "cuda" or "auto".
  std::string device = "auto";
  bool share_gpu = false;
  // Ranks to start on this machine; 0 stands for one per core or GPU.
  std::int64_t ranks = 0;
  std::int64_t steps = 12;
  double timeout_s = 120.0;
  // Start the ranks on this machine, even under another launcher.
  bool local = false;
  bool no_progress = false;

  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
  }
};

void add_probe_options(CLI::App& app, ProbeOptions& options);

// Returns the device to probe: GPUs that compute in bf16 if there are any, unless the CPU is
// requested. Throws InputError if GPUs are requested and there are none such.
Device probe_device(const ProbeOptions& options);

// Returns the number of ranks that a probe starts on this machine.
std::int64_t probe_ranks(const ProbeOptions& options, Device device);

// Returns the models that a probe trains for a few steps to time kernels of many shapes: decoders
// of several widths and families, each on one rank: small ones in fp32 on CPUs; widths from 1024 to
// 4096 in bf16 on GPUs, each of which fits into 8 GB.
std::vector<Scenario> probe_scenarios(const ClusterSpec& machine, Device device);

// Rank 0 writes to `out`: `machine.json` (a cluster profile with what the system reports),
// `exchanges.json`, `hardware.json` (hardware_json), and for each of the probe's models the
// files of a run: `runs/NAME/plan.json`, `timeline-STEP-RANK.json`, `metrics.jsonl`. Throws
// CommunicationError, OpError, RuntimeFailure, CudaError.
void probe_rank(const ProbeOptions& options, const LaunchPlace& place, Device device,
                const std::string& token);

}  // namespace shardwright::executor
