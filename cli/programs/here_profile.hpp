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
  std::string device = "auto";   // as the executor's --device
  bool share_gpu = false;        // as the executor's --share-gpu
  std::int64_t ranks = 0;        // 0: one for each GPU, or core
  std::int64_t steps = 0;        // of each of the probe's models; 0: as the executor thinks fit
  bool progress = true;          // a line on standard error, where that is a terminal
  std::filesystem::path folder;  // for the measurements; empty: one that is removed afterwards
};

// Starts the probe on this machine and builds the profile. Throws ExecutorRefused where the
// executor refuses device or ranks, and RuntimeFailure.
calibration::Calibration probe_machine(const MachineProbe& probe);

// Keeps the profile of this machine, and says on standard error where, or why it is not kept: what
// was measured is good for the command all the same.
void keep_profile(const std::filesystem::path& file, const ClusterSpec& cluster);

// The kept profile of this machine; probed first, and said on standard error, where there is
// none. Throws InputError for a damaged one, RuntimeFailure.
ClusterSpec load_here();

// A shipped cluster, a file, or this machine where the name is `here`. Throws like load_here and
// load_cluster.
ClusterSpec load_cluster_or_here(const std::string& name);

}  // namespace shardwright::cli
