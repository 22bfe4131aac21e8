// The machine that a program runs on: its profile, and the devices to choose from.
#pragma once

#include <filesystem>
#include <string>

namespace shardwright {

// The name that stands for the local machine as a cluster.
inline constexpr const char* kHere = "here";

// $XDG_CACHE_HOME/shardwright/here.json, in ~/.cache without the variable: a cluster file, there
// once the machine was probed.
std::filesystem::path kept_profile();

// Nothing if `word` is cpu, cuda or auto, else what is wrong with it (unless_one_of).
std::string unless_device(const std::string& word);

}  // namespace shardwright
