// The time at which an op may start, as far as its own rank is concerned: the rule that all replays
// share.
//
// An op starts when the host has issued it, the op before it on its stream has finished, and the
// ops that it waits for have finished. Messages do not wait for each other on a rank's stream.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>

namespace shardwright {

inline constexpr std::uint32_t kNoOp = std::numeric_limits<std::uint32_t>::max();

// True if what ends at `finish` decides when something starts that could start at `ready` without
// it. Replays that add up times in another order than each other blame the same op of two that end
// at once.
inline bool decides_start(double finish, double ready) {
  constexpr double kRounding = 1e-12;
  return finish > ready * (1.0 + kRounding);
}

// Times are in seconds from the start of the step.
struct OpStart {
  double ready = 0.0;
  // The op whose finish decides it; none if it is a kernel before it on its stream, or the host
  // alone.
  std::uint32_t cause = kNoOp;

  // Issued by the host at `host`, on a stream that is free from `free` on. `held_by` is the op that
  // the host waited for last, `before` the communication before this op on its stream.
  static OpStart issued(double host, double free, std::uint32_t held_by, std::uint32_t before) {
    return {std::max(free, host), decides_start(host, free) ? held_by : before};
  }

  void wait_for(double finish, std::uint32_t op) {
    if (decides_start(finish, ready)) cause = op;
    ready = std::max(ready, finish);
  }
};

}  // namespace shardwright
