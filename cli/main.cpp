// The command `shardwright`.
#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "cli/command_line.hpp"

namespace {

// A standard stream that the caller closed would lend its number to the next file that is opened,
// and what is printed would end up in there.
void occupy_closed_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1) continue;
    // Read-only, so that printing to it fails and is noticed.
    [[maybe_unused]] const int opened = open("/dev/null", O_RDONLY);
  }
}

}  // namespace

int main(int argc, char** argv) {
  occupy_closed_streams();
  // Writing to a closed pipe is an error like any other (see write_stdout), not a sudden death.
  std::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return static_cast<int>(shardwright::cli::run_command_line(arguments));
}
