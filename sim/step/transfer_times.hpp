// The times of the collectives and messages of a full replay: their price, slowed down by slow
// NICs and, where links are shared, by each other.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sim/step/lane_program.hpp"
#include "sim/step/node_links.hpp"
#include "sim/step/shared_transfers.hpp"

namespace shardwright::sim {

class TransferTimes {
 public:
  struct Known {
    // Seconds without contention.
    double duration = 0.0;
    // The route, if it may have to share links.
    std::optional<SharedTransfers::RouteId> route;
  };

  // `kinds` outlives this.
  TransferTimes(const Plan& plan, const ClusterSpec& cluster,
                const std::vector<TransferKind>& kinds, const std::vector<SlowNic>& slow_nics,
                bool contention);

  // `instance` numbers the groups, or the channels, of one kind.
  Known of(std::uint32_t kind, std::uint32_t instance, std::span<const std::int32_t> members);

  SharedTransfers& shared() { return shared_; }

 private:
  const std::vector<TransferKind>& kinds_;
  NodeLinks links_;
  SharedTransfers shared_;
  bool contention_ = false;
  // True for kinds whose instances take other times than the price.
  std::vector<bool> differs_;
  // Durations and routes by kind and instance.
  std::unordered_map<std::uint64_t, Known> known_;
};

}  // namespace shardwright::sim
