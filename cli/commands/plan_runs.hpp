// shardwright plan for a whole run whose number of GPUs or batch is open
#pragma once

#include <string>

#include "cli/options/common_options.hpp"
#include "cli/options/request_options.hpp"
#include "cli/options/run_options.hpp"
#include "cli/output/exit_code.hpp"

namespace shardwright::cli {

// Searches GPUs, batch and plan of the run, and prints the choices. `plan_out`: file for the plan
// of the best one by the request's objective; empty: none.
ExitCode plan_runs(const CommonOptions& options, const ChosenRequest& chosen, const ChosenRun& run,
                   const std::string& plan_out);

}  // namespace shardwright::cli
