// Where Shardwright's own data lies: the shipped models and hardware profiles.
#pragma once

#include <filesystem>

namespace shardwright {

// The folder that holds `models/` and `hardware_profiles/`: the environment variable
// SHARDWRIGHT_DATA where it is set, else `../share/shardwright` beside the running executable, else
// the source tree of the build.
std::filesystem::path data_directory();

}  // namespace shardwright
