// Short names for files and folders that are told of together.
#pragma once

#include <string>
#include <vector>

namespace shardwright::cli {

// Of each path the last part that no other of them ends with, in their order: "run" of "a/run" and
// "b/other", "a/run" of "a/run" and "b/run"; of "." and ".." the folder's own name. Paths that name
// the same place have the same name.
std::vector<std::string> distinct_names(const std::vector<std::string>& paths);

}  // namespace shardwright::cli
