#include "core/lowering/modules/block_writer.hpp"

#include <algorithm>
#include <boost/container/flat_map.hpp>
#include <cmath>
#include <optional>
#include <utility>

#include "core/base/error.hpp"

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

bool BlockWriter::reruns(RecomputeModule module) const {
  return recomputed_modules(stack.capabilities, plan).contains(module);
}

BlockWriter BlockWriter::again() const {
  BlockWriter writer = *this;
  writer.phase = Phase::Recompute;
  return writer;
}

void BlockWriter::start_at_gradient(std::size_t first, TensorRef gradient) const {
  if (first == ops.size() || ops[first].stream == Stream::Compute) return;
  ops[first].after_kernels = true;
  ops[first].reads.push_back(gradient);
}

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
    work.tokens = std::llround(elements / static_cast<double>(shape.hidden * work.copies));
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
  work.accumulate_fp32 = !gathered && !is_pure(plan.optimizer_states);
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

TensorRef BlockWriter::activation_as(std::string_view name, double elements, bool may_cast) const {
  const bool cast = may_cast && casts_operands(plan.precision);
  const double element = cast ? operand_bytes(plan.precision).value() : shape.element;
  return tensor(name, MemoryCategory::Activations, elements * element);
}

TensorRef BlockWriter::gemm_input(std::string_view name, double elements) const {
  // Adapters multiply in 16 bits.
  return activation_as(name, elements, stack.memory.fp8_saved_inputs && !freezes());
}

TensorRef BlockWriter::expert_activation(std::string_view name, double elements) const {
  return activation_as(name, elements, stack.memory.fp8_expert_activations);
}

TensorRef BlockWriter::tensor(std::string_view name, MemoryCategory category, double bytes) const {
  return {tensors.add(prefix + std::string(name), category, Bytes(bytes)), 0};
}

TensorId TensorTable::add(std::string_view name, MemoryCategory category, Bytes bytes,
                          Lifetime lifetime, bool per_microbatch) {
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (tensors_[i].name == name) {
      SHARDWRIGHT_CHECK(tensors_[i].bytes == bytes,
                        "tensor " + tensors_[i].name + " with two sizes");
      return static_cast<TensorId>(i);
    }
  }
  tensors_.push_back({std::string(name), category, bytes, lifetime, per_microbatch});
  return static_cast<TensorId>(tensors_.size() - 1);
}

void derive_waits(std::vector<Op>& ops) {
  struct Uses {
    std::optional<std::uint16_t> writer;
    // The ops that have read it since then.
    std::vector<std::uint16_t> readers;
  };
  boost::container::flat_map<TensorRef, Uses> uses;
  uses.reserve(4 * ops.size());
  std::optional<std::uint16_t> last_kernel;
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(ops.size()); ++i) {
    Op& op = ops[i];
    op.waits.clear();
    const auto wait_for = [&](std::uint16_t on) {
      if (ops[on].stream != op.stream) op.waits.push_back(on);
    };
    if (op.after_kernels && last_kernel) wait_for(*last_kernel);
    if (op.stream == Stream::Compute) last_kernel = i;
    for (const TensorRef ref : op.reads) {
      const Uses& before = uses[ref];
      if (before.writer) wait_for(*before.writer);
    }
    for (const TensorRef ref : op.writes) {
      for (const std::uint16_t reader : uses[ref].readers) wait_for(reader);
      uses[ref] = {i, {}};
    }
    for (const TensorRef ref : op.reads) uses[ref].readers.push_back(i);
    std::sort(op.waits.begin(), op.waits.end());
    op.waits.erase(std::unique(op.waits.begin(), op.waits.end()), op.waits.end());
  }
}

namespace {

bool contains(std::span<const TensorRef> refs, TensorRef ref) {
  return std::find(refs.begin(), refs.end(), ref) != refs.end();
}

void free_after(Op& op, TensorRef ref) {
  if (!contains(op.frees, ref)) op.frees.push_back(ref);
}

// Walks the ops in order and remembers, for each value that is alive, the op that used it last.
class LivenessPass {
 public:
  LivenessPass(const std::vector<TensorSpec>& tensors, std::span<const TensorRef> passed_on)
      : tensors_(tensors), passed_on_(passed_on) {
    last_use_.reserve(tensors.size());
  }

  void visit(Op& op) {
    for (const TensorRef ref : op.reads) {
      const auto found = last_use_.find(ref);
      if (found != last_use_.end()) {
        found->second = &op;
      } else if (tensors_[ref.tensor].lifetime == Lifetime::Borrowed) {
        last_use_[ref] = &op;
      }
    }
    for (const TensorRef ref : op.writes) define(op, ref);
  }

  void enter_with(TensorRef ref) { last_use_[ref] = nullptr; }

  // Frees what the blocks so far have borrowed; those to come borrow it anew.
  void return_borrowed() {
    for (auto it = last_use_.begin(); it != last_use_.end();) {
      if (tensors_[it->first.tensor].lifetime == Lifetime::Borrowed) {
        free_after(*it->second, it->first);
        it = last_use_.erase(it);
      } else {
        ++it;
      }
    }
  }

  // Frees what is written again before its next read.
  void free(TensorRef ref) {
    Op*& op = last_use_[ref];
    if (op != nullptr) free_after(*std::exchange(op, nullptr), ref);
  }

  void end() {
    for (auto& [ref, op] : last_use_) {
      if (op != nullptr) free_after(*op, ref);
    }
  }

 private:
  void define(Op& op, TensorRef ref) {
    if (contains(passed_on_, ref)) return;
    const auto found = last_use_.find(ref);
    const bool in_place = contains(op.reads, ref);
    if (found != last_use_.end() && !in_place && found->second != nullptr)
      free_after(*found->second, ref);
    last_use_[ref] = &op;
  }

  const std::vector<TensorSpec>& tensors_;
  std::span<const TensorRef> passed_on_;
  boost::container::flat_map<TensorRef, Op*> last_use_;
};

}  // namespace

void derive_frees(std::span<Block* const> in_order, const std::vector<TensorSpec>& tensors,
                  std::span<const TensorRef> passed_on, std::span<const TensorRef> passed_in,
                  std::span<const TensorRef> written_again) {
  LivenessPass pass(tensors, passed_on);
  for (const TensorRef ref : passed_in) pass.enter_with(ref);
  for (Block* block : in_order) {
    for (Op& op : block->ops) op.frees.clear();
    for (Op& op : block->ops) pass.visit(op);
    // The backward pass comes much later; recomputation and backward follow each other at once.
    if (block != in_order.front()) continue;
    pass.return_borrowed();
    for (const TensorRef ref : written_again) pass.free(ref);
  }
  pass.end();
}

}  // namespace shardwright
