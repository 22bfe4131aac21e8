// The sizes that one rank works on: a model's layer cut by a plan's degrees.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

struct ShardShape {
  std::int64_t tokens =
      0;  // of a microbatch on a context-parallel rank: micro_batch * seq_len / cp
  std::int64_t residual_tokens =
      0;  // of these, held outside of the tensor-parallel GEMMs: / tp with sequence parallelism
  std::int64_t sequences = 0;        // of a microbatch
  std::int64_t sequence_tokens = 0;  // of one sequence on a context-parallel rank
  std::int64_t hidden = 0;
  std::int64_t heads = 0;      // of a tensor-parallel rank
  std::int64_t kv_heads = 0;   // at least one: replicated where tp exceeds the model's
  std::int64_t head_dim = 0;   // of queries and keys
  std::int64_t value_dim = 0;  // of values
  std::int64_t vocab = 0;      // of a tensor-parallel rank, rounded up
  double element = 2.0;        // bytes of an activation
  bool gathers_sequence =
      false;  // tensor and sequence parallel: all-gather and reduce-scatter around the GEMMs
};

ShardShape shard_shape(const ModelSpec& model, const Plan& plan);

// Multi-token-prediction layers that the plan trains: all that the model has, or none.
std::int64_t trained_mtp_layers(const ModelSpec& model, const Plan& plan);

// True if the output head (tied to it) or the multi-token-prediction layers (which embed the next
// token) use the embedding: a last stage that is not the first one then holds a copy of it, and the
// two add up their gradients.
bool shares_embedding(const ModelSpec& model, const Plan& plan);

// Layers of one model chunk: `count` layers from `first` on.
struct LayerRange {
  std::int64_t first = 0;
  std::int64_t count = 0;

  bool operator==(const LayerRange&) const = default;
};

// Splits the layers into plan.chunks() ranges in the order of the forward pass: as
// plan.stage_layers says, or evenly. The remainder goes to the first chunks, sparing the ends where
// embedding or head count as layers; trained multi-token-prediction layers count as layers of the
// last one.
std::vector<LayerRange> split_layers(const ModelSpec& model, const Plan& plan);

}  // namespace shardwright
