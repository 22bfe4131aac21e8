// The initial profile of a machine, from what the system reports.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "executor/probe/network_devices.hpp"

namespace shardwright::executor {

// Properties of a host from Linux.
struct HostFacts {
  // The model name, "Intel(R) Xeon(R) Processor".
  std::string cpu;
  // Cores that this process may run on.
  std::int64_t cores = 1;
  Bytes memory;
  std::vector<NetworkDevice> networks;
};

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
