#include "sim/jobs/job_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "sim/cost/placement.hpp"
#include "sim/jobs/job_cluster.hpp"

namespace shardwright::sim {
namespace {

double nics_of_domain(const ClusterSpec& cluster) {
  return static_cast<double>(cluster.node.nic.per_node * domain_size(cluster)) /
         static_cast<double>(std::max<std::int64_t>(1, cluster.node.accelerators));
}

BytesPerSecond nic_rate(const ClusterSpec& cluster) {
  return cluster.node.nic.bandwidth * cluster.node.nic.efficiency;
}

}  // namespace

JobNetwork::JobNetwork(const JobSet& jobs) : jobs_(jobs) {
  std::vector<std::span<const std::int64_t>> nodes_of_jobs;
  for (const TrainingJob& job : jobs.training) nodes_of_jobs.emplace_back(job.nodes);
  has_reductions_ = share_out_reductions(jobs.cluster(), nodes_of_jobs);
  std::int64_t last = 0;
  for (const TrainingJob& job : jobs.training) {
    add_job(job);
    last = std::max(last, *std::max_element(job.nodes.begin(), job.nodes.end()));
  }
  for (const StorageTraffic& traffic : jobs.storage) {
    for (const std::vector<std::int64_t>* nodes : {&traffic.nodes, &traffic.servers}) {
      for (const std::int64_t node : *nodes) {
        add_node(node);
        last = std::max(last, node);
      }
    }
  }
  // A store above all switches lies beyond the only switch of a level too.
  add_switches(jobs.storage.empty() ? last + 1 : count_nodes(jobs.cluster()));
}

void JobNetwork::add_job(const TrainingJob& job) {
  const Plan& plan = job.scenario.plan;
  clusters_.push_back(cluster_of_job(job.scenario.cluster, job.nodes));
  first_ports_.push_back(static_cast<LinkIndex>(capacities_.size()));
  const NodeLinks links(plan, clusters_.back(), {}, {job.nodes, first_ports_.back(), {}});
  const std::size_t ports = links.capacities().size() / 2 / job.nodes.size();
  for (std::size_t i = 0; i < job.nodes.size(); ++i)
    ports_[job.nodes[i]] = {first_ports_.back() + static_cast<LinkIndex>(2 * ports * i), ports};
  capacities_.insert(capacities_.end(), links.capacities().begin(), links.capacities().end());
}

void JobNetwork::add_node(std::int64_t node) {
  const ClusterSpec& cluster = jobs_.cluster();
  const double nics = nics_of_domain(cluster);
  const double ports = std::clamp(nics, 1.0, static_cast<double>(domain_size(cluster)));
  const Ports added{static_cast<LinkIndex>(capacities_.size()), static_cast<std::size_t>(ports)};
  if (!ports_.try_emplace(node, added).second) return;
  capacities_.insert(capacities_.end(), 2 * added.count,
                     nic_rate(cluster) * (nics / static_cast<double>(added.count)));
}

void JobNetwork::add_switches(std::int64_t nodes) {
  const ClusterSpec& cluster = jobs_.cluster();
  first_switch_link_ = static_cast<LinkIndex>(capacities_.size());
  switches_ =
      SwitchLinks(cluster, nodes, nics_of_domain(cluster), nic_rate(cluster), first_switch_link_);
  capacities_.insert(capacities_.end(), switches_.capacities().begin(),
                     switches_.capacities().end());
}

NodeLinks JobNetwork::links_of(std::size_t job) const {
  const TrainingJob& training = jobs_.training[job];
  return {training.scenario.plan,
          clusters_[job],
          {},
          JobPlace{training.nodes, first_ports_[job], switches_}};
}

TransferShape JobNetwork::flow_of(const StorageTraffic& traffic, std::size_t node) const {
  const Ports& own = ports_.at(traffic.nodes[node]);
  const bool writes = traffic.direction == StorageDirection::Write;
  TransferShape shape;
  const BytesPerSecond wanted =
      traffic.bandwidth / static_cast<double>(traffic.nodes.size() * own.count);
  for (std::size_t port = 0; port < own.count; ++port) {
    Rail& rail = shape.rails.emplace_back();
    const LinkIndex end = own.first + static_cast<LinkIndex>(2 * port + (writes ? 0 : 1));
    rail.route.push_back(end);
    rail.rate = capacities_[end];
    if (traffic.bandwidth > BytesPerSecond()) rail.rate = std::min(rail.rate, wanted);
    if (traffic.servers.empty()) {
      writes ? switches_.add_way_up(traffic.nodes[node], rail.route)
             : switches_.add_way_down(traffic.nodes[node], rail.route);
      continue;
    }
    const std::int64_t server = traffic.servers[node % traffic.servers.size()];
    const Ports& its = ports_.at(server);
    rail.route.push_back(
        its.first + static_cast<LinkIndex>(2 * (port * its.count / own.count) + (writes ? 1 : 0)));
    writes ? switches_.add_way(traffic.nodes[node], server, rail.route)
           : switches_.add_way(server, traffic.nodes[node], rail.route);
  }
  return shape;
}

std::string JobNetwork::name_of(LinkIndex link) const {
  if (link >= first_switch_link_) {
    const SwitchPlace place = switches_.switch_of(link);
    return fmt::format("level {}, switch {}, {}", place.level + 1, place.index,
                       (link - first_switch_link_) % 2 == 0 ? "up" : "down");
  }
  const auto has = [&](const auto& entry) {
    return link >= entry.second.first && link < entry.second.first + 2 * entry.second.count;
  };
  const auto found = std::find_if(ports_.begin(), ports_.end(), has);
  const LinkIndex port = link - found->second.first;
  return fmt::format("node {}, {}", found->first, port % 2 == 0 ? "out" : "in");
}

}  // namespace shardwright::sim
