// Writes the calls of one pipeline stage: walks its schedule and adds messages, data parallelism
// and the optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/lowering/block_set.hpp"
#include "core/lowering/call_writer.hpp"
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

RankProgram write_stage(const LoweringInput& input, std::int32_t stage, SurroundingBlocks& around);

// What the calls of a stage follow from, and what was written of them.
struct StageWriter {
  using Part = ChunkPart<PartBlocks>;
  // The number of an op that there may not be.
  using OptionalOp = std::optional<std::uint32_t>;

  const LoweringInput& in;
  SurroundingBlocks& around;
  CallWriter calls;
  std::int32_t stage = 0;
  // The parts of each chunk in forward order.
  std::vector<std::vector<Part>> parts;
  ModelEnds ends_of_model;
  // Activations wait on the host between the passes of some parts.
  bool offloads = false;
  // FSDP: parameters are gathered before use.
  bool sharded = false;
  // The output head's part holds a copy of the embedding, too.
  bool copies_embedding = false;
  // Parameters of that part.
  PartParameters head_and_copy;
  // All parameters that the stage holds, and those of each fragment of local steps.
  PartParameters parameters;
  std::vector<PartParameters> fragments;

  // Gradients that wait for their reduction, and those of them to which no microbatch adds.
  Bucket bucket, complete;
  std::vector<PartId> bucket_parts, complete_parts;
  // The number of microbatches whose gradients are complete, by chunk.
  std::vector<std::int64_t> completed;
  // The last op of each gather at the start of the step, by chunk and part.
  std::vector<std::vector<OptionalOp>> first_gather;
  OptionalOp last_reduce;

  StageWriter(const LoweringInput& input, std::int32_t number, SurroundingBlocks& around_parts);
  const PartParameters& parameters_of(const Part& part) const;
};

// data_parallel.cpp

// Reduces the gradients of a part after the last of a microbatch's: at once (FSDP), or through the
// bucket.
void reduce_part(StageWriter& writer, const StageWriter::Part& part, const Slot& slot);

// ZeRO-1 and 2: the updated parameters, beside the first forward pass or after the optimizer.
void gather_beside_first_forward(StageWriter& writer);
void gather_after_optimizer(StageWriter& writer);

void write_optimizer(StageWriter& writer);
// Local steps: the exchange between replicas, after the optimizer.
void agree_on_local_steps(StageWriter& writer);

}  // namespace shardwright
