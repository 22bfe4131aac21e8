// The full level: replays a program on every rank of the cluster.
//
// The rules are those of the event level (folded_replay.hpp), for each rank on its own: a
// collective starts when all members of its group have reached it, a message when both ranks have.
// If all ranks are alike and no links are shared, both fidelity levels give the same times. The
// full level adds:
//   - ranks whose kernels are slower, by given factors or at random (rank_variation.hpp),
//   - NICs that are slower than their profile says,
//   - contention: collectives and messages that cross nodes at the same time share NICs and
//     oversubscribed switches (node_links.hpp). It never makes a transfer faster than its price.
//
// Lanes of ranks (lane_program.hpp) run ahead until they need what has not happened yet, so times
// of kernels and of transfers inside nodes need no event queue. Only transfers that may share links
// are events, and are handled in the order of time. One core replays tens of millions of ops a
// second; memory is 8 bytes for each op of each rank that another stream waits for.
//
// Known simplifications: a collective ends for all its members on one pool at the same time, a ring
// shift too; the host is as fast on slow ranks; what kernels and collectives beside each other cost
// (shared_device.hpp) is that of a step of ranks that are all alike.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "core/program/program.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/step/folded_replay.hpp"
#include "sim/step/node_links.hpp"
#include "sim/step/prices.hpp"
#include "sim/step/rank_variation.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

struct FullOptions {
  RankVariation variation;
  std::vector<SlowNic> slow_nics;
  bool contention = false;
  // Ranks that are followed op by op, which takes memory for each.
  std::vector<std::int64_t> watched_ranks;
  // Hears the share that is done now and then.
  std::function<void(double)> progress;
  std::stop_token stop;
};

struct RankUse {
  // The finish of the rank's last op.
  Seconds finish;
  // The busy time of each stream.
  std::array<Seconds, kStreams> busy{};

  Seconds compute() const { return busy[static_cast<std::size_t>(Stream::Compute)]; }
  bool operator==(const RankUse&) const = default;
};

struct WatchedRank {
  std::int64_t rank = 0;
  // The breakdown of the rank's time, which adds up to the step.
  TimeBreakdown time;
  OpTimes ops;
};

struct FullReplay {
  Seconds step;
  // The step of ranks that are all alike, without contention.
  Seconds uniform_step;
  // The use of each rank.
  std::vector<RankUse> ranks;
  // The rank whose compute stream is busy longest.
  std::int64_t slowest = 0;
  std::vector<WatchedRank> watched;
  // The time that sharing links cost, summed over transfers.
  Seconds contention_delay;
  // The number of ops that were replayed.
  std::uint64_t ops = 0;
  // True if the replay was stopped. The times are then those of the part that was replayed; a
  // replay that had not begun has no ranks.
  bool cancelled = false;
  // True if ranks wait for each other, which never happens to a program that `validate` accepts.
  bool deadlocked = false;

  Seconds idle(std::int64_t rank) const {
    return step - ranks[static_cast<std::size_t>(rank)].compute();
  }
  // The time that slow ranks, slow NICs and contention add to the step, as a share of the uniform
  // step.
  double slowdown() const { return step / uniform_step - 1.0; }
};

// The most memory that a full replay may keep: nine times that of 16,384 ranks of Llama 3.1 405B.
inline constexpr Bytes kMostReplayMemory = gigabytes(4);

// Throws InputError if the options name ranks or NICs that do not exist or factors out of range.
void check_full_options(const FullOptions& options, const Plan& plan, const ClusterSpec& cluster);

// Throws InputError if the step is so long on so many ranks that their replay would take more.
void check_replay_memory(const Program& program);

// Throws InputError as both checks do. `event`: the event simulation of the same program and
// prices, with finish times kept, if it is at hand.
FullReplay replay_full(const Program& program, const ClusterSpec& cluster, const Prices& prices,
                       const FullOptions& options = {}, const FoldedReplay* event = nullptr);

}  // namespace shardwright::sim
