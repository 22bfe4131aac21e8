// The arguments of Megatron-LM in its checkpoints.
#pragma once

#include <optional>
#include <string>

#include "core/base/pickle.hpp"
#include "planner/import/launch_arguments.hpp"

namespace shardwright::planner {

// Reads the namespace "args" of `common.pt` and of `model_optim_rng.pt`; none where the document
// has none. Values are written as logs write them. Throws InputError where "args" are not those of
// a model.
std::optional<LaunchArguments> checkpoint_arguments(const PickleValue& document,
                                                    const std::string& source);

}  // namespace shardwright::planner
