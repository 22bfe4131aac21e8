// The cluster profile of the machine that the command runs on.
#pragma once

#include <cstdint>
#include <filesystem>

#include "sim/calibration/calibrate.hpp"

namespace shardwright::cli {

// What `--cluster` calls this machine.
inline constexpr const char* kHere = "here";

// Builds the profile from what `shardwright-executor probe --out FOLDER` has measured. Throws
// InputError.
sim::Calibration profile_of_probe(const std::filesystem::path& folder);

// Starts the probe on this machine (ranks 0: one for each core) and builds the profile. The
// measurements go to `folder`, or to one that is removed afterwards if it is empty. Throws
// RuntimeFailure.
sim::Calibration probe_machine(std::int64_t ranks, const std::filesystem::path& folder);

// $XDG_CACHE_HOME/shardwright/here.json, in ~/.cache without the variable.
std::filesystem::path cached_profile();

// The cached profile of this machine; probed first, and said on standard error, where there is
// none. Throws InputError for a damaged one, RuntimeFailure.
ClusterSpec load_here();

}  // namespace shardwright::cli
