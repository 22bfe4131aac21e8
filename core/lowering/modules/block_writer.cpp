#include "core/lowering/modules/block_writer.hpp"

#include <utility>

namespace shardwright {
namespace {

Stream stream_of(Group group) {
  switch (group) {
    case Group::Context:
      return Stream::ContextParallel;
    case Group::Expert:
    case Group::ExpertTensor:
      return Stream::ExpertParallel;
    default:
      return Stream::TensorParallel;
  }
}

}  // namespace

Op& BlockWriter::append(std::string_view name, OpKind kind, Work work, std::vector<TensorRef> reads,
                        std::vector<TensorRef> writes) const {
  Op& op = ops.emplace_back();
  op.name.append(prefix).append(name);
  op.kind = kind;
  op.phase = phase;
  op.precision = precision;
  op.work = work;
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  return op;
}

Op& BlockWriter::gemm(std::string_view name, const GemmWork& work, std::vector<TensorRef> reads,
                      std::vector<TensorRef> writes) const {
  return append(name, work.groups > 1 ? OpKind::GroupedGemm : OpKind::Gemm, work, std::move(reads),
                std::move(writes));
}

Op& BlockWriter::memory_op(std::string_view name, OpKind kind, double read, double written,
                           std::vector<TensorRef> reads, std::vector<TensorRef> writes,
                           std::int64_t kernels) const {
  // Each kernel in a chain of unfused ones writes the input of the next one, so every further
  // kernel moves all of the data once more.
  const auto passes = static_cast<double>(kernels);
  const MemoryWork work{Bytes(read * shape.element * passes),
                        Bytes(written * shape.element * passes), Flop(written * 8.0), kernels};
  return append(name, kind, work, std::move(reads), std::move(writes));
}

Op& BlockWriter::attention(std::string_view name, const AttentionWork& work,
                           std::vector<TensorRef> reads, std::vector<TensorRef> writes) const {
  return append(name, OpKind::Attention, work, std::move(reads), std::move(writes));
}

Op& BlockWriter::collective(std::string_view name, OpKind kind, Group group, double elements,
                            std::vector<TensorRef> reads, std::vector<TensorRef> writes) const {
  CommunicationWork work;
  work.group = group;
  work.bytes = Bytes(elements * shape.element);
  if (group == Group::Tensor && stack.overlap.tensor_parallel && plan.overlap.tensor_parallel)
    work.hidden_share = stack.overlap.tensor_parallel_share;
  if (group == Group::Expert && stack.communication.sends_tokens_once_per_node) {
    work.copies = model.moe->top_k;
    work.most_nodes = model.moe->token_nodes;
  }
  if (kind == OpKind::AllToAll && group == Group::Expert && stack.overlap.expert_parallel &&
      plan.overlap.expert_microbatches)
    work.partner_share = stack.overlap.expert_parallel_share;
  Op& op = append(name, kind, work, std::move(reads), std::move(writes));
  op.stream = stream_of(group);
  return op;
}

Op& BlockWriter::weight_gradient(std::string_view name, GemmWork work, std::vector<TensorRef> reads,
                                 std::vector<std::string> parameters) const {
  work.accumulate_fp32 = !gathered;
  Op& op = gemm(name, work, std::move(reads), {});
  op.phase = Phase::BackwardWeight;
  op.parameters = std::move(parameters);
  if (gathered) op.writes.push_back(gathered->gradient);
  return op;
}

Op& BlockWriter::apply(Op& op, std::vector<std::string> parameters) const {
  op.parameters = std::move(parameters);
  if (gathered) op.reads.push_back(gathered->parameters);
  return op;
}

std::vector<std::string> BlockWriter::of_layer(std::vector<std::string> parameters) const {
  for (std::string& name : parameters) name.insert(0, prefix.empty() ? "layers.*." : prefix);
  return parameters;
}

TensorRef BlockWriter::activation(std::string_view name, double elements) const {
  return tensor(name, MemoryCategory::Activations, elements * shape.element);
}

TensorRef BlockWriter::temporary(std::string_view name, double elements) const {
  return tensor(name, MemoryCategory::Temporaries, elements * shape.element);
}

TensorRef BlockWriter::gemm_input(std::string_view name, double elements) const {
  const bool cast = casts_operands(plan.precision) && stack.memory.fp8_saved_inputs;
  const double element = cast ? operand_bytes(plan.precision).value() : shape.element;
  return tensor(name, MemoryCategory::Activations, elements * element);
}

TensorRef BlockWriter::tensor(std::string_view name, MemoryCategory category, double bytes) const {
  return {tensors.add(prefix + std::string(name), category, Bytes(bytes)), 0};
}

}  // namespace shardwright
