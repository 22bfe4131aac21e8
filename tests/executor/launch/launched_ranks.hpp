// Ranks as torchrun starts them: processes that find each other by their environment, without our
// launcher.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace shardwright::executor {

class LaunchedRanks {
 public:
  // Changes the command line of a rank; an empty one is not started.
  using Change = std::function<void(int rank, std::vector<std::string>& arguments)>;
  // The world size that one of them is given.
  using World = std::function<int(int rank)>;

  // Trains the plan of StartedRun into `out`. Each rank's messages go to a file beside it.
  LaunchedRanks(std::filesystem::path out, int steps, const std::vector<std::string>& more,
                const Change& change = nullptr, const World& world = nullptr);
  ~LaunchedRanks();
  LaunchedRanks(const LaunchedRanks&) = delete;
  LaunchedRanks& operator=(const LaunchedRanks&) = delete;

  // Waits until so many steps have metrics, at most half a minute.
  void wait_for_steps(std::size_t steps) const;
  void send(std::size_t rank, int signal) const;
  // Returns the exit status; -1 if the rank does not end within half a minute, -2 if a signal ended
  // it.
  int wait(std::size_t rank);
  std::string messages(std::size_t rank) const;

 private:
  std::filesystem::path messages_file(std::size_t rank) const;

  std::filesystem::path out_;
  // 0 for a process that has ended or was not started.
  std::vector<pid_t> processes_;
};

}  // namespace shardwright::executor
