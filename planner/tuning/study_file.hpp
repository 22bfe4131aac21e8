// The file in which a tuning keeps what its trials have reached, and the folders of the trials
// beside it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "planner/tuning/study.hpp"

namespace shardwright::planner {

inline constexpr const char* kStudyFile = "tuning.json";
inline constexpr const char* kStudySchema = "shardwright/tuning";

// The loss at the end of a job; infinite if the trial diverged.
struct StudyResult {
  std::size_t trial = 0, rung = 0;
  std::vector<double> values;
  // Of the trial since its beginning.
  std::int64_t steps = 0;
  double loss = 0.0;
};

struct StudyRecord {
  // What trials vary, the search and its rungs; the rest of the rules is not read.
  StudyRules rules;
  // In the order in which the jobs ended.
  std::vector<StudyResult> results;
};

// Throws InputError with every problem of the file.
StudyRecord read_study_file(const std::string& file);

// "trial-0003", the folder of a trial's run.
std::string trial_folder(std::size_t trial);

}  // namespace shardwright::planner
