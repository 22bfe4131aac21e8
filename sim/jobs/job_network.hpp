// The links of a cluster's network that its jobs use.
//
// First those of the ports of each training job (node_links.hpp), then of other nodes with storage
// traffic, then those of the switches of oversubscribed levels (switch_links.hpp). A node has one
// training job at most, so that jobs share links of switches only; storage traffic also shares the
// ports of the jobs whose data it carries.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/jobs/job_set.hpp"
#include "sim/network/link.hpp"
#include "sim/step/node_links.hpp"
#include "sim/step/switch_links.hpp"

namespace shardwright::sim {

class JobNetwork {
 public:
  // `jobs` outlives this.
  explicit JobNetwork(const JobSet& jobs);

  const std::vector<BytesPerSecond>& capacities() const { return capacities_; }

  // The cluster that a training job finds, whose prices it has.
  const ClusterSpec& cluster_of(std::size_t job) const { return clusters_[job]; }
  // False if switches that reduce have no resources left for the job.
  bool has_reductions(std::size_t job) const { return has_reductions_[job]; }
  NodeLinks links_of(std::size_t job) const;

  // What one node of the traffic exchanges with its server or the store: a rail for each of its
  // ports.
  TransferShape flow_of(const StorageTraffic& traffic, std::size_t node) const;

  // The name of a link, for people: "level 1, switch 0, up"; all ports of a node have one name.
  std::string name_of(LinkIndex link) const;

 private:
  struct Ports {
    // The link out of the first port; those in and out of others follow.
    LinkIndex first = 0;
    std::size_t count = 0;
  };

  void add_job(const TrainingJob& job);
  void add_node(std::int64_t node);
  void add_switches(std::int64_t nodes);

  const JobSet& jobs_;
  // By training job.
  std::vector<ClusterSpec> clusters_;
  std::vector<bool> has_reductions_;
  std::vector<LinkIndex> first_ports_;
  std::map<std::int64_t, Ports> ports_;
  SwitchLinks switches_;
  LinkIndex first_switch_link_ = 0;
  std::vector<BytesPerSecond> capacities_;
};

}  // namespace shardwright::sim
