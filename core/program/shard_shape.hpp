// The sizes that one rank works on: a model's layer cut by a plan's degrees.
#pragma once

#include <cstdint>
#include <vector>

#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

struct ShardShape {
  // Tokens of a microbatch on a context-parallel rank: micro_batch * seq_len / cp.
  std::int64_t tokens = 0;
  // Tokens that the rank holds outside of the tensor-parallel GEMMs: a tp-th part of all with
  // sequence parallelism.
  std::int64_t residual_tokens = 0;
  // Sequences of a microbatch, and tokens of one of them on a context-parallel rank.
  std::int64_t sequences = 0;
  std::int64_t sequence_tokens = 0;
  std::int64_t hidden = 0;
  // Heads of a tensor-parallel rank. It holds at least one key/value head: ranks share copies if
  // tp exceeds the model's number.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  // The width of a head's queries and keys, and of its values.
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  // The vocabulary of a tensor-parallel rank, rounded up.
  std::int64_t vocab = 0;
  // Bytes of an activation.
  double element = 2.0;
  // True with tensor and sequence parallelism: an all-gather and a reduce-scatter surround the
  // GEMMs.
  bool gathers_sequence = false;

  // Elements of a hidden state outside of the tensor-parallel GEMMs, and inside of them.
  double residual_elements() const { return static_cast<double>(residual_tokens * hidden); }
  double gathered_elements() const { return static_cast<double>(tokens * hidden); }
};

ShardShape shard_shape(const ModelSpec& model, const Plan& plan);

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
