// The version and build of this program.
#pragma once

#include <string>

namespace shardwright::cli {

// "0.1.0"
std::string version();

// "shardwright 0.1.0 (git 1a2b3c4, GNU 12.2.0, Release)"
std::string version_line();

}  // namespace shardwright::cli
