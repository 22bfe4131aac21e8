// Short names for files and folders that are reported together.
#pragma once

#include <string>
#include <vector>

namespace shardwright {

// Returns for each path the shortest end that no other path ends with, in their order: "run" for
// "a/run" beside "b/other", "a/run" for "a/run" beside "b/run". For "." and ".." it is the name of
// the folder. Paths to the same place have the same name.
std::vector<std::string> distinct_names(const std::vector<std::string>& paths);

}  // namespace shardwright
