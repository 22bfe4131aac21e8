#include "core/program/shard_shape.hpp"

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright {
namespace {

std::int64_t divide_up(std::int64_t amount, std::int64_t parts) {
  return (amount + parts - 1) / parts;
}

std::vector<std::int64_t> even_split(const ModelSpec& model, const Plan& plan) {
  const auto chunks = static_cast<std::size_t>(plan.chunks());
  const std::int64_t head = plan.head_counts_as_layer ? 1 : 0;
  const std::int64_t layers = model.layers + (plan.embedding_counts_as_layer ? 1 : 0) + head;
  // Multi-token-prediction layers are layers of the last chunk, as far as it has room for them.
  std::int64_t further = trained_mtp_layers(model, plan);
  while ((layers + further) / plan.chunks() < head + further) --further;
  const std::int64_t units = layers + further;
  std::vector<std::int64_t> counts(chunks, units / plan.chunks());
  for (std::size_t i = 0; i < static_cast<std::size_t>(units % plan.chunks()); ++i) ++counts[i];
  if (plan.embedding_counts_as_layer) --counts.front();
  counts.back() -= head + further;
  return counts;
}

}  // namespace

ShardShape shard_shape(const ModelSpec& model, const Plan& plan) {
  const AttentionSpec& attention = model.attention;
  ShardShape shape;
  shape.sequences = plan.micro_batch;
  shape.sequence_tokens = plan.seq_len / plan.cp;
  shape.tokens = shape.sequences * shape.sequence_tokens;
  shape.gathers_sequence = plan.tp > 1 && plan.sequence_parallel;
  shape.residual_tokens = shape.gathers_sequence ? shape.tokens / plan.tp : shape.tokens;
  shape.hidden = model.hidden;
  shape.heads = attention.heads / plan.tp;
  shape.kv_heads = std::max<std::int64_t>(1, attention.kv_heads / plan.tp);
  shape.head_dim = attention.head_dim;
  shape.value_dim = attention.value_head_dim();
  shape.vocab = divide_up(model.vocab, plan.tp);
  shape.element = storage_bytes(plan.precision).value();
  return shape;
}

std::vector<LayerRange> split_layers(const ModelSpec& model, const Plan& plan) {
  const std::vector<std::int64_t> counts =
      plan.stage_layers.empty() ? even_split(model, plan) : plan.stage_layers;
  SHARDWRIGHT_CHECK(static_cast<std::int64_t>(counts.size()) == plan.chunks(),
                    "stage_layers of another pipeline");
  std::vector<LayerRange> ranges;
  std::int64_t first = 0;
  for (const std::int64_t count : counts) {
    ranges.push_back({first, count});
    first += count;
  }
  SHARDWRIGHT_CHECK(first == model.layers, "stage_layers do not add up to the model's layers");
  return ranges;
}

}  // namespace shardwright
