#include "calibration/pool_exchanges.hpp"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "core/spec/pools.hpp"
#include "sim/step/pool_links.hpp"

namespace shardwright::calibration {

// Empty where the profile lacks one of the pools.
std::vector<PoolEnd> PoolExchanges::ends_of(const std::vector<std::int64_t>& ranks,
                                            Group group) const {
  std::vector<PoolEnd> ends;
  for (const std::int64_t rank : ranks) {
    const auto stage = static_cast<std::size_t>(grid_.locate(rank).stage);
    const std::string& name = pool_name_of_stage(plan_, stage);
    if (std::ranges::find(ends, name, &PoolEnd::pool) != ends.end()) continue;
    const std::optional<ClusterSpec> pool = pool_cluster(profile_, name);
    if (!pool) return {};
    ends.push_back({name, sim::place_between_pools(group, plan_, *pool)});
  }
  return ends;
}

void PoolExchanges::add(std::int64_t step, const Op& op, const std::vector<std::int64_t>& ranks,
                        double seconds) {
  if (!names_pools(plan_) || profile_.pools.empty()) return;
  const auto& work = std::get<CommunicationWork>(op.work);
  std::vector<PoolEnd> ends = ends_of(ranks, work.group);
  if (ends.size() < 2) return;
  const OpKind kind = op.kind == OpKind::Receive ? OpKind::Send : op.kind;
  auto known = std::ranges::find_if(samples_, [&](const Samples& each) {
    const ExchangeTiming& timing = each.exchange.timing;
    return timing.kind == kind && timing.bytes == work.bytes && each.exchange.ends == ends;
  });
  if (known == samples_.end()) {
    Samples added;
    added.exchange.timing.name = op.name;
    added.exchange.timing.kind = kind;
    added.exchange.timing.bytes = work.bytes;
    added.exchange.timing.placement = ends.front().placement;
    added.exchange.ends = std::move(ends);
    known = samples_.insert(known, std::move(added));
  }
  known->of_step[step].push_back(seconds);
}

std::vector<PoolExchange> PoolExchanges::timed() && {
  std::vector<PoolExchange> exchanges;
  for (Samples& each : samples_) {
    for (const auto& [step, times] : each.of_step)
      each.exchange.timing.times.emplace_back(std::accumulate(times.begin(), times.end(), 0.0) /
                                              static_cast<double>(times.size()));
    exchanges.push_back(std::move(each.exchange));
  }
  return exchanges;
}

}  // namespace shardwright::calibration
