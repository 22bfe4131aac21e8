// The inputs of a run that its ranks compare before they train.
#pragma once

#include <string>

#include "core/spec/scenario.hpp"
#include "executor/data/token_file.hpp"
#include "executor/launch/agreement.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/launch/run_options.hpp"

namespace shardwright::executor {

// Returns the options that change what a step does to the weights, except the seed.
RunInputs hyperparameters_of(const RunOptions& options, const Plan& plan);

// Returns the inputs on which the result of a run depends, for comparison between its ranks: model,
// stack and each member of the plan; size and checksum of the data; the checksum of initial
// weights; every option that changes computation or communication; and the program's version.
// Excludes what may differ between ranks: paths, the cluster's figures, the recorded steps. Throws
// InputError if weights cannot be read.
RunInputs inputs_of(const RunOptions& options, const Scenario& scenario, Device device,
                    const TokenFile& data, const std::string& data_checksum);

}  // namespace shardwright::executor
