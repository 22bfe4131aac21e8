#include "core/base/data_directory.hpp"

#include <cstdlib>
#include <system_error>

namespace shardwright {

std::filesystem::path data_directory() {
  namespace fs = std::filesystem;
  if (const char* chosen = std::getenv("SHARDWRIGHT_DATA"); chosen != nullptr && *chosen != '\0')
    return chosen;
  std::error_code error;
  const fs::path executable = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed = executable.parent_path().parent_path() / "share" / "shardwright";
  if (!error && fs::is_directory(installed, error)) return installed;
  return SHARDWRIGHT_SOURCE_DIR;
}

}  // namespace shardwright
