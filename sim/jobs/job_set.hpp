// Jobs that share the network of one cluster, checked and placed.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/units.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/jobs_spec.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright::sim {

struct TrainingJob {
  std::string name;
  Scenario scenario;
  // Scale-up domains of the cluster, in the order of the job's ranks. Empty: to be chosen.
  std::vector<std::int64_t> nodes;
  Seconds start;
  // The document names no nodes, so that these were chosen.
  bool is_placed = false;
};

struct StorageTraffic {
  std::string name;
  StorageDirection direction = StorageDirection::Write;
  std::vector<std::int64_t> nodes;
  // Nodes that store; empty: the store lies above all switches.
  std::vector<std::int64_t> servers;
  Bytes bytes;
  Seconds every;
  // Zero: no limit but the links.
  BytesPerSecond bandwidth;
  Seconds start;
};

struct JobSet {
  std::vector<TrainingJob> training;
  std::vector<StorageTraffic> storage;
  // Steps that each training job makes at least, once all jobs have started.
  std::int64_t steps = 4;

  const ClusterSpec& cluster() const { return training.front().scenario.cluster; }

  // All jobs: training jobs come before storage traffic.
  std::size_t count() const { return training.size() + storage.size(); }
  const std::string& name(std::size_t job) const {
    return job < training.size() ? training[job].name : storage[job - training.size()].name;
  }
};

// The nodes of a cluster that jobs can take, at most a million.
std::int64_t count_nodes(const ClusterSpec& cluster);

// Reads a jobs document and the plans that it names, and places the jobs that name no nodes. Throws
// InputError with all problems.
JobSet load_job_set(const nlohmann::json& document, const std::string& file_or_dash);

}  // namespace shardwright::sim
