// The architecture of a model: what decides which results it computes from its parameters.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/model_spec.hpp"

namespace shardwright::executor {

// Returns the members of the spec without the model's names, its source and what a plan chooses.
nlohmann::json architecture_of(const ModelSpec& model);

// Returns a checksum of the architecture: equal for models that compute the same from the same
// parameters.
std::string architecture_checksum(const ModelSpec& model);

}  // namespace shardwright::executor
