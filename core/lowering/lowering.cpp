#include "core/lowering/lowering.hpp"

#include "core/lowering/message_waits.hpp"
#include "core/lowering/pool_blocks.hpp"
#include "core/lowering/stage_writer.hpp"

namespace shardwright {

Program lower(const ModelSpec& model, const Plan& plan, const StackSpec& stack) {
  return lower(model, plan, stack, make_blocks(model, plan, stack),
               make_schedule(plan.schedule, shape_of(plan)));
}

Program lower(const ModelSpec& model, const Plan& plan, const StackSpec& stack,
              const BlockSet& blocks, const PipelineSchedule& schedule) {
  Program program;
  program.plan = plan;
  program.tensors = blocks.tensors;
  program.blocks = blocks.blocks;
  SurroundingBlocks around(program, blocks.message_bytes, host_waits_for_receives(stack, plan));
  const std::vector<LayerRange> parts = split_layers(model, plan);
  const LoweringInput input{model, plan, stack, blocks, schedule, parts};
  for (std::int32_t stage = 0; stage < plan.pp; ++stage)
    program.stages.push_back(write_stage(input, stage, around));
  part_blocks_by_pool(program);
  return program;
}

}  // namespace shardwright
