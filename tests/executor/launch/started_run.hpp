// A run of the executor as real processes, watched from outside.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace shardwright::executor {

// 2 data-parallel ranks times 2 stages, ZeRO-1, of a small Llama.
inline constexpr int kRanks = 4;
inline constexpr int kSteps = 30, kCheckpointEvery = 5;

// The executor's command line, with a checkpoint each five steps.
// `data`: empty: a text.
std::vector<std::string> run_arguments(const std::filesystem::path& out, int steps = kSteps,
                                       const std::filesystem::path& data = {});

class StartedRun {
 public:
  // Trains into `out`, with a checkpoint each five steps. Its messages go to a file beside `out`.
  // `plan`: empty: the one above.
  StartedRun(std::filesystem::path out, std::vector<std::string> more, int steps = kSteps,
             const std::filesystem::path& data = {}, const std::filesystem::path& plan = {});
  ~StartedRun();
  StartedRun(const StartedRun&) = delete;
  StartedRun& operator=(const StartedRun&) = delete;

  // The ranks' processes in the order of their ranks, once all have been started.
  std::vector<pid_t> ranks() const { return first_ranks(kRanks); }
  // The same of the first `count` ranks or more, as soon as they are there.
  std::vector<pid_t> first_ranks(std::size_t count) const;
  pid_t launcher() const { return launcher_; }
  bool is_running() { return !has_ended(); }
  // Exit status; -1 if it does not end within two minutes, which is far beyond any limit of its
  // own.
  int wait();
  // What it said on standard error.
  std::string messages() const;
  // Steps whose metrics are written.
  std::size_t steps_done() const;
  // Until so many are, or the run has ended.
  void wait_for_steps(std::size_t steps);

 private:
  bool has_ended();

  std::filesystem::path out_, messages_;
  pid_t launcher_ = 0;
  int status_ = 0;
  bool ended_ = false;
};

// A new folder's name; what was there is removed.
std::filesystem::path empty_run_folder(const std::string& name);

// The losses of the steps in the metrics of a run, in their order.
std::vector<double> losses_in(const std::filesystem::path& folder);
// The noise scales likewise, of the steps that have one.
std::vector<double> noise_scales_in(const std::filesystem::path& folder);

}  // namespace shardwright::executor
