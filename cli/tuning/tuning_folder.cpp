#include "cli/tuning/tuning_folder.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>

#include "cli/output/output_file.hpp"
#include "core/base/error.hpp"
#include "core/base/json_reader.hpp"

namespace shardwright::cli {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Compares with an earlier study, of which the step times stay.
void check_same_study(const ordered_json& earlier, const ordered_json& now,
                      const std::string& file) {
  ProblemList problems(file);
  for (const auto& [name, value] : now.items()) {
    if (name == "step_s" || earlier.value(name, ordered_json()) == value) continue;
    problems.add(
        "/study/" + name, shown(earlier.value(name, ordered_json())),
        fmt::format("{}, as it is asked for now (or --force to begin anew)", shown(value)));
  }
  problems.throw_if_any();
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw InputError("--out", {{"", error.message(), "a folder that can be written"}});
}

void remove_trials(const fs::path& folder) {
  std::vector<fs::path> found = {folder / "plans"};
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("trial-")) found.push_back(entry.path());
  }
  for (const fs::path& path : found) fs::remove_all(path);
}

}  // namespace

TuningFolder::TuningFolder(fs::path folder, const ordered_json& study, Earlier earlier)
    : folder_(std::move(folder)) {
  make_folder(folder_);
  lock_.emplace(folder_, FolderLock::IfHeld::GiveUp);
  if (!lock_->is_ours()) {
    throw InputError("--out", {{"", folder_.string() + ", which another tuning is writing into",
                                "a folder of its own for each tuning"}});
  }
  const bool exists = fs::exists(file());
  if (exists && earlier == Earlier::Refuse) {
    throw InputError("--out",
                     {{"", file(), "a folder without an earlier tuning, --resume or --force"}});
  }
  if (exists && earlier == Earlier::Resume) {
    read_results();
    check_same_study(document_.at("study"), study, file());
    return;
  }
  if (exists) {
    remove_trials(folder_);
  } else if (!fs::is_empty(folder_)) {
    throw InputError("--out", {{"", folder_.string() + ", which holds something else",
                                "an empty folder, or one of an earlier tuning"}});
  }
  document_ = {{"schema", planner::kStudySchema},
               {"version", 1},
               {"study", study},
               {"results", ordered_json::array()}};
  write_file(file(), json_text(document_), true);
}

void TuningFolder::read_results() {
  for (const planner::StudyResult& result : planner::read_study_file(file()).results)
    losses_[{result.trial, result.rung}] = result.loss;
  // Its members keep their order.
  std::ifstream stream(file());
  document_ = ordered_json::parse(stream);
}

std::optional<double> TuningFolder::loss_of(const planner::TrialJob& job) const {
  const auto found = losses_.find({job.trial, job.rung});
  return found == losses_.end() ? std::nullopt : std::optional(found->second);
}

void TuningFolder::record(const planner::TrialJob& job, std::int64_t steps, double loss) {
  losses_[{job.trial, job.rung}] = loss;
  document_["results"].push_back({{"trial", job.trial},
                                  {"rung", job.rung},
                                  {"values", job.values},
                                  {"steps", steps},
                                  {"loss", finite_or_null(loss)}});
  write_file(file(), json_text(document_), true);
}

fs::path TuningFolder::trial(std::size_t number) const {
  return folder_ / planner::trial_folder(number);
}

}  // namespace shardwright::cli
