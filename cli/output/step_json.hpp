// A simulated step as JSON: one element of the `plans` of the command `plan`, and the document of
// `simulate`.
#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/plan.hpp"
#include "core/spec/scenario.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::cli {

// {"plan", "step_s", "step_interval_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu", "hfu",
// "fits", "shortfall_bytes", "memory", "time", "stages"}; "fits": the peak is within an
// accelerator's memory. Seconds and bytes without a suffix only inside of "exposed" and
// "breakdown".
nlohmann::ordered_json step_json(const Plan& plan, const sim::StepResult& result,
                                 const ClusterSpec& cluster, const StackSpec& stack);

// The memory that the fullest accelerator lacks; 0 where the step fits.
Bytes memory_shortfall(const sim::StepResult& result, const ClusterSpec& cluster);

// [low, high], or null: validation::step_interval.
nlohmann::ordered_json interval_json(Seconds predicted, const ClusterSpec& cluster,
                                     const StackSpec& stack);

// By name, {"busy_s", "idle_s"} of the streams that are used.
nlohmann::ordered_json streams_json(const std::array<sim::StreamUse, kStreams>& streams);

// Adds the documents "model", "cluster" and "stack", as plan files hold them, so that a result can
// be opened wherever and whenever it is read.
void add_parts(nlohmann::ordered_json& document, const ModelSpec& model, const ClusterSpec& cluster,
               const StackSpec& stack);

// {"model", "cluster", "stack"}: the names of what an answer rests on.
nlohmann::ordered_json inputs_json(const ModelSpec& model, const ClusterSpec& cluster,
                                   const StackSpec& stack);

}  // namespace shardwright::cli
