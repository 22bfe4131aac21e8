// The share of an all-to-all of tokens that crosses the network where each node receives a token
// once.
#pragma once

#include <cstdint>

#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// Copies that cross nodes, over those that would if every expert of a token got its own: 1 where
// the all-to-all sends all of them (`copies` and `most_nodes` as CommunicationWork has them). With
// k copies on n nodes, which are chosen independently, n (1 - (1 - 1/n)^k) nodes are hit, at most
// `most_nodes`; DeepSeek-V3's router limits them
// (arXiv 2412.19437, section 2.1.2), and its kernels send each node one copy (github.com/
// deepseek-ai/DeepEP).
double remote_share(std::int64_t copies, std::int64_t most_nodes, const GroupPlacement& placement);

}  // namespace shardwright::sim
