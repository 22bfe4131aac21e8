// Data parallelism of a stage: FSDP's gathers and reductions, gradient buckets, the optimizer and
// ZeRO's gathers.

#include "core/lowering/stage_states.hpp"
#include "core/lowering/stage_writer.hpp"
#include "core/program/groups.hpp"

namespace shardwright {
namespace {

// The slot of calls that a step makes once, outside of the schedule.
const Slot kOutsideOfSlots{SlotPhase::Forward, false, 0, -1};
constexpr std::int32_t kNoLayer = -1;

}  // namespace

bool StageWriter::is_last_microbatch(const Slot& slot) const {
  const auto chunk = static_cast<std::size_t>(slot.chunk);
  const auto route =
      static_cast<std::size_t>(in_.schedule.route[static_cast<std::size_t>(stage_)][chunk]);
  return completed_[chunk] + 1 == in_.schedule.routes[route].microbatches.count;
}

std::vector<PartId> StageWriter::parts_with(const Part& part) const {
  if (part.part == &in_.blocks.embedding) return {kEmbeddingPart};
  if (part.layer == in_.model.layers && copies_embedding_) return {part.layer, kEmbeddingPart};
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
  if (sharded_) return reduce_sharded(part, slot);
  if (in_.plan.zero_stage != 2 && !is_last_microbatch(slot)) return;
  bucket_.add(parameters_of(part), reduced_gradient_bytes(in_.stack, in_.plan.precision).value());
  for (const PartId id : parts_with(part)) bucket_parts_.push_back(id);
  if (bucket_.holds(bucket_bytes_)) flush_bucket(slot);
}

void StageWriter::reduce_sharded(const Part& part, const Slot& slot) {
  const PartParameters& parameters = parameters_of(part);
  if (parameters.total() == 0.0) return;
  Bucket bucket;
  bucket.add(parameters, reduced_gradient_bytes(in_.stack, in_.plan.precision).value());
  const BlockId block = around_.reduce_gradient({part.part->parameter_gradient, 0},
                                                Bytes(bucket.dense), Bytes(bucket.expert));
  last_reduce_ = call_around(block, part.layer, slot, ends()) + 1;
  // All that follows waits for it.
  if (!in_.plan.overlap.grad_reduce) exits_.push_back({last_reduce_ - 1, Stream::ParameterGather});
  if (!is_last_microbatch(slot)) return;
  for_each_reduction(bucket, in_.plan, [&](const GradientReduction& reduction) {
    if (reduction.kind != OpKind::ReduceScatter)
      reduce(reduction.expert ? "expert_gradients.replicas" : "gradients.replicas", reduction,
             parts_with(part), slot);
  });
}

void StageWriter::flush_bucket(const Slot& slot) {
  for_each_reduction(bucket_, in_.plan, [&](const GradientReduction& reduction) {
    reduce(reduction.expert ? "expert_gradients" : "gradients", reduction, bucket_parts_, slot);
  });
  bucket_ = {};
  bucket_parts_.clear();
}

// The ops that a reduction of reduced gradients waits for. FSDP's are made on the stream of its
// gathers.
std::vector<std::uint32_t> StageWriter::reduced_ends() {
  std::vector<std::uint32_t> ops = ends();
  if (sharded_ && last_reduce_ > 0) ops.push_back(last_reduce_ - 1);
  return ops;
}

void StageWriter::reduce(const std::string& name, const GradientReduction& reduction,
                         const std::vector<PartId>& covered, const Slot& slot) {
  if (reduction.bytes <= 0.0 || group_size(reduction.group, in_.plan) == 1) return;
  const bool scatters = reduction.kind == OpKind::ReduceScatter;
  const BlockId block = around_.data_parallel(
      name + (scatters ? ".reduce_scatter" : ".all_reduce"), reduction.kind, reduction.group,
      Stream::GradientReduce, Phase::BackwardWeight, Bytes(reduction.bytes), Payload::Gradients);
  last_reduce_ = call_around(block, -1, slot, reduced_ends(), covered) + 1;
}

void StageWriter::gather_beside_first_forward() {
  if (parameter_gathers(in_.plan, in_.stack) != ParameterGathers::BesideForward) return;
  const double element = storage_bytes(in_.plan.precision).value();
  const double size = parameter_bucket_bytes(in_.plan, in_.stack);
  for (std::size_t chunk = 0; chunk < parts_.size(); ++chunk) {
    const std::vector<Part>& parts = parts_[chunk];
    for_each_gathered_bucket(
        parts.size(), size,
        [&](std::size_t i, Bucket& bucket) { bucket.add(parameters_of(parts[i]), element); },
        [&](const Bucket& bucket, std::size_t first, std::size_t end) {
          std::vector<PartId> covered;
          for (std::size_t i = first; i < end; ++i) {
            for (const PartId id : parts_with(parts[i])) covered.push_back(id);
          }
          first_gather_[chunk][first] = gather_parameters(bucket, covered, {});
        });
  }
}

std::uint32_t StageWriter::gather_parameters(const Bucket& bytes,
                                             const std::vector<PartId>& covered,
                                             const std::vector<std::uint32_t>& on) {
  std::uint32_t op = 0;
  for_each_gather(bytes, [&](const ParameterGather& gather) {
    if (gather.bytes <= 0.0 || group_size(gather.group, in_.plan) == 1) return;
    const BlockId block = around_.data_parallel(
        std::string(gather.name) + ".all_gather", OpKind::AllGather, gather.group,
        Stream::ParameterGather, Phase::Optimizer, Bytes(gather.bytes), Payload::Parameters);
    op = call_around(block, -1, kOutsideOfSlots, on, covered) + 1;
  });
  return op;
}

void StageWriter::gather_after_optimizer() {
  if (parameter_gathers(in_.plan, in_.stack) != ParameterGathers::AfterOptimizer) return;
  Bucket all;
  all.add(parameters_, storage_bytes(in_.plan.precision).value());
  gather_parameters(all, all_parts(), ends());
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
  if (ends_of_model_.embedding == ends_of_model_.head) return;
  const Bytes size = main_gradient_bytes(in_.stack, in_.plan);
  all_reduce_gradients("embedding.tie", Group::EmbeddingTie,
                       in_.blocks.embedding_parameters.total() * size.value(),
                       Payload::TiedGradient);
}

// Gradients that ranks other than data-parallel ones know a part of. After the data-parallel
// reduction, as in Megatron Core (megatron/core/distributed/finalize_model_grads.py).
void StageWriter::add_up_copies() {
  const GradientCopies copies = gradient_copies(parameters_, in_.plan, in_.stack);
  for_each_copy_reduction(copies, [&](const CopyReduction& copy) {
    const bool whole_stage = copy.group == Group::Mirror;
    all_reduce_gradients(std::string(copy.name) + ".all_reduce", copy.group, copy.bytes,
                         copy.payload, whole_stage ? all_parts() : std::vector<PartId>{});
  });
  tie_embeddings();
}

void StageWriter::write_gradient_norm(const MemoryWork& work) {
  if (last_reduce_ > 0) wait_for(last_reduce_ - 1);
  call_part(around_.over_parameters("gradient_norm", OpKind::GradientNorm, work), kNoLayer,
            kOutsideOfSlots);
  for_each_norm_reduction(in_.plan, [&](const char* name, Group group) {
    if (group_size(group, in_.plan) == 1) return;
    const BlockId block = around_.data_parallel(
        std::string(name) + ".all_reduce", OpKind::AllReduce, group, Stream::GradientReduce,
        Phase::Optimizer, Bytes(kNormBytes), Payload::GradientNorm);
    wait_for(call_around(block, -1, kOutsideOfSlots, ends()));
  });
}

void StageWriter::write_optimizer() {
  flush_bucket(kOutsideOfSlots);
  add_up_copies();
  const double updated = updated_parameters(parameters_, in_.plan);
  write_gradient_norm(gradient_norm_work(updated, in_.plan, in_.stack));
  const bool on_host = in_.plan.offloads_optimizer();
  call_part(around_.over_parameters(on_host ? "optimizer.on_host" : "optimizer",
                                    on_host ? OpKind::HostOptimizer : OpKind::Optimizer,
                                    optimizer_work(updated, in_.plan, in_.stack)),
            kNoLayer, kOutsideOfSlots);
}

}  // namespace shardwright
