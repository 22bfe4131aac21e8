#include "cli/output/version.hpp"

#include <fmt/format.h>

#include "build_info.hpp"

namespace shardwright::cli {

std::string version() {
  return kBuildVersion;
}

std::string version_line() {
  return fmt::format("shardwright {} (git {}, {}, {})", kBuildVersion, kBuildCommit, kBuildCompiler,
                     kBuildType);
}

}  // namespace shardwright::cli
