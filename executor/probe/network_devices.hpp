// The network devices of this host, as Linux describes them below /sys.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace shardwright::executor {

struct NetworkDevice {
  std::string name;          // "mlx5_0", "eth0"
  BytesPerSecond bandwidth;  // of one direction, as the device states it; 0: it does not
  bool rdma = false;         // InfiniBand, or RDMA over Ethernet

  bool operator==(const NetworkDevice&) const = default;
};

// Devices that are up, by name: those of class/infiniband with an active port (the sum of its
// ports), and those of class/net that are hardware, unless RDMA devices have their hardware too. A
// file that says something unknown counts as absent.
std::vector<NetworkDevice> network_devices(const std::filesystem::path& sys = "/sys");

// The fastest one's; 0 without any that states it.
BytesPerSecond fastest_network(const std::vector<NetworkDevice>& devices);

}  // namespace shardwright::executor
