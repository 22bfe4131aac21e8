// One rank of a run, from the rendezvous to the last step.
#pragma once

#include <string>

#include "core/spec/scenario.hpp"
#include "executor/launch/launch_place.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/launch/run_options.hpp"

namespace shardwright::executor {

// Trains. Rank 0 writes `out/metrics.jsonl` and prints the result; each rank writes a timeline
// `out/timeline-STEP-RANK.json` for each recorded step. `token` is the run's secret. Returns the
// exit status: 0, or kTerminatedStatus if SIGTERM ended the run with a checkpoint. Throws
// InputError, and RuntimeFailure that names rank, host and op.
int run_rank(const RunOptions& options, const Scenario& scenario, const LaunchPlace& place,
             Device device, const std::string& token);

}  // namespace shardwright::executor
