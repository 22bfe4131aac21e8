// `shardwright fit training`.
#pragma once

#include <string>
#include <vector>

#include "cli/options/common_options.hpp"
#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

struct TrainingFitRequest {
  std::vector<std::string> files;
  // The grades of the rows to use.
  std::string grades;
  // Folder for the changed profiles; empty: none are written.
  std::string out;
};

// Fits figures of accelerators and stacks to measured steps and prints them.
ExitCode fit_training_steps(const TrainingFitRequest& request, const CommonOptions& common);

}  // namespace shardwright::cli
