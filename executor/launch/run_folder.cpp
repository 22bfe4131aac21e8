#include "executor/launch/run_folder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/checkpoint/parameter_files.hpp"
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

// Returns the size of all files in a folder and in the folders below it.
std::uintmax_t bytes_below(const std::filesystem::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    const std::uintmax_t size = entry.is_regular_file(error) ? entry.file_size(error) : 0;
    if (!error) bytes += size;
  }
  return bytes;
}

// The nearest folder above that exists, or the path itself.
std::filesystem::path existing(std::filesystem::path path) {
  path = std::filesystem::absolute(path);
  std::error_code error;
  while (!std::filesystem::exists(path, error) && path.has_relative_path())
    path = path.parent_path();
  return path;
}

}  // namespace

void check_free_space(const RunOptions& options, const ModelSpec& model) {
  if (options.checkpoint_every == 0) return;
  // One more than are kept while it is written.
  const std::int64_t most =
      std::min(options.keep_checkpoints + 1, options.last_step() / options.checkpoint_every);
  const auto each = checkpoint_bytes(model);
  const std::uintmax_t needed = static_cast<std::uintmax_t>(most) * each;
  const std::filesystem::path disk = existing(options.checkpoint_folder());
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(disk, error);
  if (error || space.available + bytes_below(options.checkpoint_folder()) >= needed) return;
  const auto text = [](std::uintmax_t bytes) {
    return format_bytes(Bytes(static_cast<double>(bytes)));
  };
  throw InputError(
      "--out", {{"", fmt::format("{} of free space in {}", text(space.available), disk.string()),
                 fmt::format("{}: {} checkpoints of {} at the same time (--keep, and "
                             "the one that is being written)",
                             text(needed), most, text(each))}});
}

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
