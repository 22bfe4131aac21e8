// The layout of a rank's parameters under its program.
#pragma once

#include <cstdint>

#include "core/program/program.hpp"
#include "core/spec/model_spec.hpp"
#include "executor/runtime/parameter_layout.hpp"

namespace shardwright::executor {

// Units are padded for the ranks, or the parameter servers, that share them.
ParameterLayout rank_layout(const Program& program, const ModelSpec& model, std::int64_t rank);

}  // namespace shardwright::executor
