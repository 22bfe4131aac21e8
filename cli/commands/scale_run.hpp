// The best plans over a range of machine sizes, which `scale` prints, and `plan` for a range.
#pragma once

#include <string>

#include "cli/options/common_options.hpp"
#include "cli/options/request_options.hpp"
#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

// Searches each size and prints the result. `plan_out`: file for the fastest plan of all sizes;
// empty: none.
ExitCode run_scale(const CommonOptions& options, ChosenRequest& chosen,
                   const std::string& plan_out);

}  // namespace shardwright::cli
