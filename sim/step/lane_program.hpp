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
  double host = 0.0;                 // when the host has issued it, from its last hold on
  double duration = 0.0;             // priced
  double interference = 0.0;         // of a kernel: that collectives beside it cost
  std::uint32_t number = 0;          // of the op in the rank program
  std::uint32_t hold = kNone;        // the hold of the host before it
  std::uint32_t ends = kNone;        // the hold of the host that it has to finish for
  std::uint32_t held_by = kNone;     // the op that the host waited for since the kernel before it
  std::uint32_t slot = kNone;        // where its finish is kept, if another lane waits for it
  std::uint32_t first_wait = 0;      // into LaneProgram::waits
  LaneMask wakes = 0;                // the lanes that wait for it
  std::uint32_t rendezvous = kNone;  // a collective: index in LanePrograms::rendezvous
  std::uint32_t transfer = kNone;    // communication: index in LanePrograms::transfers
  BlockId block = 0;
  std::uint16_t place = 0;  // in the block
  std::uint16_t waits = 0;
  bool computes = false;  // a kernel: slower on a slower rank
  Stream stream = Stream::Compute;
};

struct Lane {
  Stream stream = Stream::Compute;
  bool is_message = false;
  bool sends = false;
  bool gradient = false;
  std::int32_t peer_offset = 0;
  std::int32_t peer_lane = -1;  // messages: the lane of the peer's stage at the other end
  std::uint32_t channel = 0;    // messages: the channel that both ends share
  std::vector<LaneOp> ops;
};

// An op that another lane waits for.
struct LaneWait {
  std::uint32_t slot = kNone;  // where its finish is kept
  std::uint32_t op = kNone;    // its number
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

// Collectives of one kind of group on one stream. A rank has come to one of these at a time, since
// a stream waits for its collective.
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
  std::int64_t copies = 1, most_nodes = 0;  // as CommunicationWork has them

  bool operator==(const TransferKind&) const = default;
};

struct LanePrograms {
  std::vector<LaneProgram> stages;
  std::vector<RendezvousKind> rendezvous;
  std::vector<TransferKind> transfers;
  std::uint32_t channels = 0;  // pairs of stages, one way and one direction of the data
};

// Aborts if two stages do not exchange their messages in the same order.
LanePrograms sort_into_lanes(const Program& program, const FlatProgram& flat);

}  // namespace shardwright::sim
