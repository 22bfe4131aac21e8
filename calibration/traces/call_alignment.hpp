// Which collectives of two ranks are the same ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "calibration/traces/trace.hpp"

namespace shardwright::calibration {

// A collective in the trace of a rank.
struct RankCall {
  std::string kind;
  // What the trace tells of it; never null.
  const CollectiveCall* arguments = nullptr;
  // Nanoseconds on the clock of the trace.
  double end = 0.0;
  std::int64_t duration = 0;
  // The number of the marked step in which it was launched; none if that is not known.
  std::optional<std::int64_t> step{};
};

// Those of one group in the order of their ends.
using RankCalls = std::vector<RankCall>;

struct CallAlignment {
  // Positions in the first and in the second list, by the first one.
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  // How far ends in the first list usually are from those in the second one, in nanoseconds: the
  // clocks of hosts differ.
  double clock_distance = 0.0;
};

// Pairs calls by their numbers where both lists have any; else by the marked steps where the two
// lists have the same calls in most steps that both have; else by order: the recordings may begin
// some calls apart, and either may lack calls, which the kinds and sizes of the next ones and the
// times of their ends tell. Lists of the same calls are paired one by one unless the times speak
// clearly against it. Calls of unequal kind, size or number are never paired. The time grows
// with the calls, not with their square. Throws ReadingStopped if `stop` asks for it.
CallAlignment align_calls(const RankCalls& first, const RankCalls& second,
                          const std::stop_token& stop = {});

}  // namespace shardwright::calibration
