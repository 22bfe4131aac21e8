// Runs of the executor as real processes, observed from outside.
#pragma once

#include <sys/types.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright::executor {

// Two data-parallel ranks times two stages, ZeRO-1, of a small Llama.
inline constexpr int kRanks = 4;
inline constexpr int kSteps = 30, kCheckpointEvery = 5;

// Writes the plan file of a model.
void write_scenario(const ModelSpec& model, const Plan& plan, const std::filesystem::path& file);

// Makes a small corpus.
std::filesystem::path text_file();

// Returns the executor's command line, with a checkpoint each five steps. An empty `data` stands
// for a text.
std::vector<std::string> run_arguments(const std::filesystem::path& out, int steps = kSteps,
                                       const std::filesystem::path& data = {});

class StartedRun {
 public:
  // Trains into `out`, with a checkpoint each five steps unless `more` has --checkpoint-every. Its
  // messages go to a file beside `out`.
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

// Returns the program that the environment variable names, as tools/gpu_check sets it for those
// that it has packed, or else `built`.
inline std::string program(const char* variable, const char* built) {
  const char* chosen = std::getenv(variable);
  return chosen == nullptr ? built : chosen;
}

// Returns the losses in the metrics of a run, in order.
std::vector<double> losses_in(const std::filesystem::path& folder);
// Returns another figure of the steps that have it.
std::vector<double> figures_in(const std::filesystem::path& folder, const char* name);

// Options with a timeout that suffices on a busy machine.
inline const std::vector<std::string> kLimit = {"--timeout", "4"};

// Returns the losses of a StartedRun that nothing disturbs.
const std::vector<double>& undisturbed_losses();

void expect_intact_checkpoints(const std::filesystem::path& run);

// Ranks as torchrun starts them: processes that find each other by their environment, without our
// launcher.
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
