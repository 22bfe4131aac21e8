// Writes the calls of one pipeline stage: walks its schedule and adds messages, data parallelism
// and the optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/lowering/block_set.hpp"
#include "core/lowering/data_parallel_messages.hpp"
#include "core/lowering/slot_walk.hpp"
#include "core/lowering/surrounding_blocks.hpp"
#include "core/program/program.hpp"
#include "core/program/shard_shape.hpp"
#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// The inputs that all stages are written from. Everything referred to outlives the writers.
struct LoweringInput {
  const ModelSpec& model;
  const Plan& plan;
  const StackSpec& stack;
  const BlockSet& blocks;
  const PipelineSchedule& schedule;
  // The layers of each part by position in the forward order.
  const std::vector<LayerRange>& parts;
};

class StageWriter {
 public:
  StageWriter(const LoweringInput& input, std::int32_t stage, SurroundingBlocks& around);

  RankProgram write();

 private:
  using Part = ChunkPart<PartBlocks>;
  // Writes the calls of one slot as walk_slot() comes to them.
  class SlotCalls;

  void reserve_calls(const std::vector<Slot>& slots);
  void write_slot(const Slot& slot);
  // The parts of a chunk in forward order.
  const std::vector<Part>& parts_of(std::int32_t chunk) const {
    return parts_[static_cast<std::size_t>(chunk)];
  }
  const PartParameters& parameters_of(const Part& part) const;
  // Returns the position in the forward order.
  std::size_t position_of(std::int32_t chunk) const;
  LayerRange layers_of(std::int32_t chunk) const { return in_.parts[position_of(chunk)]; }
  // Layer `layer` is the one whose input crosses the boundary.
  void receive(bool gradient, const Place& from, std::int64_t layer, const Slot& slot);
  void send(bool gradient, const Place& to, std::int64_t layer, const Slot& slot);
  void call_part(BlockId block, std::int32_t layer, const Slot& slot);
  // Appends a call of a small block whose first op waits for the ends of `on`; returns the number
  // of its last op.
  std::uint32_t call_around(BlockId block, std::int32_t layer, const Slot& slot,
                            const std::vector<std::uint32_t>& on,
                            const std::vector<PartId>& covered = {});
  const std::vector<Op>& open_call(BlockId block, std::int32_t layer, const Slot& slot);
  void wait_for(std::uint32_t on) { pending_.push_back(on); }
  // The ops that everything after the last part's call waits for.
  const std::vector<std::uint32_t>& ends();
  std::vector<std::uint32_t> reduced_ends();
  // The ops at a block's borders, by which it follows the one before it and is followed by the
  // next.
  struct BorderOps {
    // Ops that wait for ops issued before the block.
    std::vector<std::uint16_t> entries;
    // Ops that no later op of the block waits for.
    std::vector<std::uint16_t> exits;
  };
  const BorderOps& border_ops_of(BlockId block);

  // data_parallel.cpp
  // Reduces the gradients of a part after the last of a microbatch's: at once (FSDP), or through the
  // bucket.
  void reduce_part(const Part& part, const Slot& slot);
  void reduce_sharded(const Part& part, const Slot& slot);
  void flush_bucket(const Slot& slot);
  void reduce(const std::string& name, const GradientReduction& reduction,
              const std::vector<PartId>& covered, const Slot& slot);
  // The parts of the model whose parameters a part of a slot has; and all of the stage.
  std::vector<PartId> parts_with(const Part& part) const;
  std::vector<PartId> all_parts() const;
  bool is_last_microbatch(const Slot& slot) const;
  // ZeRO-1 and 2: the updated parameters, beside the first forward pass or after the optimizer.
  void gather_beside_first_forward();
  void gather_after_optimizer();
  // Gathers of so many bytes, issued after `on`: the last op plus one; 0 if there is nothing to
  // gather.
  std::uint32_t gather_parameters(const Bucket& bytes, const std::vector<PartId>& covered,
                                  const std::vector<std::uint32_t>& on);
  void write_optimizer();
  void write_gradient_norm(const MemoryWork& work);
  void add_up_copies();
  void tie_embeddings();
  // All-reduce of gradients after the last backward, once in a step; nothing in a group of one.
  void all_reduce_gradients(const std::string& name, Group group, double bytes, Payload payload,
                            const std::vector<PartId>& covered = {});

  LoweringInput in_;
  std::int32_t stage_;
  SurroundingBlocks& around_;
  RankProgram rank_;

  // Parts by chunk.
  std::vector<std::vector<Part>> parts_;

  // Ops that the next part's call waits for.
  std::vector<std::uint32_t> pending_;
  // Tensors that are handed over to a part by other calls than those of its own blocks.
  std::vector<TensorId> handed_over_;
  // The border ops of each block, once found.
  std::vector<std::optional<BorderOps>> border_ops_;
  // The exits of the last part's call: after them all of it is done.
  struct Exit {
    std::uint32_t op = 0;
    Stream stream = Stream::Compute;
  };
  std::vector<Exit> exits_;
  // The value of ends().
  std::vector<std::uint32_t> ends_;

  ModelEnds ends_of_model_;
  // True if the output head's part holds a copy of the embedding, too.
  bool copies_embedding_ = false;
  // Parameters of that part.
  PartParameters head_and_copy_;
  // All parameters that the stage holds.
  PartParameters parameters_;

  // True with FSDP: parameters are gathered before use.
  bool sharded_ = false;
  // True if activations wait on the host between the passes of some parts.
  bool offloads_ = false;
  // The size from which on a gradient bucket is reduced.
  double bucket_bytes_;
  Bucket bucket_;
  std::vector<PartId> bucket_parts_;
  // The number of microbatches whose gradients are complete, by chunk.
  std::vector<std::int64_t> completed_;
  // The gather at the start of the step by chunk and part, as the number of its last op plus one;
  // 0: none.
  std::vector<std::vector<std::uint32_t>> first_gather_;
  // The last reduction, as such a number.
  std::uint32_t last_reduce_ = 0;
};

}  // namespace shardwright
