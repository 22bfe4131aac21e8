#include "core/spec/this_machine.hpp"

#include <cstdlib>
#include <vector>

#include "core/base/nearest_name.hpp"

namespace shardwright {

namespace fs = std::filesystem;

fs::path cached_profile() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  const char* home = std::getenv("HOME");
  fs::path folder = cache != nullptr && *cache != '\0' ? fs::path(cache)
                    : home != nullptr                  ? fs::path(home) / ".cache"
                                                       : fs::temp_directory_path();
  return folder / "shardwright" / "here.json";
}

std::string device_problem(const std::string& word) {
  static const std::vector<std::string> kDevices = {"cpu", "cuda", "auto"};
  return choice_problem(word, kDevices);
}

}  // namespace shardwright
