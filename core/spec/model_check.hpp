// The rules between the fields of a model, whatever file format it came from.
#pragma once

#include <functional>
#include <string>

#include "core/base/error.hpp"
#include "core/spec/model_spec.hpp"

namespace shardwright {

// Where a field of ModelSpec stands in the file that was read: takes its pointer in our own format
// ("/attention/kv_heads") and returns the file's.
using FieldPointer = std::function<std::string(const std::string&)>;

// Adds a problem for each rule that `model` breaks: kv_heads divides heads, top_k is at most
// experts, …. Each field on its own must already be within the limits of model_limits.hpp.
void check_model(const ModelSpec& model, const FieldPointer& pointer, ProblemList& problems);

}  // namespace shardwright
