// The few kinds of op that every part of a layer is written with.
#include <utility>

#include "core/lowering/layer_writer.hpp"

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

LayerWriter::LayerWriter(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
                         TensorTable& tensors)
    : model_(model),
      plan_(plan),
      stack_(stack),
      tensors_(tensors),
      shape_(shard_shape(model, plan)),
      format_(plan.precision),
      mtp_layers_(trained_mtp_layers(model, plan)) {
  const double hidden_bytes =
      static_cast<double>(shape_.residual_tokens * shape_.hidden) * shape_.element;
  const TensorId hidden = tensors_.add("hidden", MemoryCategory::Activations, Bytes(hidden_bytes));
  const TensorId gradient =
      tensors_.add("hidden.gradient", MemoryCategory::Temporaries, Bytes(hidden_bytes));
  ends_ = {{hidden, 0}, {hidden, 1}, {gradient, 0}, {gradient, 1}};
}

void LayerWriter::use_gathered_parameters(std::string_view kind, double parameters) {
  gathers_parameters_ = parameters > 0.0;
  if (!gathers_parameters_) return;
  const double element = storage_bytes(plan_.precision).value();
  parameters_ = tensors_.add("parameters." + std::string(kind), MemoryCategory::GatheredParameters,
                             Bytes(parameters * element), Lifetime::Borrowed, false);
  parameter_gradient_ =
      tensors_.add("parameters.gradient." + std::string(kind), MemoryCategory::Gradients,
                   Bytes(parameters * element), Lifetime::Scoped, false);
}

std::vector<Op> LayerWriter::take() {
  return std::exchange(ops_, {});
}

Op& LayerWriter::append(const std::string& name, OpKind kind, Phase phase,
                        std::vector<TensorRef> reads, std::vector<TensorRef> writes) {
  Op op;
  op.name = prefix_ + name;
  op.kind = kind;
  op.phase = phase;
  op.precision = format_;
  op.parameters = parameters_of(name, kind);
  op.reads = std::move(reads);
  op.writes = std::move(writes);
  ops_.push_back(std::move(op));
  return ops_.back();
}

void LayerWriter::read_parameters(Op& op) const {
  if (gathers_parameters_) op.reads.push_back(parameters());
}

void LayerWriter::gemm(const std::string& name, Phase phase, GemmWork work,
                       std::vector<TensorRef> reads, std::vector<TensorRef> writes) {
  Op& op = append(name, work.groups > 1 ? OpKind::GroupedGemm : OpKind::Gemm, phase,
                  std::move(reads), std::move(writes));
  op.work = work;
}

void LayerWriter::memory_op(const std::string& name, OpKind kind, Phase phase, double elements_read,
                            double elements_written, std::vector<TensorRef> reads,
                            std::vector<TensorRef> writes, std::int64_t kernels) {
  Op& op = append(name, kind, phase, std::move(reads), std::move(writes));
  // A chain of unfused kernels writes what the next one reads: each further kernel moves the whole
  // once more.
  const auto passes = static_cast<double>(kernels);
  op.work = MemoryWork{Bytes(elements_read * shape_.element * passes),
                       Bytes(elements_written * shape_.element * passes),
                       Flop(elements_written * 8.0), kernels};
}

void LayerWriter::collective(const std::string& name, OpKind kind, Group group, Phase phase,
                             double bytes, std::vector<TensorRef> reads,
                             std::vector<TensorRef> writes) {
  Op& op = append(name, kind, phase, std::move(reads), std::move(writes));
  op.stream = stream_of(group);
  CommunicationWork work;
  work.group = group;
  work.bytes = Bytes(bytes);
  const bool overlapped =
      group == Group::Tensor && stack_.overlap_tp && plan_.overlap.tensor_parallel;
  work.hidden_share = overlapped ? stack_.tp_overlap_share : 0.0;
  if (group == Group::Expert && stack_.sends_tokens_once_per_node) {
    work.copies = model_.moe->top_k;
    work.most_nodes = model_.moe->token_nodes;
  }
  if (kind == OpKind::AllToAll && group == Group::Expert && stack_.overlap_ep &&
      plan_.overlap.expert_microbatches)
    work.partner_share = stack_.ep_overlap_share;
  op.work = work;
}

void LayerWriter::accumulate_gradient(const std::string& name, double parameters,
                                      TensorRef gradient) {
  Op& op = append(name, OpKind::GradientAccumulation, Phase::BackwardWeight, {gradient}, {});
  const double main_gradient = main_gradient_bytes(stack_, plan_.precision).value();
  op.work = MemoryWork{Bytes(parameters * (shape_.element + main_gradient)),
                       Bytes(parameters * main_gradient), Flop(parameters), 1};
}

TensorRef LayerWriter::activation(std::string_view name, double elements) {
  return bytes_tensor(name, MemoryCategory::Activations, elements * shape_.element);
}

TensorRef LayerWriter::gemm_input(std::string_view name, double elements) {
  const bool cast = casts_operands(plan_.precision) && stack_.fp8_saved_inputs;
  const double element = cast ? operand_bytes(plan_.precision).value() : shape_.element;
  return bytes_tensor(name, MemoryCategory::Activations, elements * element);
}

TensorRef LayerWriter::temporary(std::string_view name, double elements) {
  return bytes_tensor(name, MemoryCategory::Temporaries, elements * shape_.element);
}

TensorRef LayerWriter::bytes_tensor(std::string_view name, MemoryCategory category, double bytes) {
  return {tensors_.add(prefix_ + std::string(name), category, Bytes(bytes)), 0};
}

}  // namespace shardwright
