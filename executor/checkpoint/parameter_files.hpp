// A rank's parameters to and from the files of a checkpoint. The files hold whole tensors whatever
// the plan, so a run can go on under another one.
#pragma once

#include <filesystem>

#include "core/program/rank_grid.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/runtime/parameter_store.hpp"

namespace shardwright::executor {

// Makes the files, for the ranks to write into. Throws RuntimeFailure.
void create_parameter_files(const std::filesystem::path& folder, const ModelSpec& model);

// Writes what this rank alone holds, or is the first of several to hold. Throws RuntimeFailure.
void write_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                      const ParameterStore& parameters, const RankCoordinates& place);

// Reads all that this rank holds. Throws RuntimeFailure.
void read_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                     ParameterStore& parameters);

}  // namespace shardwright::executor
