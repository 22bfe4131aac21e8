#include "core/lowering/pool_blocks.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <variant>

#include "core/program/group_lattice.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

// True if some collective of the block joins replicas on several pools.
bool joins_replicas(const Block& block, const Plan& plan) {
  return std::any_of(block.ops.begin(), block.ops.end(), [&](const Op& op) {
    const auto* message = std::get_if<CommunicationWork>(&op.work);
    return message != nullptr && joins_pools_of_replicas(message->group, plan);
  });
}

// The pool at the other end of the messages of a stage's block; its own where it has none.
std::int32_t peer_pool_of(const Program& program, const Block& block, std::size_t stage,
                          const std::vector<std::int32_t>& pools) {
  if (!program.plan.replica_pools.empty())
    return joins_replicas(block, program.plan) ? kAllPools : pools[stage];
  for (const Op& op : block.ops) {
    const auto* message = std::get_if<CommunicationWork>(&op.work);
    if (message == nullptr) continue;
    if (message->peer_offset != 0)
      return pools[static_cast<std::size_t>(static_cast<std::ptrdiff_t>(stage) +
                                            message->peer_offset)];
    if (message->group == Group::EmbeddingTie) return pools[pools.size() - 1 - stage];
    if (message->group == Group::ModelParallel && pools.front() != pools.back()) return kAllPools;
  }
  return pools[stage];
}

}  // namespace

void part_blocks_by_pool(Program& program) {
  if (!names_pools(program.plan)) return;
  std::vector<std::int32_t> pools;
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage)
    pools.push_back(pool_of_stage(program.plan, stage));
  std::map<std::tuple<BlockId, std::int32_t, std::int32_t>, BlockId> known;
  for (std::size_t stage = 0; stage < program.stages.size(); ++stage) {
    for (Call& call : program.stages[stage].calls) {
      const std::int32_t pool = pools[stage];
      const std::int32_t peer_pool =
          peer_pool_of(program, program.blocks[call.block], stage, pools);
      if (pool == 0 && peer_pool == 0) continue;
      const auto [place, is_new] = known.try_emplace({call.block, pool, peer_pool},
                                                     static_cast<BlockId>(program.blocks.size()));
      if (is_new) {
        Block block = program.blocks[call.block];
        block.pool = pool;
        block.peer_pool = peer_pool;
        program.blocks.push_back(std::move(block));
      }
      call.block = place->second;
    }
  }
}

}  // namespace shardwright
