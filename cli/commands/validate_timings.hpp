// `shardwright validate --kernels` and `--collectives`.
#pragma once

#include <optional>
#include <string>

#include "cli/options/common_options.hpp"
#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

struct TimingOptions {
  // Files; empty if not asked for.
  std::string kernels, collectives;
  // "MEDIAN,P90" in percent.
  std::optional<std::string> fail_over;
  bool every_row = false;
};

// Compares predicted timings with those of one of the two files and prints them.
ExitCode validate_timings(const TimingOptions& options, const CommonOptions& common);

}  // namespace shardwright::cli
