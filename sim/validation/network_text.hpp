// What a source says of the network between nodes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim {

struct NetworkText {
  BytesPerSecond per_node;  // and direction; zero: not said
  BytesPerSecond per_port;  // … of a port, where the number of ports is not said
  std::optional<FabricProtocol> protocol;
  bool without_rdma = false;  // Ethernet's protocol is TCP
  bool torus = false;
  // Bandwidth entering switches from below over that leaving upwards.
  std::optional<double> oversubscription;
  bool by_name = false;  // the figure is that of a port's name ("EDR"), or its count is in words
  std::vector<std::string> left_out;  // parts that are read and not taken
};

// Reads "8x400 Gb/s NDR InfiniBand", "1600 Gb/s per node RoCE", "400 Gb/s per GPU RDMA", "single
// EDR HCA", "HDR 200 (1 per 2 GPUs), 2:1 blocking; storage 100 GbE", …; the first 1,024 characters
// at the most.
NetworkText read_network(const std::string& stated, std::int64_t gpus_per_node);

}  // namespace shardwright::sim
