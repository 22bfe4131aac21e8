// The rules between the fields of a model, whatever file format it came from.
#pragma once

#include <functional>
#include <string>

#include "core/base/error.hpp"
#include "core/spec/model_spec.hpp"

namespace shardwright {

// Maps the pointer of a field in our own format ("/attention/kv_heads") to that in the file that
// was read.
using FieldPointer = std::function<std::string(const std::string&)>;

// Adds a problem for each rule that `model` breaks: kv_heads divides heads, top_k is at most
// experts, …. Each field on its own must already be within the limits of model_limits.hpp.
void check_model(const ModelSpec& model, const FieldPointer& pointer, ProblemList& problems);

}  // namespace shardwright
