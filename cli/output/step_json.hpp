// A simulated step as JSON: one element of the `plans` of the command `plan`, and the document of
// `simulate`.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>

#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::cli {

// {"plan", "step_s", "step_interval_s", "confidence", "tokens_per_s_per_gpu", "tflops_per_gpu",
// "mfu", "hfu", "fits", "shortfall_bytes", "memory", "time", "stages"}. "step_interval_s" is
// [low, high], or null without an interval. "fits" is true if the peak is within the memory of an
// accelerator. Only the members of "exposed" and "breakdown" are seconds and bytes without a
// suffix.
nlohmann::ordered_json step_json(const Scenario& scenario, const sim::StepResult& result,
                                 const validation::Confidence& confidence);

// The memory that the fullest accelerator lacks; 0 if the step fits.
Bytes memory_shortfall(const sim::StepResult& result, const ClusterSpec& cluster);

// {"busy_s", "idle_s"} of each stream that is used, by name.
nlohmann::ordered_json streams_json(const EnumArray<Stream, sim::StreamUse>& streams);

// Adds the documents "model", "cluster" and "stack", as in plan files, so that a result can be
// opened anywhere.
void add_parts(nlohmann::ordered_json& document, const ModelSpec& model, const ClusterSpec& cluster,
               const StackSpec& stack);

// {"model", "cluster", "stack"}: the names of the inputs.
nlohmann::ordered_json inputs_json(const ModelSpec& model, const ClusterSpec& cluster,
                                   const StackSpec& stack);

}  // namespace shardwright::cli
