// The ranks of a run on this machine, again after failures, or under another plan.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "executor/launch/run_options.hpp"

namespace shardwright::executor {

// Starts `world` ranks with the arguments that this process was given. Starts them again, from the
// newest checkpoint, after failures (RunOptions::restarts), with lost ranks left out until SIGUSR2
// says that they are back (elastic), and under plans with the batches or the shares of work that
// ranks ask for. Returns the exit status. Throws RuntimeFailure, ReportedElsewhere.
int launch_with_restarts(const RunOptions& options, std::int64_t world,
                         const std::vector<std::string>& given);

}  // namespace shardwright::executor
