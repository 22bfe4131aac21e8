// Data parallelism of a stage: FSDP's gathers and reductions, gradient buckets, the optimizer and
// ZeRO's gathers.

#include <algorithm>
#include <map>
#include <utility>

#include "core/lowering/stage_states.hpp"
#include "core/lowering/stage_writer.hpp"
#include "core/program/groups.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright {
namespace {

using Part = StageWriter::Part;

// The slot of calls that a step makes once, outside of the schedule.
const Slot kOutsideOfSlots{SlotPhase::Forward, false, 0, -1};
constexpr std::int32_t kNoLayer = -1;

bool is_last_microbatch(const StageWriter& writer, const Slot& slot) {
  const auto chunk = static_cast<std::size_t>(slot.chunk);
  const PipelineSchedule& schedule = writer.in.schedule;
  const auto route =
      static_cast<std::size_t>(schedule.route[static_cast<std::size_t>(writer.stage)][chunk]);
  return writer.completed[chunk] + 1 == schedule.routes[route].microbatches.count;
}

// Appends the parts of the model whose parameters a part of a slot has. A bucket that fills up
// across microbatches gets a part from each of them, and lists it once.
void append_ids(const StageWriter& writer, const Part& part, std::vector<PartId>& ids) {
  const auto append = [&ids](PartId id) {
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(id);
  };
  const bool embedding = part.part == &writer.in.blocks.embedding;
  if (!embedding) append(part.layer);
  if (embedding || (part.layer == writer.in.model.layers && writer.copies_embedding))
    append(kEmbeddingPart);
}

std::vector<PartId> all_parts(const StageWriter& writer) {
  std::vector<PartId> all;
  for (const std::vector<Part>& chunk : writer.parts) {
    for (const Part& part : chunk) append_ids(writer, part, all);
  }
  return all;
}

// The parameters and the parts of each fragment of local steps.
struct Fragments {
  std::vector<PartParameters> parameters;
  std::vector<std::vector<PartId>> parts;
};

Fragments fragments_of(const StageWriter& writer) {
  const LoweringInput& in = writer.in;
  const auto count = static_cast<std::size_t>(in.plan.replicas.fragments);
  if (count == 1) return {{writer.parameters}, {all_parts(writer)}};
  Fragments fragments{std::vector<PartParameters>(count), std::vector<std::vector<PartId>>(count)};
  std::map<std::int32_t, const std::vector<Part>*> by_position;
  for (std::size_t chunk = 0; chunk < writer.parts.size(); ++chunk)
    by_position[in.schedule.position[static_cast<std::size_t>(writer.stage)][chunk]] =
        &writer.parts[chunk];
  std::vector<const std::vector<Part>*> chunks;
  for (const auto& [position, parts] : by_position) chunks.push_back(parts);
  const auto is_embedding = [&](const Part& part) { return part.part == &in.blocks.embedding; };
  const auto is_head = [&](const Part& part) { return part.layer == in.model.layers; };
  for_each_fragment_part(
      in.plan.replicas, chunks,
      [&](const Part& part) { return !is_embedding(part) && !is_head(part); },
      [&](std::size_t fragment, const Part& part) {
        fragments.parts[fragment].push_back(is_embedding(part) ? kEmbeddingPart : part.layer);
        fragments.parameters[fragment] +=
            is_head(part) ? in.blocks.head_parameters : writer.parameters_of(part);
      });
  // Both copies of a shared embedding change at the same time.
  if (copies_embedding(in.model, in.plan, writer.ends_of_model))
    fragments.parameters.front() += in.blocks.embedding_parameters;
  if (writer.copies_embedding) fragments.parts.front().push_back(kEmbeddingPart);
  return fragments;
}

// The ops that a reduction of reduced gradients waits for. FSDP's are made on the stream of its
// gathers.
std::vector<std::uint32_t> reduced_ends(StageWriter& writer) {
  std::vector<std::uint32_t> ops = writer.calls.ends();
  if (writer.sharded && writer.last_reduce) ops.push_back(*writer.last_reduce);
  return ops;
}

// A collective on gradients; nothing without bytes or in a group of one.
void reduce(StageWriter& writer, const std::string& name, const GradientReduction& reduction,
            Phase phase, Payload payload, const std::vector<PartId>& covered, const Slot& slot) {
  const Plan& plan = writer.in.plan;
  if (reduction.bytes <= 0.0 || group_size(reduction.group, plan) == 1) return;
  const bool compresses =
      payload == Payload::Gradients && phase == Phase::BackwardWeight && compresses_gradients(plan);
  const BlockId block =
      compresses
          ? writer.around.exchange(
                reduction.name(),
                compressed_reduction(reduction, plan,
                                     reduced_gradient_bytes(writer.in.stack, plan.precision)),
                reduction.group, phase, Payload::CompressedGradients)
          : writer.around.data_parallel(name, reduction.kind, reduction.group,
                                        Stream::GradientReduce, phase, Bytes(reduction.bytes),
                                        payload);
  writer.last_reduce =
      writer.calls.call_around(block, kNoLayer, slot, reduced_ends(writer), covered);
}

void reduce_sharded(StageWriter& writer, const Part& part, const Slot& slot) {
  const LoweringInput& in = writer.in;
  const PartParameters& parameters = writer.parameters_of(part);
  if (parameters.total() == 0.0) return;
  Bucket bucket;
  bucket.add(parameters, reduced_gradient_bytes(in.stack, in.plan.precision).value());
  const BlockId block = writer.around.reduce_gradient({part.part->parameter_gradient, 0}, bucket);
  const std::uint32_t op = writer.calls.call_around(block, part.layer, slot, writer.calls.ends());
  writer.last_reduce = op;
  // All that follows waits for it.
  if (!in.plan.overlap.grad_reduce) writer.calls.end_with(op, Stream::ParameterGather);
  if (!is_last_microbatch(writer, slot)) return;
  std::vector<PartId> covered;
  append_ids(writer, part, covered);
  for_each_reduction(bucket, in.plan, [&](const GradientReduction& reduction) {
    if (reduction.kind != OpKind::ReduceScatter)
      reduce(writer, std::string(reduction.name()) + ".replicas.all_reduce", reduction,
             Phase::BackwardWeight, Payload::Gradients, covered, slot);
  });
}

void flush_bucket(StageWriter& writer, const Slot& slot) {
  for_each_reduction(
      writer.bucket, writer.complete, writer.in.plan, [&](const GradientReduction& reduction) {
        const bool over_replicas =
            reduction.group == Group::ShardOuter || reduction.group == Group::ExpertShardOuter;
        reduce(writer, std::string(reduction.name()) + reduction.suffix(), reduction,
               Phase::BackwardWeight, Payload::Gradients,
               over_replicas ? writer.complete_parts : writer.bucket_parts, slot);
      });
  writer.bucket = writer.complete = {};
  writer.bucket_parts.clear();
  writer.complete_parts.clear();
}

// Gathers of so many bytes, issued after `on`; returns the last op if there is anything to gather.
StageWriter::OptionalOp gather_parameters(StageWriter& writer, const Bucket& bytes,
                                          const std::vector<PartId>& covered,
                                          const std::vector<std::uint32_t>& on) {
  StageWriter::OptionalOp op;
  for_each_gather(bytes, [&](const ParameterGather& gather) {
    if (gather.bytes <= 0.0 || group_size(gather.group, writer.in.plan) == 1) return;
    const BlockId block = writer.around.data_parallel(
        std::string(gather.name) + ".all_gather", OpKind::AllGather, gather.group,
        Stream::ParameterGather, Phase::Optimizer, Bytes(gather.bytes), Payload::Parameters);
    op = writer.calls.call_around(block, kNoLayer, kOutsideOfSlots, on, covered);
  });
  return op;
}

// Gradients that ranks other than data-parallel ones know a part of. After the data-parallel
// reduction, as in Megatron Core (megatron/core/distributed/finalize_model_grads.py).
void add_up_copies(StageWriter& writer) {
  const LoweringInput& in = writer.in;
  const auto all_reduce = [&](const std::string& name, Group group, double bytes, Payload payload,
                              const std::vector<PartId>& covered) {
    reduce(writer, name, {OpKind::AllReduce, group, bytes, false}, Phase::Optimizer, payload,
           covered, kOutsideOfSlots);
  };
  const GradientCopies copies = gradient_copies(writer.parameters, in.plan, in.stack);
  for_each_copy_reduction(copies, [&](const CopyReduction& copy) {
    all_reduce(std::string(copy.name) + ".all_reduce", copy.group, copy.bytes, copy.payload,
               copy.group == Group::Mirror ? all_parts(writer) : std::vector<PartId>{});
  });
  const ModelEnds ends = writer.ends_of_model;
  if (!ties_embedding_gradients(in.model, in.plan) || ends.embedding == ends.head) return;
  const double size = main_gradient_bytes(in.stack, in.plan).value();
  all_reduce("embedding.tie", Group::EmbeddingTie, in.blocks.embedding_parameters.total() * size,
             Payload::TiedGradient, {});
}

void write_gradient_norm(StageWriter& writer, const MemoryWork& work) {
  writer.calls.wait_for(writer.last_reduce);
  // Servers that sum the gradients know their squares.
  if (knows_gradient_norm(writer.in.plan))
    writer.calls.call_part(
        writer.around.over_parameters("gradient_norm", OpKind::GradientNorm, work), kNoLayer,
        kOutsideOfSlots);
  for_each_norm_reduction(writer.in.plan, [&](const char* name, Group group) {
    if (group_size(group, writer.in.plan) == 1) return;
    const BlockId block = writer.around.data_parallel(
        std::string(name) + ".all_reduce", OpKind::AllReduce, group, Stream::GradientReduce,
        Phase::Optimizer, Bytes(kNormBytes), Payload::GradientNorm);
    writer.calls.wait_for(
        writer.calls.call_around(block, kNoLayer, kOutsideOfSlots, writer.calls.ends()));
  });
}

// The pulls of a stage, which no kernel of the step follows.
void pull_parameters(StageWriter& writer) {
  const LoweringInput& in = writer.in;
  for_each_served(
      writer.parameters, in.plan, [&](const char* name, Group group, const ExchangeOps& ops) {
        const BlockId block =
            writer.around.exchange(name, ops, group, Phase::Optimizer, Payload::Parameters);
        std::vector<std::uint32_t> before = writer.calls.ends();
        if (writer.last_reduce) before.push_back(*writer.last_reduce);
        const std::uint32_t op =
            writer.calls.call_around(block, kNoLayer, kOutsideOfSlots, before, all_parts(writer));
        writer.calls.end_with(op, Stream::GradientReduce);
      });
}

}  // namespace

void reduce_part(StageWriter& writer, const Part& part, const Slot& slot) {
  const LoweringInput& in = writer.in;
  if (writer.sharded) return reduce_sharded(writer, part, slot);
  const bool completes = is_last_microbatch(writer, slot);
  if (in.plan.zero_stage != 2 && !completes) return;
  const auto add_to = [&](Bucket& bucket, std::vector<PartId>& parts) {
    bucket.add(writer.parameters_of(part),
               reduced_gradient_bytes(in.stack, in.plan.precision).value());
    append_ids(writer, part, parts);
  };
  add_to(writer.bucket, writer.bucket_parts);
  if (completes) add_to(writer.complete, writer.complete_parts);
  if (writer.bucket.holds(gradient_bucket_bytes(in.model, in.plan, in.stack)))
    flush_bucket(writer, slot);
}

void gather_beside_first_forward(StageWriter& writer) {
  const LoweringInput& in = writer.in;
  if (parameter_gathers(in.plan, in.stack) != ParameterGathers::BesideForward) return;
  const double element = storage_bytes(in.plan.precision).value();
  const double size = parameter_bucket_bytes(in.plan, in.stack);
  for (std::size_t chunk = 0; chunk < writer.parts.size(); ++chunk) {
    const std::vector<Part>& parts = writer.parts[chunk];
    for_each_gathered_bucket(
        parts.size(), size,
        [&](std::size_t i, Bucket& bucket) { bucket.add(writer.parameters_of(parts[i]), element); },
        [&](const Bucket& bucket, std::size_t first, std::size_t end) {
          std::vector<PartId> covered;
          for (std::size_t i = first; i < end; ++i) append_ids(writer, parts[i], covered);
          writer.first_gather[chunk][first] = gather_parameters(writer, bucket, covered, {});
        });
  }
}

void agree_on_local_steps(StageWriter& writer) {
  const LoweringInput& in = writer.in;
  const ReplicaAgreement& replicas = in.plan.replicas;
  if (!replicas.local()) return;
  Fragments fragments = fragments_of(writer);
  writer.fragments = std::move(fragments.parameters);
  for_each_local_exchange(writer.fragments, in.plan, [&](const LocalStepsExchange& each) {
    const std::string number =
        replicas.fragments == 1 ? "" : "_" + std::to_string(each.fragment + 1);
    const BlockId block = writer.around.exchange(
        each.name + number, each.ops, each.group, Phase::Optimizer, Payload::LocalSteps,
        replicas.inner_steps, first_exchange(replicas, static_cast<std::int64_t>(each.fragment)));
    const std::uint32_t op = writer.calls.call_around(
        block, kNoLayer, kOutsideOfSlots, writer.calls.ends(), fragments.parts[each.fragment]);
    writer.calls.end_with(op, Stream::GradientReduce);
  });
}

void gather_after_optimizer(StageWriter& writer) {
  const LoweringInput& in = writer.in;
  if (parameter_gathers(in.plan, in.stack) != ParameterGathers::AfterOptimizer) return;
  Bucket all;
  all.add(writer.parameters, storage_bytes(in.plan.precision).value());
  gather_parameters(writer, all, all_parts(writer), writer.calls.ends());
}

void write_optimizer(StageWriter& writer) {
  const LoweringInput& in = writer.in;
  if (!in.plan.replicas.stale()) flush_bucket(writer, kOutsideOfSlots);
  add_up_copies(writer);
  const double updated = updated_parameters(writer.parameters, in.plan);
  write_gradient_norm(writer, gradient_norm_work(updated, in.plan, in.stack));
  if (in.plan.replicas.has_servers()) {
    flush_bucket(writer, kOutsideOfSlots);
    return pull_parameters(writer);
  }
  const bool on_host = in.plan.offloads_optimizer();
  writer.calls.call_part(
      writer.around.over_parameters(on_host ? "optimizer.on_host" : "optimizer",
                                    on_host ? OpKind::HostOptimizer : OpKind::Optimizer,
                                    optimizer_work(updated, in.plan, in.stack)),
      kNoLayer, kOutsideOfSlots);
}

}  // namespace shardwright
