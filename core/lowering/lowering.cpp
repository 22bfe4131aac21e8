#include "core/lowering/lowering.hpp"

#include <optional>

#include "core/lowering/message_waits.hpp"
#include "core/lowering/pool_blocks.hpp"
#include "core/lowering/stage_writer.hpp"
#include "core/spec/pools.hpp"

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
  const std::vector<LayerRange> layers = split_layers(model, plan);
  for (std::size_t part = 0; part < replica_parts(plan); ++part) {
    const Plan own = plan_of_part(plan, part);
    std::optional<PipelineSchedule> shorter;
    if (own.microbatches() != plan.microbatches())
      shorter = make_schedule(own.schedule, shape_of(own));
    const LoweringInput input{model, own, stack, blocks, shorter ? *shorter : schedule, layers};
    for (std::int32_t stage = 0; stage < plan.pp; ++stage) {
      RankProgram rank = write_stage(input, stage, around);
      rank.stage = static_cast<std::int32_t>(program.stages.size());
      program.stages.push_back(std::move(rank));
    }
  }
  part_blocks_by_pool(program);
  return program;
}

}  // namespace shardwright
