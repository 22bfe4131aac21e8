#include "core/lowering/stage_states.hpp"

#include <algorithm>

#include "core/program/groups.hpp"

namespace shardwright {

ModelEnds ends_of_model(const PipelineSchedule& schedule, const std::vector<LayerRange>& parts,
                        std::int32_t stage) {
  const auto& positions = schedule.position[static_cast<std::size_t>(stage)];
  const auto last = static_cast<std::int32_t>(parts.size()) - 1;
  return {std::find(positions.begin(), positions.end(), 0) != positions.end(),
          std::find(positions.begin(), positions.end(), last) != positions.end()};
}

PartParameters stage_parameters(const ModelSpec& model, const BlockSet& blocks,
                                const PipelineSchedule& schedule,
                                const std::vector<LayerRange>& parts, const Plan& plan,
                                std::int32_t stage) {
  PartParameters sum;
  for (const std::int32_t position : schedule.position[static_cast<std::size_t>(stage)]) {
    const LayerRange& range = parts[static_cast<std::size_t>(position)];
    for (std::int64_t layer = range.first; layer < range.first + range.count; ++layer) {
      sum += blocks.layer_parameters[static_cast<std::size_t>(
          blocks.kind_of_layer[static_cast<std::size_t>(layer)])];
    }
  }
  const ModelEnds ends = ends_of_model(schedule, parts, stage);
  const bool copies = ends.head && shares_embedding(model, plan);
  if (ends.embedding || copies) sum += blocks.embedding_parameters;
  if (ends.head) sum += blocks.head_parameters;
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
  if (ends_of_model(schedule, parts, stage).head) parameters += blocks.embedding_parameters.dense;
  return storage_bytes(plan.precision) * parameters;
}

HostUpdateWork host_update(const Plan& plan, const StackSpec& stack, double parameters) {
  const Bytes element = storage_bytes(plan.precision);
  return {main_gradient_bytes(stack, plan.precision) * parameters, element * parameters,
          Bytes(kHostStateBytes * parameters), plan.offload_optimizer == OptimizerOffload::Nvme};
}

PersistentStates persistent_memory(const PartParameters& parameters, const Plan& plan,
                                   const StackSpec& stack) {
  const double element = storage_bytes(plan.precision).value();
  // Bytes of a state of which each parameter takes `size`, split over the shards from this ZeRO
  // stage on.
  const double whole = parameters.dense + parameters.expert;
  const double share = plan.zero_stage == 0 ? whole
                                            : parameters.dense / dense_shards(plan) +
                                                  parameters.expert / expert_shards(plan);
  const auto held = [&](double size, int from_stage) {
    return Bytes(size * (plan.zero_stage >= from_stage ? share : whole));
  };
  const bool fp32 = plan.precision == Precision::Fp32 || plan.precision == Precision::Tf32;
  const bool halves_too =
      stack.memory.keeps_half_gradients && stack.gradients.fp32_accumulation && !fp32;
  const double gradient =
      main_gradient_bytes(stack, plan.precision).value() + (halves_too ? element : 0.0);
  PersistentStates memory;
  const bool fp8 = plan.precision == Precision::Fp8;
  memory.add(MemoryCategory::Weights,
             held(fp8 ? stack.memory.fp8_weight_bytes.value() : element, 3));
  memory.add(MemoryCategory::Gradients, held(gradient, 2));
  if (stack.memory.reduction_buffer && plan.zero_stage >= 1) {
    const double elements = std::min(elements_per_bucket(stack, plan), whole);
    memory.add(MemoryCategory::CommunicationBuffers, Bytes(element * elements));
  }
  if (plan.offloads_optimizer()) return memory;
  if (!stack.gradients.fp32_accumulation && !fp32)
    memory.add(MemoryCategory::Temporaries, held(stack.memory.step_gradient_bytes.value(), 1));
  if (!fp32)
    memory.add(MemoryCategory::MasterWeights, held(stack.memory.master_weight_bytes.value(), 1));
  memory.add(MemoryCategory::OptimizerStates, held(stack.memory.optimizer_state_bytes.value(), 1));
  return memory;
}

}  // namespace shardwright
