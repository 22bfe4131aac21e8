#include "executor/launch/run_folder.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include "core/base/error.hpp"
#include "executor/telemetry/earlier_metrics.hpp"

namespace shardwright::executor {
namespace {

// A folder that cannot be read counts as one that holds something.
bool holds_something(const std::filesystem::path& folder) {
  std::error_code error;
  if (!std::filesystem::exists(std::filesystem::symlink_status(folder, error))) return false;
  return !std::filesystem::is_empty(folder, error) || error;
}

}  // namespace

void check_run_folder(const RunOptions& options) {
  // Whether its lines can be read.
  if (options.resume) for_each_earlier_step(options.metrics_file(), [](auto&&...) {});
  if (options.force || options.resume) return;
  const auto refuse = [](const std::filesystem::path& found) {
    throw InputError(
        "--out", {{"", found.string(), "a folder without an earlier run, --resume or --force"}});
  };
  if (std::filesystem::exists(options.metrics_file())) refuse(options.metrics_file());
  if (holds_something(options.checkpoint_folder())) refuse(options.checkpoint_folder());
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
  check_run_folder(options);  // again: a run may have ended in it meanwhile
  if (!options.resume) std::filesystem::remove_all(options.checkpoint_folder(), error);
  check(error);
  return lock;
}

}  // namespace shardwright::executor
