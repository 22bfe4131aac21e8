// Small models, and runs of them with each rank as a thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "executor/runtime/training_options.hpp"

namespace shardwright::executor {

// Llama: RMSNorm, rotary positions, SwiGLU, grouped queries.
ModelSpec small_llama();
// GPT-2: LayerNorm with biases, learned positions, GELU, tied embeddings.
ModelSpec small_gpt2();

// One rank, fp32, no ZeRO.
Plan one_rank_plan();

// Losses of each step of a run on a made-up text.
std::vector<double> train(const ModelSpec& model, const Plan& plan, const TrainingOptions& options);

}  // namespace shardwright::executor
