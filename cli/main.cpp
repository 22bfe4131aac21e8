// The command `shardwright`.
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "core/base/standard_streams.hpp"

int main(int argc, char** argv) {
  shardwright::prepare_standard_streams();
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return static_cast<int>(shardwright::cli::run_command_line(arguments));
}
