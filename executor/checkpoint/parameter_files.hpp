// Transfers a rank's parameters to and from the files of a checkpoint. The files hold whole tensors
// under every plan, so a run can resume under another plan.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "executor/runtime/parameter_store.hpp"

namespace shardwright::executor {

// Creates the files that the ranks then write into. Throws RuntimeFailure.
void create_parameter_files(const std::filesystem::path& folder, const ModelSpec& model);

// Bytes of the tensors in these files.
std::uintmax_t checkpoint_bytes(const ModelSpec& model);

// The part of a parameter that one rank writes: elements `range` of the unit that contains the
// slice.
struct ParameterPiece {
  ParameterSlice slice;
  ElementRange range;
  // Indexed by OptimizerArray.
  std::array<std::vector<float>, 3> values;
};

// Copies the parameters of which this rank is the first or only holder. `pieces` is empty or an
// earlier copy of the same parameters, whose memory is used again.
void copy_parameters(const ParameterStore& parameters, std::vector<ParameterPiece>& pieces);

// Throws RuntimeFailure.
void write_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                      const std::vector<ParameterPiece>& pieces);

// Reads all parameters that this rank holds. Throws RuntimeFailure.
void read_parameters(const std::filesystem::path& folder, const ModelSpec& model,
                     ParameterStore& parameters);

// Sets the weights to published ones that were checked against the model, and leaves the
// optimizer's moments alone. Throws InputError with each tensor of which this rank holds values
// that are not finite.
void read_weights(const WeightFiles& files, const ModelSpec& model, ParameterStore& parameters);

}  // namespace shardwright::executor
