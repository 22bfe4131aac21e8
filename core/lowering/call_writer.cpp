#include "core/lowering/call_writer.hpp"

#include <algorithm>

namespace shardwright {
namespace {

// The ops of a block through which it waits for what was issued before it: the first one on the
// compute stream, and each op of another stream that reads one of `handed_over` from outside of the
// block, unless it comes after such an op anyway.
std::vector<std::uint16_t> find_entries(const std::vector<Op>& ops,
                                        const std::vector<TensorId>& handed_over) {
  std::vector<std::uint16_t> entries;
  // True if it comes after an entry.
  std::vector<bool> after(ops.size(), false);
  EnumArray<Stream, bool> stream_after{};
  std::vector<TensorRef> written;
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(ops.size()); ++i) {
    const Op& op = ops[i];
    const Stream stream = op.stream;
    after[i] = stream_after[stream] || std::any_of(op.waits.begin(), op.waits.end(),
                                                   [&](std::uint16_t on) { return after[on]; });
    const bool enters = std::any_of(op.reads.begin(), op.reads.end(), [&](TensorRef ref) {
      return std::find(handed_over.begin(), handed_over.end(), ref.tensor) != handed_over.end() &&
             std::find(written.begin(), written.end(), ref) == written.end();
    });
    if (!after[i] && (enters || op.stream == Stream::Compute)) {
      entries.push_back(i);
      after[i] = true;
    }
    stream_after[stream] = after[i];
    written.insert(written.end(), op.writes.begin(), op.writes.end());
  }
  return entries;
}

// The last op of each stream, unless an op of another stream waits for it.
std::vector<std::uint16_t> find_exits(const std::vector<Op>& ops) {
  EnumArray<Stream, std::optional<std::uint16_t>> last{};
  for (std::uint16_t i = 0; i < static_cast<std::uint16_t>(ops.size()); ++i) {
    for (const std::uint16_t on : ops[i].waits) {
      std::optional<std::uint16_t>& end = last[ops[on].stream];
      if (end == on) end.reset();
    }
    last[ops[i].stream] = i;
  }
  std::vector<std::uint16_t> exits;
  for (const std::optional<std::uint16_t>& end : last) {
    if (end) exits.push_back(*end);
  }
  return exits;
}

}  // namespace

void CallWriter::reserve(std::size_t calls) {
  rank_.calls.reserve(calls);
  rank_.waits.reserve(calls);
}

void CallWriter::begin_slot() {
  rank_.slot_calls.push_back(static_cast<std::uint32_t>(rank_.calls.size()));
}

const std::vector<Op>& CallWriter::open_call(BlockId block, std::int32_t layer, const Slot& slot) {
  Call call;
  call.block = block;
  call.layer = layer;
  call.microbatch = slot.microbatch;
  call.chunk = slot.chunk;
  call.first_op = rank_.ops;
  call.first_wait = static_cast<std::uint32_t>(rank_.waits.size());
  call.first_covered = static_cast<std::uint32_t>(rank_.covered.size());
  rank_.calls.push_back(call);
  const std::vector<Op>& ops = blocks_.block(block).ops;
  rank_.ops += static_cast<std::uint32_t>(ops.size());
  return ops;
}

std::uint32_t CallWriter::call_around(BlockId block, std::int32_t layer, const Slot& slot,
                                      const std::vector<std::uint32_t>& on,
                                      const std::vector<PartId>& covered) {
  open_call(block, layer, slot);
  rank_.covered.insert(rank_.covered.end(), covered.begin(), covered.end());
  for (const std::uint32_t op : on) rank_.waits.push_back({rank_.calls.back().first_op, op});
  return rank_.ops - 1;
}

const CallWriter::BorderOps& CallWriter::border_ops_of(BlockId block) {
  if (border_ops_.size() <= block) border_ops_.resize(block + 1);
  std::optional<BorderOps>& border = border_ops_[block];
  if (!border) {
    const std::vector<Op>& ops = blocks_.block(block).ops;
    border = {find_entries(ops, handed_over_), find_exits(ops)};
  }
  return *border;
}

const std::vector<std::uint32_t>& CallWriter::ends() {
  ends_.clear();
  for (const Exit& exit : exits_) ends_.push_back(exit.op);
  return ends_;
}

void CallWriter::call_part(BlockId block, std::int32_t layer, const Slot& slot) {
  const std::vector<Op>& ops = open_call(block, layer, slot);
  if (ops.empty()) return;
  const std::uint32_t first = rank_.calls.back().first_op;
  const BorderOps& border = border_ops_of(block);
  for (const std::uint16_t entry : border.entries) {
    for (const std::uint32_t on : pending_) rank_.waits.push_back({first + entry, on});
    for (const Exit& exit : exits_) {
      if (exit.stream != ops[entry].stream) rank_.waits.push_back({first + entry, exit.op});
    }
  }
  pending_.clear();
  exits_.clear();
  for (const std::uint16_t exit : border.exits) exits_.push_back({first + exit, ops[exit].stream});
}

}  // namespace shardwright
