// Blocks of stages, and of replicas, on different pools.
#pragma once

#include "core/program/program.hpp"

namespace shardwright {

// Gives stages on different pools blocks of their own, and messages between pools too, so that each
// block has one price. A plan that names no pools keeps its blocks.
void part_blocks_by_pool(Program& program);

}  // namespace shardwright
