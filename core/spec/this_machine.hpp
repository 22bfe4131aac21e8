// Where the profile of the machine that a program runs on is kept.
#pragma once

#include <filesystem>

namespace shardwright {

// What a cluster is called that is this machine.
inline constexpr const char* kHere = "here";

// $XDG_CACHE_HOME/shardwright/here.json, in ~/.cache without the variable: a cluster file, there
// once the machine was probed.
std::filesystem::path kept_profile();

}  // namespace shardwright
