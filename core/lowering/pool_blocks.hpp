// Blocks of stages, and of replicas, on different pools.
#pragma once

#include "core/lowering/block_set.hpp"
#include "core/program/program.hpp"

namespace shardwright {

// Gives stages on different pools blocks of their own, and messages between pools too, so that each
// block has one price. A plan that names no pools keeps its blocks.
void part_blocks_by_pool(Program& program);

// Adds the blocks and the tensors of a set to a program that has some. Returns the set with their
// numbers there, among those of the program.
BlockSet append_blocks(BlockSet set, Program& program);

}  // namespace shardwright
