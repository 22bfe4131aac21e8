#include "core/lowering/pool_blocks.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/program/group_lattice.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

using Pools = std::vector<std::int32_t>;

// True if some collective of the block joins parts of the replicas.
bool joins_replicas(const Block& block, const Plan& plan) {
  return std::any_of(block.ops.begin(), block.ops.end(), [&](const Op& op) {
    const auto* message = std::get_if<CommunicationWork>(&op.work);
    return message != nullptr && joins_pools_of_replicas(message->group, plan);
  });
}

// The pools that messages of a stage's block to other stages of its replica reach; its own where it
// has none.
Pools pools_of_messages(const Plan& plan, const Block& block, std::size_t stage) {
  const auto stages = static_cast<std::size_t>(plan.pp);
  for (const Op& op : block.ops) {
    const auto* message = std::get_if<CommunicationWork>(&op.work);
    if (message == nullptr) continue;
    if (message->peer_offset != 0)
      return {pool_of_stage(plan, static_cast<std::size_t>(static_cast<std::ptrdiff_t>(stage) +
                                                           message->peer_offset))};
    if (message->group == Group::EmbeddingTie)
      return {pool_of_stage(plan, stage / stages * stages + stages - 1 - stage % stages)};
    if (message->group == Group::ModelParallel) return pools_of_replica(plan, stage);
  }
  return {pool_of_stage(plan, stage)};
}

// The blocks of the program with their pools, each once.
class PlacedBlocks {
 public:
  explicit PlacedBlocks(Program& program) : program_(program) {}

  // The stage's own copy of a block, or the block itself where it lies on the first pool alone.
  BlockId of(BlockId shared, std::size_t stage) {
    const Plan& plan = program_.plan;
    Block block = program_.blocks[shared];
    block.pool = pool_of_stage(plan, stage);
    const auto beyond_own = [&](Pools pools) {
      return pools == Pools{block.pool} ? Pools() : std::move(pools);
    };
    block.stage_pools = beyond_own(pools_of_messages(plan, block, stage));
    if (joins_replicas(block, plan))
      block.replica_pools = beyond_own(pools_of_replicas(plan, stage));
    if (block.pool == 0 && block.stage_pools.empty() && block.replica_pools.empty()) return shared;
    const auto [known, is_new] =
        known_.try_emplace({shared, block.pool, block.stage_pools, block.replica_pools},
                           static_cast<BlockId>(program_.blocks.size()));
    if (is_new) program_.blocks.push_back(std::move(block));
    return known->second;
  }

 private:
  Program& program_;
  std::map<std::tuple<BlockId, std::int32_t, Pools, Pools>, BlockId> known_;
};

// The numbers that a set's blocks and tensors get behind those of a program.
class Renumbering {
 public:
  explicit Renumbering(const Program& program)
      : blocks_(static_cast<BlockId>(program.blocks.size())),
        tensors_(static_cast<TensorId>(program.tensors.size())) {}

  void apply(TensorRef& ref) const { ref.tensor = static_cast<TensorId>(ref.tensor + tensors_); }
  void apply(Block& block) const {
    for (Op& op : block.ops)
      for (std::vector<TensorRef>* refs : {&op.reads, &op.writes, &op.frees})
        for (TensorRef& ref : *refs) apply(ref);
  }
  void apply(PartBlocks& part) const {
    for (BlockId* block : {&part.forward, &part.recompute, &part.backward, &part.backward_input,
                           &part.backward_weight, &part.store, &part.fetch})
      *block += blocks_;
    for (TensorId* tensor : {&part.parameters, &part.parameter_gradient})
      *tensor = static_cast<TensorId>(*tensor + tensors_);
  }

 private:
  BlockId blocks_;
  TensorId tensors_;
};

}  // namespace

BlockSet append_blocks(BlockSet set, Program& program) {
  const Renumbering numbers(program);
  for (Block& block : set.blocks) numbers.apply(block);
  for (std::vector<PartBlocks>* parts :
       {&set.kept, &set.recomputed, &set.grouped.first, &set.grouped.middle, &set.grouped.last})
    for (PartBlocks& part : *parts) numbers.apply(part);
  numbers.apply(set.embedding);
  numbers.apply(set.head);
  if (set.recomputed_head) numbers.apply(*set.recomputed_head);
  numbers.apply(set.hidden);
  numbers.apply(set.hidden_gradient);
  program.tensors.insert(program.tensors.end(), set.tensors.begin(), set.tensors.end());
  program.blocks.insert(program.blocks.end(), set.blocks.begin(), set.blocks.end());
  set.tensors = program.tensors;
  set.blocks = program.blocks;
  return set;
}

void part_blocks_by_pool(Program& program) {
  if (!names_pools(program.plan)) return;
  PlacedBlocks placed(program);
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage) {
    std::map<BlockId, BlockId> own;
    for (Call& call : program.stages[stage].calls) {
      const auto [block, is_new] = own.try_emplace(call.block);
      if (is_new) block->second = placed.of(call.block, stage);
      call.block = block->second;
    }
  }
}

}  // namespace shardwright
