#include "core/base/data_directory.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <system_error>

#include "core/base/error.hpp"

namespace shardwright {

namespace fs = std::filesystem;

fs::path data_directory() {
  constexpr const char* kVariable = "SHARDWRIGHT_DATA";
  std::error_code ignored;
  if (const char* chosen = std::getenv(kVariable); chosen != nullptr && *chosen != '\0') {
    if (fs::is_directory(chosen, ignored)) return chosen;
    throw InputError(kVariable, {{"", fmt::format("\"{}\"", chosen), "a folder"}});
  }
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  fs::path installed = program.parent_path().parent_path() / "share" / "shardwright";
  if (!program.empty() && fs::is_directory(installed, ignored)) return installed;
  fs::path sources = SHARDWRIGHT_SOURCE_DIR;
  if (fs::is_directory(sources, ignored)) return sources;
  throw RuntimeFailure(
      fmt::format("neither {} nor {} is a folder: set {} to the folder that holds "
                  "models and hardware_profiles",
                  installed.string(), sources.string(), kVariable));
}

}  // namespace shardwright
