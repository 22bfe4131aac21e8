// `shardwright fit training`.
#pragma once

#include <string>
#include <vector>

#include "cli/options/common_options.hpp"
#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

struct TrainingFitRequest {
  std::vector<std::string> files;
  std::string grades;  // rows of these grades
  std::string out;     // folder for the changed profiles; empty: none are written
};

// Fits figures of accelerators and stacks to measured steps and prints them.
ExitCode fit_training_steps(const TrainingFitRequest& request, const CommonOptions& common);

}  // namespace shardwright::cli
