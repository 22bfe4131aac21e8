// A rank's parameters to and from the files of a checkpoint. The files hold whole tensors whatever
// the plan, so a run can go on under another one.
#pragma once

#include <filesystem>
#include <vector>

#include "core/program/rank_grid.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/runtime/parameter_store.hpp"

namespace shardwright::executor {

// Makes the files, for the ranks to write into. Throws RuntimeFailure.
void create_parameter_files(const std::filesystem::path& folder, const ModelSpec& model);

// A part of a parameter as a rank writes it: elements `range` of the unit that the slice lies in.
struct ParameterPiece {
  ParameterSlice slice;
  ElementRange range;
  std::vector<float> weights, first_moments, second_moments;
};

// Copies what this rank alone holds, or is the first of several to hold. `pieces` are those of an
// earlier copy of the same parameters, whose memory is used again, or none.
void copy_parameters(const ParameterStore& parameters, const RankCoordinates& place,
                     std::vector<ParameterPiece>& pieces);

// Throws RuntimeFailure.
void write_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                      const std::vector<ParameterPiece>& pieces);

// Reads all that this rank holds. Throws RuntimeFailure.
void read_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                     ParameterStore& parameters);

// Sets the weights to published ones that were checked against the model; the optimizer's moments
// stay as they are. Throws InputError with the tensors of which this rank holds what is not finite.
void read_weights(const WeightFiles& files, const ModelSpec& model, ParameterStore& parameters);

}  // namespace shardwright::executor
