// The communication groups of a plan: their sizes, their axes, and the bytes that members send.
#pragma once

#include <cstdint>

#include "core/op/op.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"

namespace shardwright {

// Members of one group of this kind; 1 means that its collectives vanish.
std::int64_t group_size(Group group, const Plan& plan);

// True if parameters of the model are split over more than one rank, so that they are gathered
// before use (FSDP).
bool shards_parameters(const ModelSpec& model, const Plan& plan);

// The axis under which a group's exposed time is reported: tensor, context, expert, data or
// pipeline.
Axis axis_of(Group group);

// Bytes that one of `members` ranks sends in a collective of the given size (CommunicationWork's
// meaning of bytes), with the ring algorithm, which none undercuts without the network's help:
// 2(n-1)/n of an all-reduce, (n-1)/n of all-gather, reduce-scatter and all-to-all, the whole of a
// message, a ring shift or a broadcast (nccl-tests, doc/PERFORMANCE.md). A receive sends nothing.
Bytes sent_bytes(OpKind kind, Bytes bytes, std::int64_t members);

}  // namespace shardwright
