// A run of the executor as real processes, observed from outside.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardwright::executor {

// Two data-parallel ranks times two stages, ZeRO-1, of a small Llama.
inline constexpr int kRanks = 4;
inline constexpr int kSteps = 30, kCheckpointEvery = 5;

// Returns the executor's command line, with a checkpoint each five steps. An empty `data` stands
// for a text.
std::vector<std::string> run_arguments(const std::filesystem::path& out, int steps = kSteps,
                                       const std::filesystem::path& data = {});

class StartedRun {
 public:
  // Trains into `out`, with a checkpoint each five steps. Its messages go to a file beside `out`.
  // An empty `plan` stands for the one above.
  StartedRun(std::filesystem::path out, std::vector<std::string> more, int steps = kSteps,
             const std::filesystem::path& data = {}, const std::filesystem::path& plan = {});
  ~StartedRun();
  StartedRun(const StartedRun&) = delete;
  StartedRun& operator=(const StartedRun&) = delete;

  // Returns the ranks' processes by rank, once all have been started.
  std::vector<pid_t> ranks() const { return first_ranks(kRanks); }
  // The same for the first `count` ranks or more, as soon as they exist.
  std::vector<pid_t> first_ranks(std::size_t count) const;
  pid_t launcher() const { return launcher_; }
  bool is_running() { return !has_ended(); }
  // Returns the exit status; -1 if the run does not end within two minutes, far beyond its own
  // limits.
  int wait();
  // Returns its standard error.
  std::string messages() const;
  // Returns the number of steps with metrics.
  std::size_t steps_done() const;
  // Waits for so many steps or the end of the run.
  void wait_for_steps(std::size_t steps);

 private:
  bool has_ended();

  std::filesystem::path out_, messages_;
  pid_t launcher_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

// Returns the path of a new folder and removes an old one.
std::filesystem::path empty_run_folder(const std::string& name);

// Returns the losses in the metrics of a run, in order.
std::vector<double> losses_in(const std::filesystem::path& folder);
// Returns the noise scales of the steps that have one.
std::vector<double> noise_scales_in(const std::filesystem::path& folder);

}  // namespace shardwright::executor
