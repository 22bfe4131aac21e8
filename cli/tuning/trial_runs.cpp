#include "cli/tuning/trial_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "calibration/measured_run.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/output_file.hpp"
#include "cli/programs/sibling_programs.hpp"
#include "core/base/error.hpp"
#include "core/base/folder_lock.hpp"
#include "core/base/standard_streams.hpp"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLog = "run.log";
// Other trials of a population continue from the end of a rung, so that none of these is removed.
constexpr std::int64_t kKeptCheckpoints = 1'000'000;
constexpr std::chrono::milliseconds kBetweenPolls{10};

// The mean over the last tenth of the steps, because each alone is noisy; at least over five, if
// the job has so many.
double loss_at_end(const std::vector<calibration::TrainedStep>& steps, std::size_t of_job) {
  constexpr std::size_t kFewest = 5, kPart = 10;
  const std::size_t count =
      std::min({steps.size(), of_job, std::max(kFewest, steps.size() / kPart)});
  double sum = 0.0;
  for (std::size_t i = steps.size() - count; i < steps.size(); ++i) sum += steps[i].loss;
  return sum / static_cast<double>(count);
}

std::string last_line_of(const fs::path& file) {
  std::ifstream stream(file);
  std::string last;
  for (std::string line; std::getline(stream, line);) {
    if (!line.empty()) last = line;
  }
  return last;
}

}  // namespace

TrialRuns::TrialRuns(const TuneOptions& options, const TuningSetup& setup, TuningFolder& folder,
                     const StopSignalsHeld& held)
    : options_(options), setup_(setup), folder_(folder), held_(held), executor_(find_executor()) {}

void TrialRuns::start(const planner::TrialJob& job, std::size_t worker) {
  if (folder_.loss_of(job)) return;
  const fs::path trial = folder_.trial(job.trial);
  fs::create_directories(trial);
  {
    // What a tuning that was killed has left running ends a moment later.
    const FolderLock ended(trial, FolderLock::IfHeld::Wait);
  }
  if (job.copied_from) copy_state(job);
  running_[worker] =
      std::make_unique<ChildProcess>(command_of(job), trial / kLog, held_, gpus_of(worker));
}

double TrialRuns::finish(const planner::TrialJob& job, std::size_t worker) {
  if (const auto known = folder_.loss_of(job)) return *known;
  std::optional<int> status;
  while (!(status = running_.at(worker)->poll())) {
    const int signal = held_.take(kBetweenPolls);
    if (signal == 0) continue;
    stop_all();
    throw TuningStopped{signal};
  }
  running_.erase(worker);
  const double loss = loss_of(job, *status);
  folder_.record(job, setup_.steps_at(job.values, job.rung), loss);
  return loss;
}

std::int64_t TrialRuns::between_checkpoints(const planner::TrialJob& job) const {
  const std::int64_t before = job.rung == 0 ? 0 : setup_.steps_at(job.values, job.rung - 1);
  return std::max<std::int64_t>(
      1, (setup_.steps_at(job.values, job.rung) - before) / kCheckpointsOfJob);
}

// Each continues from its last checkpoint, or begins again what it has not saved.
std::vector<std::string> TrialRuns::command_of(const planner::TrialJob& job) const {
  std::vector<std::string> command = {executor_,
                                      plan_file(setup_.plan_of(job.values)),
                                      "--local",
                                      "--data",
                                      options_.data,
                                      "--out",
                                      folder_.trial(job.trial),
                                      "--steps",
                                      std::to_string(setup_.all_steps(job.values)),
                                      "--stop-after",
                                      std::to_string(setup_.steps_at(job.values, job.rung)),
                                      "--checkpoint-every",
                                      std::to_string(between_checkpoints(job)),
                                      "--keep",
                                      std::to_string(kKeptCheckpoints),
                                      "--seed",
                                      std::to_string(setup_.rules.seed),
                                      "--device",
                                      options_.device.empty() ? "auto" : options_.device,
                                      "--resume",
                                      "--force",
                                      "--no-progress",
                                      "--timeline-steps",
                                      "0"};
  if (setup_.validation_ratio > 0.0) {
    command.push_back("--validation-ratio");
    command.push_back(fmt::format("{}", setup_.validation_ratio));
  }
  for (std::size_t i = 0; i < job.values.size(); ++i) {
    const planner::TunedName name = setup_.rules.parameters[i].name;
    if (name == planner::TunedName::GlobalBatch) continue;
    command.push_back(fmt::format("--{}", name_of(name)));
    command.push_back(fmt::format("{}", job.values[i]));
  }
  return command;
}

// Trials that run at once have GPUs of their own.
std::vector<std::string> TrialRuns::gpus_of(std::size_t worker) const {
  if (setup_.gpus.empty()) return {};
  const auto each = static_cast<std::size_t>(setup_.scenario.plan.world_size());
  const std::span<const std::string> gpus(setup_.gpus);
  return {fmt::format("{}={}", kVisibleGpus, fmt::join(gpus.subspan(worker * each, each), ","))};
}

std::string TrialRuns::plan_file(const Plan& plan) const {
  const fs::path file = folder_.path() / "plans" / fmt::format("batch-{}.json", plan.global_batch);
  if (fs::exists(file)) return file;
  fs::create_directories(file.parent_path());
  Scenario scenario = setup_.scenario;
  scenario.plan = plan;
  write_file(file, json_text(to_json(scenario)), true);
  return file;
}

// The trial goes on from the state that the other one had at the rung before.
void TrialRuns::copy_state(const planner::TrialJob& job) const {
  const std::string name = fmt::format("step-{:08}", setup_.steps_at(job.values, job.rung - 1));
  const fs::path from = folder_.trial(*job.copied_from) / "checkpoints" / name;
  const fs::path to = folder_.trial(job.trial) / "checkpoints";
  fs::remove_all(to);
  fs::create_directories(to);
  fs::copy(from, to / name, fs::copy_options::recursive);
}

double TrialRuns::loss_of(const planner::TrialJob& job, int status) const {
  const fs::path trial = folder_.trial(job.trial);
  const std::int64_t before = job.rung == 0 ? 0 : setup_.steps_at(job.values, job.rung - 1);
  const auto of_job = static_cast<std::size_t>(setup_.steps_at(job.values, job.rung) - before);
  const bool complete = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const auto steps = calibration::trained_steps(trial);
  if (complete && !steps.empty()) {
    const double held_out = steps.back().validation_loss;
    return setup_.validation_ratio > 0.0 ? std::isfinite(held_out) ? held_out : INFINITY
                                         : loss_at_end(steps, of_job);
  }
  if (!steps.empty() && !std::isfinite(steps.back().loss)) return INFINITY;
  const bool refused =
      WIFEXITED(status) && WEXITSTATUS(status) == static_cast<int>(ExitCode::BadInput);
  const std::string text = fmt::format("trial {} failed: {}\n({})", job.trial,
                                       last_line_of(trial / kLog), (trial / kLog).string());
  if (!refused) throw RuntimeFailure(text);
  print_message(text);
  throw ExecutorRefused(text);
}

void TrialRuns::stop_all() {
  constexpr std::chrono::seconds kGrace{5};
  for (const auto& [worker, process] : running_) process->send(SIGTERM);
  const auto deadline = std::chrono::steady_clock::now() + kGrace;
  for (const auto& [worker, process] : running_) {
    while (!process->poll() && std::chrono::steady_clock::now() < deadline)
      std::this_thread::sleep_for(kBetweenPolls);
  }
  // The rest are killed with their objects.
  running_.clear();
}

}  // namespace shardwright::cli
