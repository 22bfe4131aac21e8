// Appends calls to the list of a pipeline stage, with the waits between them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "core/lowering/surrounding_blocks.hpp"
#include "core/program/program.hpp"
#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

class CallWriter {
 public:
  // `handed_over`: tensors that parts get from other calls than those of their own blocks. `blocks`
  // must outlive the writer.
  CallWriter(const SurroundingBlocks& blocks, std::vector<TensorId> handed_over)
      : blocks_(blocks), handed_over_(std::move(handed_over)) {}

  // Makes room for about as many calls and waits.
  void reserve(std::size_t calls);
  // The calls to come are those of the next slot, or those behind the last slot.
  void begin_slot();

  // Appends a call of a part's block, which follows the part before it: its entries wait for the
  // ends of that one and for the ops that wait_for() named since.
  void call_part(BlockId block, std::int32_t layer, const Slot& slot);
  // Appends a call of a small block whose first op waits for `on`; returns the number of its last
  // op.
  std::uint32_t call_around(BlockId block, std::int32_t layer, const Slot& slot,
                            const std::vector<std::uint32_t>& on,
                            const std::vector<PartId>& covered = {});
  void wait_for(std::optional<std::uint32_t> op) {
    if (op) pending_.push_back(*op);
  }
  // Adds an op to ends().
  void end_with(std::uint32_t op, Stream stream) { exits_.push_back({op, stream}); }
  // The ops that everything after the last part's call waits for.
  const std::vector<std::uint32_t>& ends();

  // Everything that was written.
  RankProgram take() { return std::move(rank_); }

 private:
  // The ops at a block's borders, by which it follows the one before it and is followed by the
  // next.
  struct BorderOps {
    // Ops that wait for ops issued before the block.
    std::vector<std::uint16_t> entries;
    // Ops that no later op of the block waits for.
    std::vector<std::uint16_t> exits;
  };
  struct Exit {
    std::uint32_t op = 0;
    Stream stream = Stream::Compute;
  };

  const std::vector<Op>& open_call(BlockId block, std::int32_t layer, const Slot& slot);
  const BorderOps& border_ops_of(BlockId block);

  const SurroundingBlocks& blocks_;
  std::vector<TensorId> handed_over_;
  RankProgram rank_;
  // Ops that the next part's call waits for.
  std::vector<std::uint32_t> pending_;
  // The exits of the last part's call: after them all of it is done.
  std::vector<Exit> exits_;
  // The value of ends().
  std::vector<std::uint32_t> ends_;
  // The border ops of each block, once found.
  std::vector<std::optional<BorderOps>> border_ops_;
};

}  // namespace shardwright
