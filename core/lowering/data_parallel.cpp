// Data parallelism of a stage: FSDP's gathers and reductions, gradient buckets, the optimizer and
// ZeRO's gathers.
#include <algorithm>
#include <utility>

#include "core/lowering/stage_states.hpp"
#include "core/lowering/stage_writer.hpp"
#include "core/program/groups.hpp"

namespace shardwright {
namespace {

constexpr std::int64_t kUnfusedOptimizerKernels =
    100;  // one multi-tensor kernel replaced by some per parameter tensor
const Slot kOutsideOfSlots{SlotPhase::Forward, false, 0, -1};

}  // namespace

void StageWriter::gather_ahead(const std::vector<Part>& parts, std::size_t index, bool backward,
                               const Slot& slot) {
  if (!shards_parameters(in_.model, in_.plan)) return;
  const std::size_t ahead = parts_gathered_ahead(in_.stack, in_.plan);
  for (std::size_t i = index; i <= std::min(index + ahead, parts.size() - 1); ++i) {
    gather_part(parts[i], backward, i, slot);
  }
  if (slot_gather_[index] > 0) wait_for(slot_gather_[index] - 1);
}

bool StageWriter::is_last_microbatch(const Slot& slot) const {
  const auto chunk = static_cast<std::size_t>(slot.chunk);
  const auto route =
      static_cast<std::size_t>(in_.schedule.route[static_cast<std::size_t>(stage_)][chunk]);
  return completed_[chunk] + 1 == in_.schedule.routes[route].microbatches.count;
}

std::vector<PartId> StageWriter::parts_with(const Part& part) const {
  if (part.blocks == &in_.blocks.embedding) return {kEmbeddingPart};
  if (part.parameters == &head_and_copy_ && copies_embedding_) return {part.layer, kEmbeddingPart};
  return {part.layer};
}

std::vector<PartId> StageWriter::all_parts() const {
  std::vector<PartId> all;
  for (const std::vector<Part>& chunk : parts_) {
    for (const Part& part : chunk) {
      for (const PartId id : parts_with(part)) all.push_back(id);
    }
  }
  return all;
}

void StageWriter::reduce_part(const Part& part, const Slot& slot) {
  const double reduced = reduced_gradient_bytes(in_.stack, in_.plan.precision).value();
  if (shards_parameters(in_.model, in_.plan)) {
    if (part.parameters->total() == 0.0) return;
    const BlockId block = around_.reduce_gradient({part.blocks->parameter_gradient, 0},
                                                  Bytes(part.parameters->dense * reduced),
                                                  Bytes(part.parameters->expert * reduced));
    last_reduce_ = call_around(block, part.layer, slot, ends()) + 1;
    // All that follows waits for it.
    if (!in_.plan.overlap.grad_reduce)
      exits_.push_back({last_reduce_ - 1, Stream::ParameterGather});
    if (is_last_microbatch(slot)) {
      reduce_bytes("gradients.replicas", part.parameters->dense * reduced / dense_shards(in_.plan),
                   Group::ShardOuter, Group::ShardOuter, parts_with(part), slot);
      reduce_bytes("expert_gradients.replicas",
                   part.parameters->expert * reduced / expert_shards(in_.plan),
                   Group::ExpertShardOuter, Group::ExpertShardOuter, parts_with(part), slot);
    }
    return;
  }
  if (in_.plan.zero_stage != 2 && !is_last_microbatch(slot)) return;
  bucket_.dense += part.parameters->dense * reduced;
  bucket_.expert += part.parameters->expert * reduced;
  for (const PartId id : parts_with(part)) bucket_.parts.push_back(id);
  const bool beside_backward = in_.stack.overlap.grad_reduce && in_.plan.overlap.grad_reduce &&
                               in_.stack.gradients.buckets != GradientBuckets::Single;
  const bool full =
      in_.stack.gradients.buckets == GradientBuckets::PerLayer ||
      bucket_.dense + bucket_.expert >= reduced * elements_per_bucket(in_.stack, in_.plan);
  if (beside_backward && full) flush_bucket(slot);
}

void StageWriter::flush_bucket(const Slot& slot) {
  reduce_bytes("gradients", bucket_.dense, Group::ShardInner, Group::ShardOuter, bucket_.parts,
               slot);
  reduce_bytes("expert_gradients", bucket_.expert, Group::ExpertShardInner, Group::ExpertShardOuter,
               bucket_.parts, slot);
  bucket_ = {};
}

// What a reduction of reduced gradients waits for. FSDP's are made on the stream of its gathers.
std::vector<std::uint32_t> StageWriter::reduced_ends() const {
  std::vector<std::uint32_t> ops = ends();
  if (shards_parameters(in_.model, in_.plan) && last_reduce_ > 0) ops.push_back(last_reduce_ - 1);
  return ops;
}

void StageWriter::reduce_bytes(const std::string& name, double bytes, Group inner, Group outer,
                               const std::vector<PartId>& parts, const Slot& slot) {
  if (bytes <= 0.0) return;
  const auto reduce = [&](const std::string& what, OpKind kind, Group group, double size) {
    if (group_size(group, in_.plan) == 1) return;
    const BlockId block =
        around_.data_parallel(name + what, kind, group, Stream::GradientReduce,
                              Phase::BackwardWeight, Bytes(size), Payload::Gradients);
    last_reduce_ = call_around(block, -1, slot, reduced_ends(), parts) + 1;
  };
  if (in_.plan.zero_stage == 0) {
    const bool experts = inner == Group::ExpertShardInner;
    reduce(".all_reduce", OpKind::AllReduce, experts ? Group::ExpertData : Group::Data, bytes);
    return;
  }
  if (inner != outer) {
    reduce(".reduce_scatter", OpKind::ReduceScatter, inner, bytes);
    bytes /= static_cast<double>(group_size(inner, in_.plan));
  }
  reduce(".all_reduce", OpKind::AllReduce, outer, bytes);
}

void StageWriter::gather_beside_first_forward() {
  const bool splits = in_.plan.zero_stage == 1 || in_.plan.zero_stage == 2;
  if (!splits || !in_.stack.overlap.param_gather || !in_.plan.overlap.param_gather) return;
  const double element = storage_bytes(in_.plan.precision).value();
  for (std::size_t chunk = 0; chunk < parts_.size(); ++chunk) {
    Bucket bucket;
    std::size_t first = 0;
    for (std::size_t i = 0; i < parts_[chunk].size(); ++i) {
      bucket.dense += parts_[chunk][i].parameters->dense * element;
      bucket.expert += parts_[chunk][i].parameters->expert * element;
      for (const PartId id : parts_with(parts_[chunk][i])) bucket.parts.push_back(id);
      const bool last = i + 1 == parts_[chunk].size();
      const double size = element * elements_per_bucket(in_.stack, in_.plan);
      if (!last && bucket.dense + bucket.expert < size) continue;
      first_gather_[chunk][first] = gather_parameters(bucket, {});
      first = i + 1;
      bucket = {};
    }
  }
}

std::uint32_t StageWriter::gather_parameters(const Bucket& bytes,
                                             const std::vector<std::uint32_t>& on) {
  std::uint32_t op = 0;
  const auto gather = [&](const char* name, Group group, double size) {
    if (size <= 0.0 || group_size(group, in_.plan) == 1) return;
    const BlockId block =
        around_.data_parallel(name, OpKind::AllGather, group, Stream::ParameterGather,
                              Phase::Optimizer, Bytes(size), Payload::Parameters);
    op = call_around(block, -1, kOutsideOfSlots, on, bytes.parts) + 1;
  };
  gather("parameters.all_gather", Group::ShardInner, bytes.dense);
  gather("expert_parameters.all_gather", Group::ExpertShardInner, bytes.expert);
  return op;
}

void StageWriter::gather_after_optimizer() {
  const bool splits = in_.plan.zero_stage == 1 || in_.plan.zero_stage == 2;
  if (!splits || (in_.stack.overlap.param_gather && in_.plan.overlap.param_gather)) return;
  const double element = storage_bytes(in_.plan.precision).value();
  gather_parameters(
      {rank_.parameters.dense * element, rank_.parameters.expert * element, all_parts()}, ends());
}

void StageWriter::all_reduce_gradients(const std::string& name, Group group, double bytes,
                                       Payload payload, const std::vector<PartId>& covered) {
  if (bytes <= 0.0 || group_size(group, in_.plan) == 1) return;
  const BlockId block =
      around_.data_parallel(name, OpKind::AllReduce, group, Stream::GradientReduce,
                            Phase::Optimizer, Bytes(bytes), payload);
  last_reduce_ = call_around(block, -1, kOutsideOfSlots, reduced_ends(), covered) + 1;
}

void StageWriter::tie_embeddings() {
  if (!shares_embedding(in_.model, in_.plan)) return;
  const ModelEnds ends = ends_of_model(in_.schedule, in_.parts, stage_);
  if (ends.embedding == ends.head) return;
  const Bytes size = main_gradient_bytes(in_.stack, in_.plan.precision);
  all_reduce_gradients("embedding.tie", Group::EmbeddingTie,
                       in_.blocks.embedding_parameters.total() * size.value(),
                       Payload::TiedGradient);
}

// Gradients that ranks other than data-parallel ones know a part of. After the data-parallel
// reduction, as in Megatron Core (megatron/core/distributed/finalize_model_grads.py).
void StageWriter::add_up_copies() {
  const double main = main_gradient_bytes(in_.stack, in_.plan.precision).value();
  const double reduced = reduced_gradient_bytes(in_.stack, in_.plan.precision).value();
  const double dense_parts = in_.plan.zero_stage >= 1 ? dense_shards(in_.plan) : 1.0;
  const double expert_parts = in_.plan.zero_stage >= 1 ? expert_shards(in_.plan) : 1.0;
  all_reduce_gradients("replicated_gradients.all_reduce", Group::Tensor,
                       tensor_reduced_ * main / (in_.plan.zero_stage == 3 ? dense_parts : 1.0),
                       Payload::ReplicatedGradients);
  all_reduce_gradients("mirrored_gradients.all_reduce", Group::Mirror,
                       rank_.parameters.dense * reduced / dense_parts, Payload::Gradients,
                       all_parts());
  all_reduce_gradients("mirrored_expert_gradients.all_reduce", Group::Mirror,
                       rank_.parameters.expert * reduced / expert_parts, Payload::Gradients,
                       all_parts());
  tie_embeddings();
}

// The norm is that of all parameters: over the shards where the gradients are split, and over the
// tensor-parallel ranks and stages.
void StageWriter::write_gradient_norm(double bytes) {
  if (last_reduce_ > 0) wait_for(last_reduce_ - 1);
  call_part(
      around_.over_parameters("gradient_norm", OpKind::GradientNorm, Bytes(bytes), Bytes(), 1),
      kWholeRank, kOutsideOfSlots);
  const auto reduce = [&](const char* name, Group group) {
    if (group_size(group, in_.plan) == 1) return;
    const BlockId block =
        around_.data_parallel(name, OpKind::AllReduce, group, Stream::GradientReduce,
                              Phase::Optimizer, Bytes(4.0), Payload::GradientNorm);
    wait_for(call_around(block, -1, kOutsideOfSlots, ends()));
  };
  if (in_.plan.zero_stage >= 1) reduce("gradient_norm.shards.all_reduce", Group::ShardInner);
  reduce("gradient_norm.all_reduce", Group::ModelParallel);
}

void StageWriter::write_optimizer() {
  flush_bucket(kOutsideOfSlots);
  add_up_copies();
  const double element = storage_bytes(in_.plan.precision).value();
  const bool splits = in_.plan.zero_stage >= 1;
  const double updated = rank_.parameters.dense / (splits ? dense_shards(in_.plan) : 1.0) +
                         rank_.parameters.expert / (splits ? expert_shards(in_.plan) : 1.0);
  const double gradient = main_gradient_bytes(in_.stack, in_.plan.precision).value();
  write_gradient_norm(updated * gradient);
  if (in_.plan.offloads_optimizer()) {
    call_part(around_.update_on_host(host_update(in_.plan, in_.stack, updated)), kWholeRank,
              kOutsideOfSlots);
    return;
  }
  const double states =
      in_.stack.memory.master_weight_bytes.value() + in_.stack.memory.optimizer_state_bytes.value();
  call_part(
      around_.over_parameters("optimizer", OpKind::Optimizer, Bytes(updated * (gradient + states)),
                              Bytes(updated * (states + element)),
                              in_.stack.fusion.optimizer ? 1 : kUnfusedOptimizerKernels),
      kWholeRank, kOutsideOfSlots);
}

}  // namespace shardwright
