// The progress of the folded replay on one rank.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/step/gap_blame.hpp"
#include "sim/step/shared_device.hpp"
#include "sim/step/step_result.hpp"

namespace shardwright::sim {

// A rank's sums at the beginning or the end of a period.
struct PeriodMark {
  TimeBreakdown time;
  std::array<double, kStreams> busy{};
};

// A receive that was posted ahead, at `host`.
struct PostedReceive {
  std::uint32_t op = 0;
  double host = 0.0;
};

// The representative of a stage.
struct FoldedRank {
  std::vector<OpTime> ops;
  std::array<double, kStreams> stream_free{};
  // The op of each stream that finished last.
  std::array<std::uint32_t, kStreams> stream_last;
  // An op of each stream whose finish is not known yet.
  std::array<std::uint32_t, kStreams> stream_pending;
  double host = 0.0;
  // True while the host waits for the op at hand.
  bool holding = false;
  // The op that the host waited for before the next kernel.
  std::uint32_t held_by = kNoOp;
  std::size_t call = 0;
  // The place of the op at hand in its call.
  std::size_t op = 0;
  TimeBreakdown time;
  std::array<double, kStreams> busy{};
  double last_finish = 0.0;
  // The number of collectives of each group so far.
  std::array<std::uint32_t, kGroups> gatherings{};
  SharedDevice device;
  // The interference of each op, if it is kept.
  std::vector<Seconds> interference;
  // For the comparison of periods: the marks at both ends of the last one, and the last call of which
  // an op started when the host had issued it.
  PeriodMark begin, end;
  std::size_t led_by_host = 0;
  std::vector<PostedReceive> posted;

  explicit FoldedRank(const Contention& contention) : device(contention) {
    stream_last.fill(kNoOp);
    stream_pending.fill(kNoOp);
  }
};

}  // namespace shardwright::sim
