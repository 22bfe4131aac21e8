// The folder of a tuning: what its trials have reached, so that it can be continued.
//
//   tuning.json    the study and the losses of the jobs that are complete
//   trials.csv     a line for each trial
//   plans/         a plan for each batch
//   trial-0003/    an output folder of `shardwright run`, and the messages in run.log
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/folder_lock.hpp"
#include "planner/tuning/study.hpp"
#include "planner/tuning/study_file.hpp"

namespace shardwright::cli {

class TuningFolder {
 public:
  enum class Earlier { Refuse, Resume, Remove };

  // `study` is what the results depend on. Creates and locks the folder. Throws InputError if it
  // holds an earlier tuning that is to be refused, or one of another study, or if another command
  // holds it.
  TuningFolder(std::filesystem::path folder, const nlohmann::ordered_json& study, Earlier earlier);

  // The study as it was begun.
  const nlohmann::ordered_json& study() const { return document_.at("study"); }

  // The loss of a job that is complete; nothing if it is not.
  std::optional<double> loss_of(const planner::TrialJob& job) const;
  // Writes the file anew, as a whole.
  void record(const planner::TrialJob& job, std::int64_t steps, double loss);

  std::filesystem::path trial(std::size_t number) const;
  std::filesystem::path path() const { return folder_; }

 private:
  void read_results();
  std::string file() const { return folder_ / planner::kStudyFile; }

  std::filesystem::path folder_;
  std::optional<FolderLock> lock_;
  nlohmann::ordered_json document_;
  // By trial and rung.
  std::map<std::pair<std::size_t, std::size_t>, double> losses_;
};

}  // namespace shardwright::cli
