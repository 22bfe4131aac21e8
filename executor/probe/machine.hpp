// The initial profile of a machine, from what the system reports.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::executor {

// A network device of this host according to /sys.
struct NetworkDevice {
  // "mlx5_0" or "eth0".
  std::string name;
  // The stated bandwidth of one direction; 0 if it is not stated.
  BytesPerSecond bandwidth;
  // InfiniBand or RDMA over Ethernet.
  bool rdma = false;

  bool operator==(const NetworkDevice&) const = default;
};

// Properties of a host from Linux.
struct HostFacts {
  // The model name, "Intel(R) Xeon(R) Processor".
  std::string cpu;
  // Cores that this process may run on.
  std::int64_t cores = 1;
  Bytes memory;
  std::vector<NetworkDevice> networks;
};

// Returns the devices that are up, by name: those of class/infiniband with an active port (all
// ports together), and those of class/net that are hardware without an RDMA device. Files with
// unknown content count as absent.
std::vector<NetworkDevice> network_devices(const std::filesystem::path& sys = "/sys");

// Returns the highest stated bandwidth, or 0.
BytesPerSecond fastest_network(const std::vector<NetworkDevice>& devices);

// Returns the properties of this host.
HostFacts host_facts();

// Describes one of `hosts` hosts like this one with `ranks` ranks each: cores, memory, and the
// speed that its fastest network device states. Links start with estimates.
NodeSpec node_on(const HostFacts& host, std::int64_t ranks, std::int64_t hosts);

// Describes the network between hosts: switches with 2, 4, … hosts, with estimated latencies.
FabricSpec network_of(std::int64_t hosts);

// Describes ranks on the CPUs of `hosts` hosts like this one. Each rank gets an equal part of the
// memory and of the cores that this process may run on. All ranks of a host call it at the same
// time, since it measures memory bandwidth. Kernels and links have estimates that `shardwright
// probe` replaces by measurements.
ClusterSpec describe_machine(std::int64_t ranks_per_host, std::int64_t hosts);

// Returns "measured by shardwright probe, 2026-03-01, Intel(R) Xeon(R) Processor".
std::string probe_source(const std::string& device);

}  // namespace shardwright::executor
