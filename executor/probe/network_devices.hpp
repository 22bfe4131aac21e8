// The network devices of this host according to /sys.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/base/units.hpp"

namespace shardwright::executor {

struct NetworkDevice {
  // "mlx5_0" or "eth0".
  std::string name;
  // The stated bandwidth of one direction; 0 if it is not stated.
  BytesPerSecond bandwidth;
  // InfiniBand or RDMA over Ethernet.
  bool rdma = false;

  bool operator==(const NetworkDevice&) const = default;
};

// Returns the devices that are up, by name: those of class/infiniband with an active port (all
// ports together), and those of class/net that are hardware without an RDMA device. Files with
// unknown content count as absent.
std::vector<NetworkDevice> network_devices(const std::filesystem::path& sys = "/sys");

// Returns the highest stated bandwidth, or 0.
BytesPerSecond fastest_network(const std::vector<NetworkDevice>& devices);

}  // namespace shardwright::executor
