#include "cli/sibling_program.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/base/argument_pointers.hpp"
#include "core/base/error.hpp"

namespace shardwright::cli {

std::string own_program() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error).string();
}

std::string find_sibling(const std::string& name, const std::string& build_folder) {
  std::error_code error;
  const auto here = std::filesystem::path(own_program()).parent_path();
  for (const auto& candidate : {here / name, here.parent_path() / build_folder / name}) {
    if (std::filesystem::exists(candidate, error)) return candidate.string();
  }
  return {};
}

void become(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  execv(program.c_str(), argument_pointers(arguments).data());
  throw RuntimeFailure(program + " cannot be started: " + std::strerror(errno));
}

}  // namespace shardwright::cli
