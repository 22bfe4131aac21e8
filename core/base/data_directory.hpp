// The folders of the models and hardware profiles that Shardwright ships.
#pragma once

#include <filesystem>

namespace shardwright {

// The folder that holds `models` and `hardware_profiles`: the environment variable SHARDWRIGHT_DATA
// if it is set, else ../share/shardwright beside the folder of the running program if that exists,
// else the source tree that the program was built from. Throws InputError if SHARDWRIGHT_DATA names
// no folder, RuntimeFailure if there is none at all.
std::filesystem::path data_directory();

}  // namespace shardwright
