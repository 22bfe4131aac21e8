// Proves what must hold of a program whatever the plan: it cannot deadlock, it reads only what was
// written and is complete, and it gives back what it takes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program/program.hpp"

namespace shardwright {

enum class FindingKind : std::uint8_t {
  // Calls, blocks, tensors or op numbers that do not fit together.
  Structure,
  // A wait for an op that is not issued earlier.
  Wait,
  // Members of a group that issue different collectives, or in another order.
  Collective,
  // A send without its receive, or the reverse; other bytes; a stage that is none.
  Message,
  // Messages of a channel that are sent in one order and received in another.
  Order,
  // Ops that never start because they wait for each other.
  Deadlock,
  // A tensor that is read or overwritten on one stream while another one may still use it.
  Race,
  // A tensor that is read or freed before it was written or after it was freed.
  Undefined,
  // A tensor that is written as if it were new although it is alive.
  Overwritten,
  // A tensor that is alive at the end of the step.
  Leak,
};

constexpr auto enum_names(FindingKind) {
  return std::array{"structure", "wait", "collective", "message",     "order",
                    "deadlock",  "race", "undefined",  "overwritten", "leak"};
}

// One thing that is wrong.
struct Finding {
  FindingKind kind = FindingKind::Structure;
  std::int32_t stage = 0;
  // The number of the op in its rank program.
  std::uint32_t op = 0;
  // The text for people: the op, the tensor or the peer.
  std::string text;
};

// Returns all problems, at most `most` findings; none for a correct program. Checks the structure
// first, and nothing else if it is broken. Takes time linear in the number of ops (and in streams,
// and n log n in messages) and memory linear in the ops of one stage, plus a few bytes for each of
// the program's ops.
//
//  - Waits point back: within a block, and from call to call.
//  - All stages issue the same collectives on groups that join stages, in the same order, and so do
//    replicas on several pools on groups that join these. The members of other groups run the same
//    rank program, so theirs agree by construction.
//  - Each send has exactly one receive of the same bytes for the same boundary, microbatch and
//    direction, and the messages of a channel (sender, receiver, direction) are sent in the order
//    in which they are received, as NCCL pairs them.
//  - With streams in issue order, waits, messages and collectives every op runs: no deadlock.
//  - What is read on a stream was written before on that stream, or something between them waits
//    for it; the same holds for overwriting what others read.
//  - Each tensor instance is written before it is read, is not used after its free, is freed once,
//    and nothing is left at the end. A tensor that is alive is never written as if it were new.
std::vector<Finding> validate(const Program& program, std::size_t most = 100);

}  // namespace shardwright
