// The program of a stage, sorted into lanes: the queues of a rank that each go on by themselves.
//
// A stream is a lane; the messages of a stream make one lane for each peer, since messages to
// different peers do not wait for each other. In a lane ops run in issue order. All ranks of a
// stage share its lanes.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/step/flat_program.hpp"

namespace shardwright::sim {

inline constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Lanes of a rank, one bit each.
using LaneMask = std::uint32_t;

struct LaneOp {
  // The time at which the host has issued it, counted from the last hold of the host.
  double host = 0.0;
  // The price of the op.
  double duration = 0.0;
  // The time that collectives beside it cost a kernel.
  double interference = 0.0;
  // The number of the op in the rank program.
  std::uint32_t number = 0;
  // The hold of the host before it.
  std::uint32_t hold = kNone;
  // The hold of the host that it has to finish for.
  std::uint32_t ends = kNone;
  // The op that the host waited for since the kernel before it.
  std::uint32_t held_by = kNone;
  // The slot that keeps its finish, if another lane waits for it.
  std::uint32_t slot = kNone;
  // The place of its first wait in LaneProgram::waits.
  std::uint32_t first_wait = 0;
  // The lanes that wait for it.
  LaneMask wakes = 0;
  // The index of a collective's kind in LanePrograms::rendezvous.
  std::uint32_t rendezvous = kNone;
  // The index of a communication's kind in LanePrograms::transfers.
  std::uint32_t transfer = kNone;
  BlockId block = 0;
  // Its place in the block.
  std::uint16_t place = 0;
  std::uint16_t waits = 0;
  // True for a kernel, which is slower on a slower rank.
  bool computes = false;
  Stream stream = Stream::Compute;
};

struct Lane {
  Stream stream = Stream::Compute;
  bool is_message = false;
  bool sends = false;
  bool gradient = false;
  std::int32_t peer_offset = 0;
  // The lane of the peer's stage at the other end, for messages.
  std::int32_t peer_lane = -1;
  // The channel that both ends share, for messages.
  std::uint32_t channel = 0;
  std::vector<LaneOp> ops;
};

// An op that another lane waits for.
struct LaneWait {
  // The slot that keeps its finish.
  std::uint32_t slot = kNone;
  // The number of the op.
  std::uint32_t op = kNone;
};

struct LaneProgram {
  std::vector<Lane> lanes;
  std::vector<LaneWait> waits;
  // Holds of the host: where it waits for a message, and for the kernels before. The ops that have
  // to finish for each.
  std::vector<std::uint32_t> holds;
  std::uint32_t slots = 0;
  std::uint32_t ops = 0;
};

// Collectives of one kind of group on one stream. A rank is at one of these at a time, because a
// stream waits for its collective.
struct RendezvousKind {
  Group group = Group::Tensor;
  Stream stream = Stream::Compute;

  bool operator==(const RendezvousKind&) const = default;
};

// Communication that takes the same time and traffic wherever it happens.
struct TransferKind {
  OpKind kind = OpKind::AllReduce;
  Group group = Group::Tensor;
  Stream stream = Stream::Compute;
  Bytes bytes;
  double duration = 0.0;
  // The fields of CommunicationWork with these names.
  std::int64_t copies = 1, most_nodes = 0;

  bool operator==(const TransferKind&) const = default;
};

struct LanePrograms {
  std::vector<LaneProgram> stages;
  std::vector<RendezvousKind> rendezvous;
  std::vector<TransferKind> transfers;
  // The number of pairs of stages, one way and one direction of the data.
  std::uint32_t channels = 0;
};

// Aborts if two stages do not exchange their messages in the same order.
LanePrograms sort_into_lanes(const Program& program, const FlatProgram& flat);

}  // namespace shardwright::sim
