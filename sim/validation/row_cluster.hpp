// The hardware of a published measurement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// The shipped clusters, read once.
const std::vector<ClusterSpec>& cluster_library();

// What a source says of the network between nodes.
struct NetworkText {
  BytesPerSecond per_node;  // and direction; zero: not said
  BytesPerSecond per_port;  // … of a port, where the number of ports is not said
  std::optional<FabricProtocol> protocol;
};

// Reads "8x400 Gb/s NDR InfiniBand", "1600 Gb/s per node RoCE", "400 Gb/s per GPU RDMA", ….
NetworkText read_network(const std::string& stated, std::int64_t gpus_per_node);

// The shipped cluster with the row's accelerator whose network is nearest to what the row says;
// where its bandwidth or its number of accelerators per node differs, the row's holds.
// `reason` is set where no shipped cluster has the accelerator.
std::optional<ClusterSpec> cluster_of_row(const TrainingRow& row,
                                          std::vector<std::string>& filled_in, std::string& reason);

}  // namespace shardwright::sim
