// Timings of single collectives.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/collective_cost.hpp"

namespace shardwright::calibration {

struct CollectiveTiming {
  std::string id;
  // Title of the source.
  std::string source;
  // System and accelerator as the source names them.
  std::string system, gpu;
  // The cluster that it ran on; none where the timing is unsupported.
  std::optional<ClusterSpec> cluster;
  // "all_reduce", "alltoall", …
  std::string name;
  OpKind kind = OpKind::AllReduce;
  std::int64_t members = 2;
  // 0: as few as hold the members.
  std::int64_t nodes = 0;
  // Groups that run at the same time on one node.
  std::int64_t groups = 1;
  // Bytes as in `CommunicationWork`.
  Bytes bytes;
  // The algorithm that the benchmark forced; none where the library chose.
  std::optional<sim::Algorithm> forced;
  // The time that the benchmark's framework adds to each collective; zero for nccl-tests.
  Seconds call;
  Seconds measured;
  // The assumptions where the source says nothing, in words.
  std::vector<std::string> assumed;
  // The reason why the timing cannot be predicted; empty if it can.
  std::string unsupported;
};

// Why the timing's members cannot be accelerators of this cluster, or cannot have been so fast;
// empty where they can.
std::string gap_on(const CollectiveTiming& timing, const ClusterSpec& cluster);

// All of the world is one group, or `timing.groups` alike on one node. A ring of sends fills every
// member's NIC.
sim::GroupPlacement placement_of(const CollectiveTiming& timing, const ClusterSpec& cluster);

// The collective itself, without the framework's call.
sim::CollectiveCost cost_of(const CollectiveTiming& timing, const ClusterSpec& cluster);

Seconds predict(const CollectiveTiming& timing, const ClusterSpec& cluster);

}  // namespace shardwright::calibration
