#include "sim/step/message_times.hpp"

#include <algorithm>
#include <bit>

#include "core/program/group_lattice.hpp"
#include "core/program/groups.hpp"
#include "sim/cost/collective_cost.hpp"
#include "sim/cost/server_cost.hpp"
#include "sim/step/pool_links.hpp"

namespace shardwright::sim {
namespace {

// Spreads messages over the places of a small table.
std::size_t place_of(OpKind kind, Group group, double bytes) {
  constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15;
  const auto type = static_cast<std::uint64_t>(kind) * kGroups + static_cast<std::uint64_t>(group);
  return static_cast<std::size_t>((std::bit_cast<std::uint64_t>(bytes) + type) * kGoldenRatio >>
                                  32);
}

// True if plans whose ranks are alike cut the same groups out of them.
bool groups_alike(const Plan& a, const Plan& b) {
  const bool mirrors_alike =
      (a.schedule == ScheduleKind::DualPipe) == (b.schedule == ScheduleKind::DualPipe);
  return mirrors_alike && a.shard_group == b.shard_group;
}

}  // namespace

bool ranks_alike(const Plan& a, const Plan& b) {
  return a.pp == b.pp && a.dp == b.dp && a.tp == b.tp && a.cp == b.cp && a.ep == b.ep &&
         a.expert_tp == b.expert_tp && a.rank_order == b.rank_order;
}

void MessageTimes::use_groups_of(const Plan& plan) {
  const bool alike = plan_ && ranks_alike(*plan_, plan) && plan_->replicas == plan.replicas &&
                     plan_->replica_pools == plan.replica_pools;
  if (alike && groups_alike(*plan_, plan)) return;
  if (!alike) known_.fill({});
  placements_ = {};
  plan_ = plan;
  for (const Group group : enumerators<Group>()) {
    alone_[group] = group_size(group, plan) == 1;
    joins_pools_[group] = !between_.empty() && joins_pools_of_replicas(group, plan);
  }
  for (MessageTimes& pool : between_) pool.use_groups_of(plan);
}

void MessageTimes::join_replicas_on(std::span<const ClusterSpec> pools) {
  for (const ClusterSpec& pool : pools) between_.emplace_back(pool, stack_, true);
}

double MessageTimes::of(OpKind kind, Group group, double bytes) {
  if (bytes <= 0.0 || alone_[group]) return 0.0;
  Message& known = known_[place_of(kind, group, bytes) % known_.size()];
  if (known.bytes != bytes || known.kind != kind || known.group != group ||
      known.shard_group != plan_->shard_group)
    known = {kind, group, plan_->shard_group, bytes, price(kind, group, bytes)};
  return known.time;
}

double MessageTimes::price(OpKind kind, Group group, double bytes) {
  if (joins_pools_[group]) {
    double slowest = 0.0;
    for (MessageTimes& pool : between_) slowest = std::max(slowest, pool.of(kind, group, bytes));
    return slowest;
  }
  if (is_server_transfer(kind))
    return server_transfer_time(kind, Bytes(bytes), *plan_, cluster_, stack_).value();
  std::optional<GroupPlacement>& placement = placements_[group];
  if (!placement) placement = (apart_ ? place_between_pools : place)(group, *plan_, cluster_);
  return collective_time(kind, Bytes(bytes), *placement, cluster_, stack_).value();
}

}  // namespace shardwright::sim
