#include "sim/step/transfer_times.hpp"

#include "sim/cost/placement.hpp"

namespace shardwright::sim {

TransferTimes::TransferTimes(const Plan& plan, const ClusterSpec& cluster,
                             const std::vector<TransferKind>& kinds,
                             const std::vector<SlowNic>& slow_nics, bool contention)
    : kinds_(kinds),
      links_(plan, cluster, slow_nics),
      shared_(links_.capacities()),
      contention_(contention) {
  const bool as_priced = !contention && slow_nics.empty();
  for (const TransferKind& kind : kinds)
    differs_.push_back(!as_priced && place(kind.group, plan, cluster).nodes > 1);
}

TransferTimes::Known TransferTimes::of(std::uint32_t kind, std::uint32_t instance,
                                       std::span<const std::int32_t> members) {
  if (!differs_[kind]) return {kinds_[kind].duration, std::nullopt};
  const std::uint64_t key = static_cast<std::uint64_t>(kind) << 32 | instance;
  const auto [found, added] = known_.try_emplace(key);
  if (added) {
    const TransferShape shape = links_.shape(kinds_[kind], members);
    found->second.duration = kinds_[kind].duration * shape.slowdown;
    if (contention_ && !shape.rails.empty()) found->second.route = shared_.add_route(shape);
  }
  return found->second;
}

}  // namespace shardwright::sim
