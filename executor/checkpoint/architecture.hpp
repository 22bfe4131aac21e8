// What tells models apart that compute something else from their parameters.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/model_spec.hpp"

namespace shardwright::executor {

// The members of the spec but for what the model is called, where it comes from, and what a plan
// chooses.
nlohmann::json architecture_of(const ModelSpec& model);

// Of the architecture: equal for models that compute the same from the same parameters.
std::string sum_of(const ModelSpec& model);

}  // namespace shardwright::executor
