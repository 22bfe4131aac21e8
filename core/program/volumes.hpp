// The FLOP by phase of a program, its bytes on the wire by group, and the activations that a block
// keeps, for comparison with the published formulas.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/program/program.hpp"

namespace shardwright {

// Bytes that one of `members` ranks sends in a collective of the given size (CommunicationWork's
// meaning of bytes), with the ring algorithm, which none undercuts without the network's help:
// 2(n-1)/n of an all-reduce, (n-1)/n of all-gather, reduce-scatter and all-to-all, the whole of a
// message, a ring shift or a broadcast (nccl-tests, doc/PERFORMANCE.md). A receive sends nothing.
Bytes sent_bytes(OpKind kind, Bytes bytes, std::int64_t members);

// The volumes of one rank in one step.
struct RankVolumes {
  // FLOP of the matrix products.
  std::array<Flop, kPhases> flop{};
  // Bytes as sent_bytes counts them.
  std::array<Bytes, kGroups> sent{};
  // Bytes received from other stages.
  Bytes received_messages;

  Flop of(Phase phase) const { return flop[static_cast<std::size_t>(phase)]; }
  Bytes of(Group group) const { return sent[static_cast<std::size_t>(group)]; }
};

// Returns the volumes by stage. Takes time linear in calls.
std::vector<RankVolumes> volumes(const Program& program);

// Bytes that are alive after the block and were not before, less those that it frees of what was.
Bytes kept_bytes(const Block& block, const std::vector<TensorSpec>& tensors);

}  // namespace shardwright
