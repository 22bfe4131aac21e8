#include "core/lowering/stage_states.hpp"

#include <algorithm>

#include "core/program/groups.hpp"

namespace shardwright {

PartParameters stage_parameters(const ModelSpec& model, const BlockSet& blocks,
                                const PipelineSchedule& schedule,
                                const std::vector<LayerRange>& parts, std::int32_t stage) {
  PartParameters sum;
  const auto add = [&sum](const PartParameters& more) {
    sum.dense += more.dense;
    sum.expert += more.expert;
  };
  const auto last = static_cast<std::int32_t>(parts.size()) - 1;
  bool has_embedding = false, has_head = false;
  for (const std::int32_t position : schedule.position[static_cast<std::size_t>(stage)]) {
    const LayerRange& range = parts[static_cast<std::size_t>(position)];
    for (std::int64_t layer = range.first; layer < range.first + range.count; ++layer) {
      add(blocks.layer_parameters[static_cast<std::size_t>(
          blocks.kind_of_layer[static_cast<std::size_t>(layer)])]);
    }
    has_embedding = has_embedding || position == 0;
    has_head = has_head || position == last;
  }
  if (has_embedding) add(blocks.embedding_parameters);
  if (has_head) add(blocks.head_parameters);
  if (has_head && !has_embedding && model.tied_embeddings) add(blocks.embedding_parameters);
  return sum;
}

double dense_shards(const Plan& plan) {
  return static_cast<double>(group_size(Group::ShardInner, plan));
}

double expert_shards(const Plan& plan) {
  return static_cast<double>(group_size(Group::ExpertShardInner, plan));
}

Bytes gradient_placeholders(const BlockSet& blocks, const PipelineSchedule& schedule,
                            const std::vector<LayerRange>& parts, const Plan& plan,
                            std::int32_t stage) {
  double parameters = 0.0;
  for (const PartParameters& layer : blocks.layer_parameters)
    parameters = std::max(parameters, layer.dense);
  const auto last = static_cast<std::int32_t>(parts.size()) - 1;
  const auto& positions = schedule.position[static_cast<std::size_t>(stage)];
  if (std::find(positions.begin(), positions.end(), last) != positions.end())
    parameters += std::max(blocks.head_parameters.dense, blocks.embedding_parameters.dense);
  return storage_bytes(plan.precision) * parameters;
}

std::vector<PersistentMemory> persistent_memory(const PartParameters& parameters, const Plan& plan,
                                                const StackSpec& stack) {
  const double element = storage_bytes(plan.precision).value();
  // Bytes of a state of which each parameter takes `size`, split over the shards from this ZeRO
  // stage on.
  const auto held = [&](double size, int from_stage) {
    const bool split = plan.zero_stage >= from_stage;
    return Bytes(size * (parameters.dense / (split ? dense_shards(plan) : 1.0) +
                         parameters.expert / (split ? expert_shards(plan) : 1.0)));
  };
  const bool fp32 = plan.precision == Precision::Fp32 || plan.precision == Precision::Tf32;
  const double gradient = stack.fp32_main_gradients ? 4.0 : element;
  std::vector<PersistentMemory> memory = {{MemoryCategory::Weights, held(element, 3)},
                                          {MemoryCategory::Gradients, held(gradient, 2)}};
  if (plan.offload_optimizer) return memory;
  if (!fp32)
    memory.push_back({MemoryCategory::MasterWeights, held(stack.master_weight_bytes.value(), 1)});
  memory.push_back({MemoryCategory::OptimizerStates, held(stack.optimizer_state_bytes.value(), 1)});
  return memory;
}

}  // namespace shardwright
