// The machine that a program runs on: its profile, and the devices to choose from.
#pragma once

#include <filesystem>
#include <string>

namespace shardwright {

// The name that stands for the local machine as a cluster.
inline constexpr const char* kHere = "here";

// $XDG_CACHE_HOME/shardwright/here.json, in ~/.cache without the variable: a cluster file, there
// once the machine was probed.
std::filesystem::path cached_profile();

// Returns nothing if `word` is cpu, cuda or auto, else the problem with it (choice_problem).
std::string device_problem(const std::string& word);

}  // namespace shardwright
