// Context parallelism: attention over sequences of which each rank has a part. Keys and values are
// gathered (arXiv 2407.21783, section 3.3.2), or go around a ring (arXiv 2310.01889), or the ranks
// exchange their tokens of all heads for all tokens of some heads (Ulysses, arXiv 2309.14509).
#include <array>
#include <span>
#include <vector>

#include "core/base/error.hpp"
#include "executor/runtime/op_runner.hpp"

namespace shardwright::executor {
namespace {

// The columns of one rank's heads: the first one in a row of all heads, and the place of its first
// row among the parts of the ranks, which have rows of their own heads alone.
struct HeadColumns {
  std::int64_t columns = 0, in_all = 0, in_parts = 0;
};

// `widths` are those of all heads' queries, keys and values, or of their outputs.
std::vector<HeadColumns> columns_of(std::span<const std::int64_t> widths, std::int64_t ranks,
                                    std::int64_t rows) {
  const std::int64_t all = sum_of(widths);
  std::vector<HeadColumns> columns;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    std::int64_t before = 0;
    for (const std::int64_t width : widths) {
      const std::int64_t own = width / ranks;
      columns.push_back({own, before + rank * own, (rank * rows * all + before) / ranks});
      before += width;
    }
  }
  return columns;
}

// The rows of one sequence that one rank holds: the first one among the rows of whole sequences,
// and among those that lie one rank after another.
struct SequencePiece {
  std::int64_t in_sequence = 0, in_part = 0;
};

std::vector<SequencePiece> pieces_of(const ShardShape& shape, std::int64_t ranks) {
  std::vector<SequencePiece> pieces;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    for (std::int64_t sequence = 0; sequence < shape.sequences; ++sequence)
      pieces.push_back({(sequence * ranks + rank) * shape.sequence_tokens,
                        (rank * shape.sequences + sequence) * shape.sequence_tokens});
  }
  return pieces;
}

}  // namespace

void OpRunner::context_collective(const BoundOp& bound, const CommunicationWork& work,
                                  Communicator& group) {
  switch (bound.op->kind) {
    case OpKind::AllGather:
      return gather_keys_values(bound, group);
    case OpKind::ReduceScatter:
      return scatter_key_value_gradients(bound, group);
    case OpKind::AllToAll:
      return exchange_heads(bound, work, group);
    case OpKind::RingShift:
      return shift_ring(bound, group);
    default:
      SHARDWRIGHT_CHECK(false, "no collective for " + bound.op->name);
  }
}

// The operands besides those of attention: the gathered keys and values as the last one that is
// read, and backward one tensor for the gradients of the queries and of those.
void OpRunner::context_attention(const BoundOp& bound, const AttentionWork& work) {
  if (exchanges_heads()) return attention_of_heads(bound, work);
  if (ring_steps_.contains(bound.op)) return ring_attention(bound, work);
  const SequencePart part = sequence_part(program_.plan, place_[Axis::Context]);
  const void* gathered = bound.reads.back();
  if (!work.backward) {
    return kernels_.context_attention(work, part, bound.read(0), gathered, bound.write(0),
                                      bound.write(1), bound.queue);
  }
  kernels_.context_attention_backward(work, part, bound.read(0), gathered, bound.read(1),
                                      bound.read(2), bound.read(3), bound.write(0),
                                      gathered_gradient(bound.write(0)), bound.queue);
}

void* OpRunner::gathered_gradient(void* gradients) const {
  const auto queries = static_cast<std::size_t>(shape_.tokens * query_width());
  return element_at(gradients, queries, kernels_.element());
}

void OpRunner::gather_keys_values(const BoundOp& bound, Communicator& group) {
  const Element element = kernels_.element();
  const std::int64_t queries = query_width(), width = key_value_width();
  const auto each = static_cast<std::size_t>(shape_.tokens * width);
  const void* keys = element_at(bound.read(0), static_cast<std::size_t>(queries), element);
  void* all = bound.write(0);
  void* own = element_at(all, static_cast<std::size_t>(group.rank()) * each, element);
  kernels_.copy_columns(shape_.tokens, width, keys, queries + width, own, width, bound.queue);
  group.all_gather(own, all, each, element, bound.queue);
}

void OpRunner::scatter_key_value_gradients(const BoundOp& bound, Communicator& group) {
  const Element element = kernels_.element();
  const std::int64_t queries = query_width(), width = key_value_width();
  const auto each = static_cast<std::size_t>(shape_.tokens * width);
  void* all = gathered_gradient(bound.reads.front());
  void* own = element_at(all, static_cast<std::size_t>(group.rank()) * each, element);
  group.reduce_scatter(all, own, each, element, bound.queue);
  void* gradient = bound.write(0);
  kernels_.copy_columns(shape_.tokens, queries, bound.read(0), queries, gradient, queries + width,
                        bound.queue);
  kernels_.copy_columns(shape_.tokens, width, own, width,
                        element_at(gradient, static_cast<std::size_t>(queries), element),
                        queries + width, bound.queue);
}

void OpRunner::find_ring_steps() {
  for (const Block& block : program_.blocks) {
    std::int64_t step = 0;
    for (const Op& op : block.ops) {
      if (op.kind == OpKind::RingShift && ring_buffer_ == nullptr)
        ring_buffer_ = kernels_.allocate(bytes_of_rows(shape_.tokens, key_value_width()));
      if (op.kind != OpKind::Attention || program_.plan.cp == 1 ||
          program_.plan.context_parallel != ContextParallelKind::Ring)
        continue;
      ring_steps_[&op] = step;
      step = (step + 1) % program_.plan.cp;
    }
  }
}

// The keys and values go around the ring upwards, and backward downwards, where they start as they
// end forward.
void OpRunner::ring_attention(const BoundOp& bound, const AttentionWork& work) {
  const std::int64_t cp = program_.plan.cp, step = ring_steps_.at(bound.op);
  const std::int64_t own = place_[Axis::Context];
  const bool is_last = step + 1 == cp;
  const std::int64_t owner = (work.backward ? own + 1 + step : own + cp - step) % cp;
  const SequencePart part = sequence_part(program_.plan, own);
  const SequencePart of_owner = sequence_part(program_.plan, owner);
  const void* qkv = bound.read(0);
  const void* block = step == 0 ? nullptr : bound.read(1);
  if (work.backward) {
    return kernels_.ring_attention_backward(work, part, of_owner, qkv, block, bound.read(2),
                                            bound.read(3), bound.read(4), bound.write(0),
                                            is_last ? nullptr : bound.write(1), bound.queue);
  }
  kernels_.ring_attention(work, part, of_owner, qkv, block, bound.write(0), bound.write(1),
                          bound.queue);
  const bool keeps_block = bound.writes.size() > 2;
  if (!keeps_block) return;
  const std::int64_t queries = query_width(), width = key_value_width();
  kernels_.copy_columns(shape_.tokens, width, block, width, at(bound.write(2), queries),
                        queries + width, bound.queue);
}

void OpRunner::shift_ring(const BoundOp& bound, Communicator& group) {
  const std::int64_t queries = query_width(), width = key_value_width();
  const std::size_t bytes = bytes_of_rows(shape_.tokens, width);
  const auto size = static_cast<std::size_t>(group.size());
  const auto above = (static_cast<std::size_t>(group.rank()) + 1) % size;
  const auto below = (static_cast<std::size_t>(group.rank()) + size - 1) % size;
  const bool backward = is_backward(bound.op->phase);
  std::vector<std::size_t> sent(size), received(size);
  sent[backward ? below : above] = received[backward ? above : below] = bytes;
  for (std::size_t i = 0; i < bound.writes.size(); ++i) {
    const void* block = bound.read(i);
    if (bytes_of_tensor(bound.op->reads[i], *bound.call) > bytes) {
      kernels_.copy_columns(shape_.tokens, width, at(block, queries), queries + width,
                            ring_buffer_.get(), width, bound.queue);
      block = ring_buffer_.get();
    }
    group.all_to_all(block, sent, bound.write(i), received, bound.queue);
  }
}

// What the other ranks have added to the gradients of a block comes behind those of this rank.
void OpRunner::add_ring_gradient(const BoundOp& bound) {
  const std::int64_t queries = query_width(), width = key_value_width();
  const bool in_rows =
      bytes_of_tensor(bound.op->writes.front(), *bound.call) > bytes_of_rows(shape_.tokens, width);
  kernels_.add_columns(shape_.tokens, width, bound.read(1), width,
                       at(bound.write(0), in_rows ? queries : 0), width + (in_rows ? queries : 0),
                       bound.queue);
}

bool OpRunner::exchanges_heads() const {
  return program_.plan.cp > 1 && program_.plan.context_parallel == ContextParallelKind::Ulysses;
}

// The exchanged queries, keys and values take the place of the projected ones, so that the backward
// pass finds them there; a selective recomputation still needs the projected ones, and does so
// itself. The backward pass gets no output of these heads, which the forward pass has sent back.
void OpRunner::attention_of_heads(const BoundOp& bound, AttentionWork work) {
  work.heads /= program_.plan.cp;
  work.kv_heads /= program_.plan.cp;
  work.q_tokens = work.kv_tokens;
  const void* exchanged = bound.reads.back();
  if (work.backward) {
    return kernels_.attention_backward(work, bound.read(0), nullptr, bound.read(2), exchanged,
                                       bound.write(0), bound.queue);
  }
  kernels_.attention(work, exchanged, bound.write(0), bound.write(1), bound.queue);
  const bool again = reruns_attention_ && program_.plan.recompute == RecomputePolicy::Selective;
  if (again && bound.op->phase == Phase::Forward) return;
  kernels_.copy(bound.reads.front(), exchanged,
                bytes_of_rows(shape_.tokens, query_width() + key_value_width()), bound.queue);
}

// Queries, keys and values go to the ranks of their heads, and their gradients come back; outputs
// come back, and their gradients go to the ranks of their heads.
void OpRunner::exchange_heads(const BoundOp& bound, const CommunicationWork& work,
                              Communicator& group) {
  const std::array projected = {query_width(), shape_.kv_heads * shape_.head_dim,
                                shape_.kv_heads * shape_.value_dim};
  const std::array outputs = {shape_.heads * shape_.value_dim};
  const auto carried = static_cast<std::int64_t>(work.bytes.value()) /
                       static_cast<std::int64_t>(bytes_of(kernels_.element()));
  const bool of_outputs = carried == shape_.tokens * outputs.front();
  const std::span<const std::int64_t> widths =
      of_outputs ? std::span<const std::int64_t>(outputs) : projected;
  if (of_outputs == is_backward(bound.op->phase)) {
    tokens_to_heads(widths, bound, group);
  } else {
    heads_to_tokens(widths, bound, group);
  }
}

void OpRunner::tokens_to_heads(std::span<const std::int64_t> widths, const BoundOp& bound,
                               Communicator& group) {
  const std::int64_t all = sum_of(widths);
  const std::int64_t own = all / group.size();
  for (const HeadColumns& heads : columns_of(widths, group.size(), shape_.tokens))
    kernels_.copy_columns(shape_.tokens, heads.columns, at(bound.read(0), heads.in_all), all,
                          at(head_buffer_.get(), heads.in_parts), own, bound.queue);
  const void* received = exchange_parts(own, bound, group);
  for (const SequencePiece& piece : pieces_of(shape_, group.size()))
    kernels_.copy(at(bound.write(0), piece.in_sequence * own), at(received, piece.in_part * own),
                  bytes_of_rows(shape_.sequence_tokens, own), bound.queue);
}

void OpRunner::heads_to_tokens(std::span<const std::int64_t> widths, const BoundOp& bound,
                               Communicator& group) {
  const std::int64_t all = sum_of(widths);
  const std::int64_t own = all / group.size();
  for (const SequencePiece& piece : pieces_of(shape_, group.size()))
    kernels_.copy(at(head_buffer_.get(), piece.in_part * own),
                  at(bound.read(0), piece.in_sequence * own),
                  bytes_of_rows(shape_.sequence_tokens, own), bound.queue);
  const void* received = exchange_parts(own, bound, group);
  for (const HeadColumns& heads : columns_of(widths, group.size(), shape_.tokens))
    kernels_.copy_columns(shape_.tokens, heads.columns, at(received, heads.in_parts), own,
                          at(bound.write(0), heads.in_all), all, bound.queue);
}

const void* OpRunner::exchange_parts(std::int64_t width, const BoundOp& bound,
                                     Communicator& group) {
  const std::vector<std::size_t> each(static_cast<std::size_t>(group.size()),
                                      bytes_of_rows(shape_.tokens, width));
  void* received = at(head_buffer_.get(), shape_.tokens * width * group.size());
  group.all_to_all(head_buffer_.get(), each, received, each, bound.queue);
  return received;
}

void* OpRunner::at(void* array, std::int64_t index) const {
  return element_at(array, static_cast<std::size_t>(index), kernels_.element());
}

const void* OpRunner::at(const void* array, std::int64_t index) const {
  return element_at(array, static_cast<std::size_t>(index), kernels_.element());
}

std::size_t OpRunner::bytes_of_rows(std::int64_t rows, std::int64_t width) const {
  return static_cast<std::size_t>(rows * width) * bytes_of(kernels_.element());
}

}  // namespace shardwright::executor
