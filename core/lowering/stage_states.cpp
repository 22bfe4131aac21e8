#include "core/lowering/stage_states.hpp"

#include <algorithm>

#include "core/lowering/data_parallel_messages.hpp"
#include "core/program/groups.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright {
namespace {

// One multi-tensor kernel replaced by some for each parameter tensor.
constexpr std::int64_t kUnfusedOptimizerKernels = 100;

// Bytes of a moment in 8 bits: one, and a constant in fp32 for each block of 256 (bitsandbytes,
// optim/optimizer.py; torchao, optim/README.md).
constexpr double kEightBitMoment = 1.0 + 4.0 / 256.0;

// Bytes of both moments.
Bytes moments_of(OptimizerStates states, const StackSpec& stack) {
  switch (states) {
    case OptimizerStates::OfStack:
      break;
    case OptimizerStates::Fp32:
      return Bytes(8.0);
    case OptimizerStates::Bf16:
    case OptimizerStates::PureBf16:
      return Bytes(4.0);
    case OptimizerStates::EightBit:
    case OptimizerStates::PureBf16EightBit:
      return Bytes(2.0 * kEightBitMoment);
  }
  return stack.memory.optimizer_state_bytes;
}

}  // namespace

AdamStates adam_states(const StackSpec& stack, const Plan& plan) {
  const OptimizerStates states = plan.optimizer_states;
  const Bytes moments = moments_of(states, stack);
  if (is_pure(states)) return {Bytes(), moments, true};
  const Bytes remainder = stack.memory.narrow_master_weight_bytes;
  if (is_narrow(states) && plan.precision == Precision::Bf16 && remainder > Bytes())
    return {remainder, moments, true};
  return {stack.memory.master_weight_bytes, moments, false};
}

ModelEnds ends_of_model(const std::vector<std::int32_t>& positions, std::size_t chunks) {
  const auto last = static_cast<std::int32_t>(chunks) - 1;
  return {std::find(positions.begin(), positions.end(), 0) != positions.end(),
          std::find(positions.begin(), positions.end(), last) != positions.end()};
}

bool copies_embedding(const ModelSpec& model, const Plan& plan, ModelEnds ends) {
  return ends.head && !ends.embedding && shares_embedding(model, plan);
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
  const ModelEnds ends =
      ends_of_model(schedule.position[static_cast<std::size_t>(stage)], parts.size());
  if (ends.embedding || copies_embedding(model, plan, ends)) sum += blocks.embedding_parameters;
  if (ends.head) sum += blocks.head_parameters;
  return sum;
}

double dense_shards(const Plan& plan) {
  return static_cast<double>(group_size(Group::ShardInner, plan));
}

double expert_shards(const Plan& plan) {
  return static_cast<double>(group_size(Group::ExpertShardInner, plan));
}

Bytes gradient_placeholders(double largest_layer, double embedding, bool holds_head,
                            const Plan& plan) {
  return storage_bytes(plan.precision) * (largest_layer + (holds_head ? embedding : 0.0));
}

double updated_parameters(const PartParameters& stage, const Plan& plan) {
  const bool splits = plan.zero_stage >= 1;
  return stage.dense / (splits ? dense_shards(plan) : 1.0) +
         stage.expert / (splits ? expert_shards(plan) : 1.0);
}

MemoryWork gradient_norm_work(double updated, const Plan& plan, const StackSpec& stack) {
  return {Bytes(updated * main_gradient_bytes(stack, plan).value()), Bytes(), Flop(), 1};
}

Work optimizer_work(double updated, const Plan& plan, const StackSpec& stack) {
  const Bytes element = storage_bytes(plan.precision);
  const Bytes gradient = main_gradient_bytes(stack, plan);
  if (plan.offloads_optimizer()) {
    return HostUpdateWork{gradient * updated, element * updated, Bytes(kHostStateBytes * updated),
                          plan.offload_optimizer == OptimizerOffload::Nvme};
  }
  const AdamStates adam = adam_states(stack, plan);
  const double states = adam.master_weight.value() + adam.moments.value();
  const double weight = adam.reads_weight ? element.value() : 0.0;
  return MemoryWork{Bytes(updated * (gradient.value() + weight + states)),
                    Bytes(updated * (states + element.value())), Flop(),
                    stack.fusion.optimizer ? 1 : kUnfusedOptimizerKernels};
}

namespace {

// The most parameters that replicas exchange at once. Gradients are compressed bucket by bucket,
// local steps fragment by fragment.
double exchanged_at_once(double updated, const Plan& plan, const StackSpec& stack,
                         std::span<const PartParameters> fragments) {
  if (!plan.replicas.local()) {
    const double element = reduced_gradient_bytes(stack, plan.precision).value();
    return std::min(updated, unsharded_bucket_bytes(plan, stack) / element);
  }
  double largest = updated / static_cast<double>(plan.replicas.fragments);
  for (const PartParameters& fragment : fragments)
    largest = std::max(largest, updated_parameters(fragment, plan));
  return largest;
}

// What replicas keep for their agreement. What is on its way while steps go on has no room in the
// gradients.
void add_exchange_memory(const PartParameters& parameters, const Plan& plan, const StackSpec& stack,
                         std::span<const PartParameters> fragments, PersistentStates& memory) {
  const ReplicaAgreement& replicas = plan.replicas;
  if (replicas == ReplicaAgreement()) return;
  const double updated = updated_parameters(parameters, plan);
  const double at_once = exchanged_at_once(updated, plan, stack, fragments);
  if (replicas.local())
    memory.add(MemoryCategory::OptimizerStates, outer_state_bytes(replicas) * updated);
  const std::int64_t members = group_size(replica_group(plan, false), plan);
  if (replicas.local() && replicas.overlap_steps > 0)
    memory.add(MemoryCategory::CommunicationBuffers, Bytes(4.0) * at_once);
  memory.add(MemoryCategory::CommunicationBuffers, residual_bytes(replicas, members) * updated +
                                                       exchange_buffer(replicas, at_once, members));
}

}  // namespace

PersistentStates persistent_memory(const PartParameters& parameters, const Plan& plan,
                                   const StackSpec& stack,
                                   std::span<const PartParameters> fragments) {
  const double element = storage_bytes(plan.precision).value();
  // Bytes of a state of which each parameter takes `size`, split over the shards from this ZeRO
  // stage on.
  const double whole = parameters.total();
  const auto share_of = [&](double dense, double expert) {
    if (plan.zero_stage == 0) return dense + expert;
    return dense / dense_shards(plan) + expert / expert_shards(plan);
  };
  const double share = share_of(parameters.dense, parameters.expert);
  const auto held = [&](double size, int from_stage) {
    return Bytes(size * (plan.zero_stage >= from_stage ? share : whole));
  };
  const double weights = plan.zero_stage >= 3
                             ? share_of(parameters.dense_weights(), parameters.expert_weights())
                             : parameters.weights();
  const bool fp32 = plan.precision == Precision::Fp32 || plan.precision == Precision::Tf32;
  const bool halves_too = stack.memory.keeps_half_gradients && sums_in_fp32(stack, plan) && !fp32;
  const double gradient = main_gradient_bytes(stack, plan).value() + (halves_too ? element : 0.0);
  PersistentStates memory;
  const bool fp8 = plan.precision == Precision::Fp8;
  memory.add(MemoryCategory::Weights,
             Bytes((fp8 ? stack.memory.fp8_weight_bytes.value() : element) * weights));
  memory.add(MemoryCategory::Gradients, held(gradient, 2));
  if (stack.memory.reduction_buffer && plan.zero_stage >= 1) {
    const double elements = std::min(elements_per_bucket(stack, plan), whole);
    memory.add(MemoryCategory::CommunicationBuffers, Bytes(element * elements));
  }
  add_exchange_memory(parameters, plan, stack, fragments, memory);
  if (plan.offloads_optimizer() || plan.replicas.has_servers()) return memory;
  if (!stack.gradients.fp32_accumulation && !fp32 && !is_pure(plan.optimizer_states))
    memory.add(MemoryCategory::Temporaries, held(stack.memory.step_gradient_bytes.value(), 1));
  const AdamStates adam = adam_states(stack, plan);
  if (!fp32) memory.add(MemoryCategory::MasterWeights, held(adam.master_weight.value(), 1));
  memory.add(MemoryCategory::OptimizerStates, held(adam.moments.value(), 1));
  return memory;
}

}  // namespace shardwright
