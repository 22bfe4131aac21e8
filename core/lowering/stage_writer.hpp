// Writes the calls of one pipeline stage: walks its schedule and adds messages, data parallelism
// and the optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/lowering/block_set.hpp"
#include "core/lowering/common_blocks.hpp"
#include "core/lowering/shard_shape.hpp"
#include "core/program/program.hpp"
#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// What all stages are written from. Everything referred to outlives the writers.
struct LoweringInput {
  const ModelSpec& model;
  const Plan& plan;
  const StackSpec& stack;
  const BlockSet& blocks;
  const PipelineSchedule& schedule;
  const std::vector<LayerRange>& parts;  // by position in the forward order
};

class StageWriter {
 public:
  StageWriter(const LoweringInput& input, std::int32_t stage, CommonBlocks& common);

  RankProgram write();

 private:
  // One part of the model (embedding, layer or head) in a slot.
  struct Part {
    const PartBlocks* blocks = nullptr;
    const PartParameters* parameters = nullptr;
    std::int32_t layer = 0;
  };
  // Bytes of dense and of experts' parameters or gradients, as in a gradient bucket that fills up.
  struct Bucket {
    double dense = 0.0, expert = 0.0;
    std::vector<PartId> parts;
  };

  // stage_writer.cpp
  void write_forward(const Slot& slot);
  void write_backward(const Slot& slot);
  void write_weight_gradients(const Slot& slot);
  // The parts of a chunk in forward order.
  const std::vector<Part>& parts_of(std::int32_t chunk) const {
    return parts_[static_cast<std::size_t>(chunk)];
  }
  std::vector<Part> list_parts(std::int32_t chunk) const;
  std::size_t position_of(std::int32_t chunk) const;  // in the forward order
  bool holds(std::int32_t position) const;            // one of its chunks is this part of the model
  LayerRange layers_of(std::int32_t chunk) const { return in_.parts[position_of(chunk)]; }
  // Layer `layer` is the one whose input crosses the boundary.
  void receive(bool gradient, const Place& from, std::int64_t layer, const Slot& slot);
  void send(bool gradient, const Place& to, std::int64_t layer, const Slot& slot);
  void call_part(BlockId block, const Part& part, const Slot& slot);
  // Appends a call of a small block whose first op waits for `on`; returns the number of its last
  // op.
  std::uint32_t call_common(BlockId block, std::int32_t layer, const Slot& slot,
                            const std::vector<std::uint32_t>& on,
                            const std::vector<PartId>& covered = {});
  const std::vector<Op>& open_call(BlockId block, std::int32_t layer, const Slot& slot);
  void wait_for(std::uint32_t on) { pending_.push_back(on); }
  // The ops of a part's block that wait for what was issued before it.
  const std::vector<std::uint16_t>& entries_of(BlockId block);

  // data_parallel.cpp
  // FSDP: issues the gathers of parts `index` to `index` + prefetch of a slot, unless they were
  // issued before, and makes the next call wait for that of `index`. Parts that do not read
  // parameters have none.
  void gather_ahead(const std::vector<Part>& parts, std::size_t index, bool backward,
                    const Slot& slot);
  void gather_part(const Part& part, bool backward, std::size_t index, const Slot& slot);
  // After a part's weight gradients: reduces them at once (FSDP), or through the bucket.
  void reduce_part(const Part& part, const Slot& slot);
  void flush_bucket(const Slot& slot);
  void reduce_bytes(const std::string& name, double bytes, Group inner, Group outer,
                    const std::vector<PartId>& parts, const Slot& slot);
  // The parts of the model whose parameters a part of a slot has.
  std::vector<PartId> parts_with(const Part& part) const;
  bool is_last_microbatch(const Slot& slot) const;
  // ZeRO-1 and 2: the updated parameters, beside the first forward pass or after the optimizer.
  void gather_beside_first_forward();
  void gather_after_optimizer();
  // Gathers of so many bytes, issued after `on`: the last op plus one; 0 if there is nothing to
  // gather.
  std::uint32_t gather_parameters(const Bucket& bytes, const std::vector<std::uint32_t>& on);
  void write_optimizer();
  void tie_embeddings();
  // With sequence parallelism each tensor-parallel rank has the norms' gradients of its own tokens.
  void reduce_replicated_gradients();
  void write_gradient_norm();

  LoweringInput in_;
  std::int32_t stage_;
  CommonBlocks& common_;
  RankProgram rank_;

  std::vector<std::vector<Part>> parts_;  // by chunk

  std::vector<std::uint32_t> pending_;  // ops that the next part's call waits for
  std::vector<std::optional<std::vector<std::uint16_t>>> entries_;  // by block, once found
  std::uint32_t last_op_ = 0;                                       // of the last part's call
  bool wrote_part_ = false;
  bool last_op_on_compute_ = true;

  Bucket bucket_;
  std::vector<std::int64_t> completed_;  // by chunk: microbatches whose gradients are complete
  // Ops plus one; 0: none. By chunk and part: the gather at the start of the step. By part of the
  // slot at hand: FSDP's.
  std::vector<std::vector<std::uint32_t>> first_gather_;
  std::vector<std::uint32_t> slot_gather_;
  std::uint32_t last_reduce_ = 0;
};

}  // namespace shardwright
