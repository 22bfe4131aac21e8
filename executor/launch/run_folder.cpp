#include "executor/launch/run_folder.hpp"

#include <filesystem>
#include <string>
#include <system_error>

#include "core/base/error.hpp"

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
  if (options.force || options.resume) return;
  const auto refuse = [](const std::filesystem::path& found) {
    throw InputError(
        "--out", {{"", found.string(), "a folder without an earlier run, --resume or --force"}});
  };
  if (std::filesystem::exists(options.metrics_file())) refuse(options.metrics_file());
  if (holds_something(options.checkpoint_folder())) refuse(options.checkpoint_folder());
}

void prepare_run_folder(const RunOptions& options) {
  std::error_code error;
  if (!options.resume) std::filesystem::remove_all(options.checkpoint_folder(), error);
  if (!error) std::filesystem::create_directories(options.out, error);
  if (error) throw InputError("--out", {{"", error.message(), "a folder that can be written"}});
}

}  // namespace shardwright::executor
