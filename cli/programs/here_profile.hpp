// The cluster profile of the machine that the command runs on.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "calibration/calibrate.hpp"

namespace shardwright::cli {

// Builds the profile from what `shardwright-executor probe --out FOLDER` has measured. Throws
// InputError.
calibration::Calibration profile_of_probe(const std::filesystem::path& folder);

struct MachineProbe {
  // The executor's --device.
  std::string device = "auto";
  // The executor's --share-gpu.
  bool share_gpu = false;
  // 0: one per GPU, or per core.
  std::int64_t ranks = 0;
  // Training steps of each of the probe's models; 0: the executor's default.
  std::int64_t steps = 0;
  // Draw a progress line if standard error is a terminal.
  bool progress = true;
  // Folder for the measurements; empty: a temporary one.
  std::filesystem::path folder;
};

// Runs the probe on this machine and builds the profile. Throws ExecutorRefused if the executor
// refuses device or ranks, and RuntimeFailure.
calibration::Calibration probe_machine(const MachineProbe& probe);

// Saves the profile of this machine, and prints on standard error where, or why it cannot be saved:
// the command can use the measurements nevertheless.
void keep_profile(const std::filesystem::path& file, const ClusterSpec& cluster);

// Loads the saved profile of this machine. If there is none, probes the machine first and says so
// on standard error. Throws InputError for a damaged profile, and RuntimeFailure.
ClusterSpec load_here();

// Loads a shipped cluster, a file, or this machine if the name is `here`. Throws like load_here and
// load_cluster.
ClusterSpec load_cluster_or_here(const std::string& name);

}  // namespace shardwright::cli
