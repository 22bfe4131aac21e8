// The best plans over a range of machine sizes: what `scale` prints, and `plan` for a range.
#pragma once

#include <string>

#include "cli/command.hpp"
#include "cli/request_options.hpp"

namespace shardwright::cli {

// Searches each size and prints the result. `plan_out`: file for the fastest plan of all sizes;
// empty: none.
ExitCode run_scale(const CommonOptions& options, ChosenRequest& chosen,
                   const std::string& plan_out);

}  // namespace shardwright::cli
