// What a source says of the network between nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim {

struct NetworkText {
  BytesPerSecond per_node;  // and direction; zero: not said
  BytesPerSecond per_port;  // … of a port, where the number of ports is not said
  std::optional<FabricProtocol> protocol;
};

// Reads "8x400 Gb/s NDR InfiniBand", "1600 Gb/s per node RoCE", "400 Gb/s per GPU RDMA", ….
NetworkText read_network(const std::string& stated, std::int64_t gpus_per_node);

}  // namespace shardwright::sim
