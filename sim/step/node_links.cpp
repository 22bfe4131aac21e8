#include "sim/step/node_links.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/base/error.hpp"
#include "sim/cost/collective_path.hpp"
#include "sim/cost/placement.hpp"
#include "sim/cost/port_share.hpp"

namespace shardwright::sim {
NicCounts count_nics(const Plan& plan, const ClusterSpec& cluster) {
  // A job smaller than a domain has the NICs of its part of it.
  const std::int64_t block = domain_block(cluster, plan.world_size());
  const double boards = static_cast<double>(block) /
                        static_cast<double>(std::max<std::int64_t>(1, cluster.node.accelerators));
  const double nics = static_cast<double>(cluster.node.nic.per_node) * boards;
  return {.nodes = (plan.world_size() + block - 1) / block,
          .per_node = std::max<std::int64_t>(1, static_cast<std::int64_t>(nics))};
}

void check_slow_nics(const std::vector<SlowNic>& nics, const Plan& plan,
                     const ClusterSpec& cluster) {
  ProblemList problems("slow NICs");
  const NicCounts counts = count_nics(plan, cluster);
  const auto check_index = [&](const std::string& where, std::int64_t found, std::int64_t count) {
    if (found < 0 || found >= count)
      problems.add(where, std::to_string(found), "0 to " + std::to_string(count - 1));
  };
  for (std::size_t i = 0; i < nics.size(); ++i) {
    const std::string where = "/" + std::to_string(i);
    check_index(where + "/node", nics[i].node, counts.nodes);
    check_index(where + "/nic", nics[i].nic, counts.per_node);
    if (!(nics[i].bandwidth_ratio > 0.0 && nics[i].bandwidth_ratio <= 1.0)) {
      problems.add(where + "/bandwidth_ratio", std::to_string(nics[i].bandwidth_ratio),
                   "above 0, at most 1");
    }
  }
  problems.throw_if_any();
}

NodeLinks::NodeLinks(const Plan& plan, const ClusterSpec& cluster,
                     const std::vector<SlowNic>& slow_nics, JobPlace place)
    : domain_(domain_block(cluster, plan.world_size())),
      nics_(static_cast<double>(count_nics(plan, cluster).per_node)),
      nic_(cluster.node.nic.bandwidth * cluster.node.nic.efficiency),
      place_(std::move(place)) {
  for (const Group group : enumerators<Group>()) {
    placements_.push_back(sim::place(group, plan, cluster));
    const CollectivePath path = path_of(placements_.back(), cluster);
    passing_.push_back(path.remote / path.per_node);
  }
  add_ports(slow_nics, count_nics(plan, cluster));
}

NodeLinks::NodeLinks(const Plan& plan, const ClusterSpec& cluster,
                     const std::vector<SlowNic>& slow_nics)
    : NodeLinks(plan, cluster, slow_nics, JobPlace()) {
  const std::int64_t nodes = count_nics(plan, cluster).nodes;
  for (std::int64_t node = 0; node < nodes; ++node) place_.nodes.push_back(node);
  place_.switches =
      SwitchLinks(cluster, nodes, nics_, nic_, static_cast<LinkIndex>(capacities_.size()));
  const std::vector<BytesPerSecond>& switches = place_.switches.capacities();
  capacities_.insert(capacities_.end(), switches.begin(), switches.end());
}

void NodeLinks::add_ports(const std::vector<SlowNic>& slow_nics, const NicCounts& counts) {
  const auto [nodes, nics] = counts;
  ports_ = std::min(nics, domain_);
  port_ratio_.assign(static_cast<std::size_t>(nodes * ports_), 1.0);
  // The data of a port is cut evenly over its NICs, so the slowest one sets the pace.
  for (const SlowNic& slow : slow_nics) {
    double& ratio =
        port_ratio_[static_cast<std::size_t>(slow.node * ports_ + slow.nic * ports_ / nics)];
    ratio = std::min(ratio, slow.bandwidth_ratio);
  }
  for (const double ratio : port_ratio_)
    capacities_.insert(capacities_.end(), 2, nic_ * (ratio * nics_ / static_cast<double>(ports_)));
}

std::int64_t NodeLinks::port_of(std::int64_t rank) const {
  return rank / domain_ * ports_ + rank % domain_ * ports_ / domain_;
}

// The share of a member in the NICs, as sim/cost/collective_path.cpp gives these to the members of
// a group.
BytesPerSecond NodeLinks::member_share(Group group) const {
  const GroupPlacement& placement = placements_[static_cast<std::size_t>(group)];
  const auto members = static_cast<double>(placement.per_node);
  return nic_ * (nics_of_group(placement, {nics_, static_cast<double>(domain_)}) / members);
}

BytesPerSecond NodeLinks::member_demand(const TransferKind& kind) const {
  const GroupPlacement& placement = placements_[static_cast<std::size_t>(kind.group)];
  const Bytes out = bytes_out_of_node(kind.kind, kind.bytes, placement,
                                      token_traffic(0, kind.copies, kind.most_nodes, placement));
  return out / static_cast<double>(placement.per_node) / Seconds(kind.duration);
}

void NodeLinks::add_switches(std::span<const std::int32_t> rail, bool message,
                             std::vector<LinkIndex>& route) const {
  std::vector<std::int64_t> nodes;
  for (const std::int32_t rank : rail)
    nodes.push_back(place_.nodes[static_cast<std::size_t>(rank / domain_)]);
  if (message) return place_.switches.add_way(nodes[0], nodes[1], route);
  place_.switches.add_between(nodes, route);
}

Rail NodeLinks::rail(std::span<const std::int32_t> members, bool message, bool switches) const {
  Rail result;
  const auto out = [&](std::int32_t rank) {
    return place_.first_port + static_cast<LinkIndex>(2 * port_of(rank));
  };
  if (message) {
    result.route = {out(members[0]), out(members[1]) + 1};
  } else {
    for (const std::int32_t rank : members) {
      result.route.push_back(out(rank));
      result.route.push_back(out(rank) + 1);
    }
  }
  if (switches) add_switches(members, message, result.route);
  return result;
}

double NodeLinks::slowest_port(std::span<const std::int32_t> members) const {
  double ratio = 1.0;
  for (const std::int32_t rank : members)
    ratio = std::min(ratio, port_ratio_[static_cast<std::size_t>(port_of(rank))]);
  return ratio;
}

TransferShape NodeLinks::shape(const TransferKind& kind,
                               std::span<const std::int32_t> members) const {
  TransferShape result;
  if (kind.duration <= 0.0 || kind.bytes <= Bytes()) return result;
  // Member i of each node is on rail i.
  std::vector<std::vector<std::int32_t>> rails;
  std::size_t nodes = 0;
  for (std::size_t i = 0, on_node = 0; i < members.size(); ++i, ++on_node) {
    if (i == 0 || members[i] / domain_ != members[i - 1] / domain_) {
      on_node = 0;
      ++nodes;
    }
    if (on_node == rails.size()) rails.emplace_back();
    rails[on_node].push_back(members[i]);
  }
  if (nodes < 2) return result;
  const bool switches = kind.kind != OpKind::AllToAll;
  const BytesPerSecond share = member_share(kind.group);
  const BytesPerSecond most = switches ? passing_[static_cast<std::size_t>(kind.group)] : share;
  const BytesPerSecond rate = std::min(member_demand(kind), most);
  const double ratio = slowest_port(members);
  result.slowdown = std::max(1.0, rate / share / ratio);
  const bool message = kind.kind == OpKind::Send;
  for (const std::vector<std::int32_t>& each : rails) {
    if (each.size() < 2) continue;
    result.rails.push_back(rail(each, message, switches));
    result.rails.back().rate = rate / result.slowdown;
  }
  return result;
}

}  // namespace shardwright::sim
