#include "core/lowering/lowering.hpp"

#include <map>
#include <optional>

#include "core/lowering/message_waits.hpp"
#include "core/lowering/pool_blocks.hpp"
#include "core/lowering/stage_writer.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

// Blocks by the number of experts of a rank, for those ranks that hold other numbers than the first
// part's, whose blocks the program has.
std::map<std::int64_t, BlockSet> blocks_of_further_experts(const ModelSpec& model, const Plan& plan,
                                                           const StackSpec& stack,
                                                           Program& program) {
  std::map<std::int64_t, BlockSet> further;
  for (std::size_t part = 1; numbers_experts(plan) && part < replica_parts(plan); ++part) {
    const std::int64_t experts = plan.replica_pools[part].experts;
    if (experts == plan.replica_pools.front().experts || further.contains(experts)) continue;
    further.emplace(experts,
                    append_blocks(make_blocks(model, plan_of_part(plan, part), stack), program));
  }
  return further;
}

}  // namespace

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
  const std::map<std::int64_t, BlockSet> further =
      blocks_of_further_experts(model, plan, stack, program);
  SurroundingBlocks around(program, blocks.message_bytes, host_waits_for_receives(stack, plan));
  const std::vector<LayerRange> layers = split_layers(model, plan);
  for (std::size_t part = 0; part < replica_parts(plan); ++part) {
    const Plan own = plan_of_part(plan, part);
    std::optional<PipelineSchedule> shorter;
    if (own.microbatches() != plan.microbatches())
      shorter = make_schedule(own.schedule, shape_of(own));
    const auto other = further.find(own.replica_pools.empty() ? 0 : own.replica_pools[0].experts);
    const BlockSet& set = other == further.end() ? blocks : other->second;
    const LoweringInput input{model, own, stack, set, shorter ? *shorter : schedule, layers};
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
