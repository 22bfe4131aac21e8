// The same collectives in the traces of several ranks.
//
// A kernel of a collective runs from the arrival of its own rank to the end of all: the shortest
// one over the ranks is the transfer, and what the others take longer is their wait for the last
// rank (the skew).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "calibration/traces/group_shape.hpp"
#include "calibration/traces/trace.hpp"
#include "core/base/units.hpp"

namespace shardwright::calibration {

// Collectives of one kind and size in groups of one name and shape.
struct MatchedCollectives {
  std::string kind;
  std::optional<std::int64_t> bytes, group_size;
  std::string group;
  GroupShape shape;
  // The trace lists members, but in what pattern they lie is not known.
  bool is_irregular = false;
  // The most ranks whose traces hold one of them.
  std::int64_t ranks = 0;
  std::int64_t count = 0;
  // Medians over the calls of the transfer and of the skew; the longest skew.
  Seconds transfer, skew, longest_skew;
  // By the transfer. None where bytes or group are not known.
  std::optional<BytesPerSecond> bus_bandwidth;
};

// A rank that was traced: a device of a file.
struct RankWaits {
  std::string file;
  std::optional<std::int64_t> rank;
  std::int32_t device = 0;
  // In the matched collectives for ranks that arrived later.
  Seconds waited{};
  // What another rank waited in the mean for this one, where it arrived last. Of ranks that arrived
  // last at the same moment each has an equal part.
  Seconds caused{};
  // The calls for which it alone arrived last, of those that other ranks were found to share.
  std::int64_t last_arrivals = 0, matched = 0;
  // Its calls that no other rank was found to share.
  std::int64_t unmatched = 0;
};

struct RankMatching {
  // By total transfer time, longest first.
  std::vector<MatchedCollectives> collectives;
  // In the order of the files.
  std::vector<RankWaits> ranks;
  // Collectives, counted on each rank.
  std::int64_t matched = 0, unmatched = 0;
  // How many of the unmatched ones belong to groups of which only one rank was traced.
  std::int64_t alone = 0;
};

// Adds the waits for the last rank of a collective that several ranks share. `durations` holds
// places in `matching.ranks` with what the collective took there, from the arrival to the common
// end.
void add_waits(RankMatching& matching,
               const std::vector<std::pair<std::size_t, Seconds>>& durations);

// Lets a caller follow the matching and stop it. Both members may be empty.
struct MatchingWatch {
  // Receives the part that is done, 0 to 1.
  std::function<void(double share)> advanced;
  std::stop_token stop;
};

// Says why traces are not of different ranks of one run, as the end of a sentence. It is empty if
// they are, and if there is only one trace.
std::string obstacle_to_matching(const std::vector<Trace>& traces);

// Matches by group, in which sends and receives do not take part: by the numbers of the calls where
// the traces have them, else by order (call_alignment.hpp). A recording may begin some calls later
// than another one, and may lack calls. None where fewer than two ranks are traced, or where
// there is an obstacle. Throws ReadingStopped where `watch` asks for it.
std::optional<RankMatching> match_ranks(const std::vector<Trace>& traces,
                                        const MatchingWatch& watch = {});

nlohmann::ordered_json to_json(const RankMatching& matching);

}  // namespace shardwright::calibration
