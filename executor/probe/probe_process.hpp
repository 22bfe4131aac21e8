// `shardwright-executor probe`: one rank of a probe.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "executor/launch/launch_place.hpp"

namespace CLI {
class App;
}

namespace shardwright::executor {

struct ProbeOptions {
  std::filesystem::path out;
  std::int64_t ranks = 0;   // to start on this machine; 0: one for each core
  std::int64_t steps = 12;  // of each model
  double timeout_s = 120.0;
  bool local = false;  // the ranks are started here, whatever another launcher has set
  bool no_progress = false;

  std::chrono::milliseconds timeout() const {
    return std::chrono::milliseconds(static_cast<std::int64_t>(timeout_s * 1e3));
  }
};

void add_probe_options(CLI::App& app, ProbeOptions& options);

// Ranks that a probe starts here.
std::int64_t probe_ranks(const ProbeOptions& options);

// Writes, from rank 0, `out/machine.json` (a cluster profile with what the machine says of itself)
// and `out/exchanges.json`, `out/hardware.json` (hardware_file.hpp: what this host says of its GPUs
// and network devices), and a run's files for each of the probe's models,
// `out/runs/NAME/plan.json`, `timeline-STEP-RANK.json`, `metrics.jsonl`. The folder exists and is
// shared by all ranks. Throws CommunicationError, RuntimeFailure.
void probe_rank(const ProbeOptions& options, const LaunchPlace& place, const std::string& token);

}  // namespace shardwright::executor
