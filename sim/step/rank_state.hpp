// What a replay of all ranks keeps of each: its lanes, its collectives, its messages.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/step/full_replay.hpp"
#include "sim/step/lane_program.hpp"
#include "sim/step/message_channel.hpp"

namespace shardwright::sim {

struct LaneState {
  // The finish of its last op.
  double free = 0.0;
  // The index of the next op.
  std::uint32_t cursor = 0;
  bool in_collective = false;
};

struct RankState {
  std::uint32_t stage = 0, index = 0;
  // The place of its first lane in lanes_, of its first slot in finish_ and of its first hold in
  // holds_.
  std::uint32_t first_lane = 0;
  std::size_t first_slot = 0;
  std::size_t first_hold = 0;
  // The lanes that may be able to go on.
  LaneMask runnable = 0;
  bool queued = false;
  std::int32_t watch = -1;
  // The factor on its kernels' durations.
  double factor = 1.0;
  RankUse use;
};

// A collective that some members of its group have reached.
struct RankGathering {
  double start = 0.0;
  std::uint32_t arrived = 0;
  // What kernels beside it cost the member that came last.
  double interference = 0.0;
};

// A hold of a rank's host.
struct Hold {
  // The latest finish of its ops so far.
  double end = 0.0;
  // The number of ops that have not finished.
  std::uint32_t missing = 0;
};

// The groups of one kind on one stream.
struct Gatherings {
  // The index of the groups in tables_.
  std::size_t table = 0;
  // The collective that each group has reached.
  std::vector<RankGathering> open;
  // The lane of the stream, by stage.
  std::vector<std::int32_t> lane_of_stage;
};

// The messages of one rank of a stage to or from its peer. Where they take a time that is not known
// beforehand, they queue; the first one is under way.
struct RankChannel : MessageChannel<double> {
  struct Queued {
    double ready = 0.0;
    std::uint32_t route = 0;
    double duration = 0.0;
  };
  std::vector<Queued> waiting;
  // The number of completed messages.
  std::uint32_t passed = 0;
};

struct ChannelEnd {
  std::uint32_t stage = 0, lane = 0;
};

}  // namespace shardwright::sim
