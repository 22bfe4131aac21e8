#include "executor/launch/run_folder.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "core/base/error.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/telemetry/metrics_log.hpp"

namespace shardwright::executor {
namespace {

// An unreadable folder counts as not empty.
bool is_not_empty(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(folder, error))) return false;
  return !std::filesystem::is_empty(folder, error) || error;
}

// The metrics replace files, pipes and devices, but cannot replace a folder.
void refuse_folder_for_metrics(const RunOptions& options) {
  std::error_code error;
  if (!is_directory(std::filesystem::symlink_status(options.metrics_file(), error))) return;
  throw InputError(options.metrics_file().string(),
                   {{"", "a folder", "a file, or nothing: the run writes its metrics there"}});
}

// A run that starts anew would lose them.
void refuse_steps_without_checkpoint(const RunOptions& options, std::int64_t steps) {
  if (steps == 0 || !CheckpointFolder(options.checkpoint_folder()).steps().empty()) return;
  throw InputError(
      "--resume",
      {{"",
        fmt::format("no checkpoint in {}, and metrics of {} steps in {}",
                    options.checkpoint_folder().string(), steps, options.metrics_file().string()),
        "a checkpoint to resume from, or --force as well to start anew without them"}});
}

}  // namespace

void check_run_folder(const RunOptions& options) {
  if (options.resume) {
    // Counting them also checks that their lines can be read.
    std::int64_t steps = 0;
    for_each_earlier_step(options.metrics_file(), [&](auto&&...) { ++steps; });
    if (!options.force) refuse_steps_without_checkpoint(options, steps);
  }
  refuse_folder_for_metrics(options);
  if (options.force || options.resume) return;
  const auto refuse = [](const std::filesystem::path& found) {
    throw InputError(
        "--out", {{"", found.string(), "a folder without an earlier run, --resume or --force"}});
  };
  if (std::filesystem::exists(options.metrics_file())) refuse(options.metrics_file());
  if (is_not_empty(options.checkpoint_folder())) refuse(options.checkpoint_folder());
}

FolderLock prepare_run_folder(const RunOptions& options) {
  const auto check = [](const std::error_code& error) {
    if (error) throw InputError("--out", {{"", error.message(), "a folder that can be written"}});
  };
  std::error_code error;
  std::filesystem::create_directories(options.out, error);
  check(error);
  FolderLock lock(options.out, FolderLock::IfHeld::GiveUp);
  if (!lock.is_ours()) {
    throw InputError("--out", {{"", options.out.string() + ", which another run is writing into",
                                "a folder of its own for each run"}});
  }
  // Check again: another run may have ended here in the meantime.
  check_run_folder(options);
  if (!options.resume) std::filesystem::remove_all(options.checkpoint_folder(), error);
  check(error);
  return lock;
}

}  // namespace shardwright::executor
