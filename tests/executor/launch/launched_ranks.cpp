#include "tests/executor/launch/launched_ranks.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "core/base/stop_signals.hpp"
#include "executor/comm/socket.hpp"
#include "tests/executor/launch/started_run.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto kPatience = 30s;

std::vector<std::string> environment_of(int rank, int world, std::uint16_t rendezvous) {
  std::vector<std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) values.emplace_back(*entry);
  const auto add = [&](const char* name, const std::string& value) {
    values.push_back(std::string(name) + "=" + value);
  };
  add("RANK", std::to_string(rank));
  add("WORLD_SIZE", std::to_string(world));
  add("LOCAL_RANK", std::to_string(rank));
  add("LOCAL_WORLD_SIZE", std::to_string(kRanks));
  add("MASTER_ADDR", "127.0.0.1");
  // The next port is that of the rendezvous.
  add("MASTER_PORT", std::to_string(rendezvous - 1));
  add("SHARDWRIGHT_TOKEN", "of this test");
  return values;
}

}  // namespace

LaunchedRanks::LaunchedRanks(std::filesystem::path out, int steps,
                             const std::vector<std::string>& more, const Change& change,
                             const World& world)
    : out_(std::move(out)) {
  const std::uint16_t rendezvous = port_of(listen_at("127.0.0.1", 0));
  std::vector<std::string> of_all = run_arguments(out_, steps);
  of_all.insert(of_all.end(), more.begin(), more.end());
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<std::string> arguments = of_all;
    if (change) change(rank, arguments);
    pid_t& process = processes_.emplace_back();
    if (arguments.empty()) continue;
    std::vector<std::string> environment =
        environment_of(rank, world ? world(rank) : kRanks, rendezvous);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO,
                                     messages_file(static_cast<std::size_t>(rank)).c_str(),
                                     O_WRONLY | O_CREAT | O_TRUNC, 0644);
    EXPECT_EQ(
        posix_spawn(&process, SHARDWRIGHT_EXECUTOR, &actions, nullptr,
                    argument_pointers(arguments).data(), argument_pointers(environment).data()),
        0);
    posix_spawn_file_actions_destroy(&actions);
  }
}

LaunchedRanks::~LaunchedRanks() {
  for (const pid_t process : processes_) {
    if (process == 0) continue;
    kill(process, SIGKILL);
    waitpid(process, nullptr, 0);
  }
}

void LaunchedRanks::wait_for_steps(std::size_t steps) const {
  const auto deadline = Clock::now() + kPatience;
  while (losses_in(out_).size() < steps && Clock::now() < deadline)
    std::this_thread::sleep_for(2ms);
}

void LaunchedRanks::send(std::size_t rank, int signal) const {
  kill(processes_[rank], signal);
}

int LaunchedRanks::wait(std::size_t rank) {
  const auto deadline = Clock::now() + kPatience;
  int status = 0;
  while (waitpid(processes_[rank], &status, WNOHANG) == 0) {
    if (Clock::now() > deadline) return -1;
    std::this_thread::sleep_for(5ms);
  }
  processes_[rank] = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
}

std::string LaunchedRanks::messages(std::size_t rank) const {
  std::ostringstream text;
  text << std::ifstream(messages_file(rank)).rdbuf();
  return text.str();
}

std::filesystem::path LaunchedRanks::messages_file(std::size_t rank) const {
  return out_.string() + ".messages-" + std::to_string(rank);
}

}  // namespace shardwright::executor
