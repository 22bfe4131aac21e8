// What the result of a run rests on, as its ranks tell it to each other.
#pragma once

#include <string>

#include "core/spec/scenario.hpp"
#include "executor/data/token_file.hpp"
#include "executor/launch/agreement.hpp"
#include "executor/launch/rank_backend.hpp"
#include "executor/launch/run_options.hpp"

namespace shardwright::executor {

// The model, the stack and each member of the plan; the data, by size and sum; the weights to begin
// with, by their sum; every option that changes what is computed or exchanged; and the version of
// the program. Not what ranks may have for themselves: paths, the cluster's figures, the recorded
// steps. `data_sum` is that of `data`. Throws InputError if weights cannot be read.
RunInputs inputs_of(const RunOptions& options, const Scenario& scenario, Device device,
                    const TokenFile& data, const std::string& data_sum);

}  // namespace shardwright::executor
