// What a machine is, as far as it says so itself: the profile that a probe begins with.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "executor/probe/network_devices.hpp"

namespace shardwright::executor {

// What Linux says of a host.
struct HostFacts {
  std::string cpu;         // "Intel(R) Xeon(R) Processor"
  std::int64_t cores = 1;  // that this process may run on
  Bytes memory;            // physical
  std::vector<NetworkDevice> networks;
};

// Of this host.
HostFacts host_facts();

// One of `hosts` hosts like this, with `ranks` ranks each: cores, memory, and the speed that its
// fastest network device states. Links begin with guesses.
NodeSpec node_on(const HostFacts& host, std::int64_t ranks, std::int64_t hosts);

// What joins the hosts: switches with 2, 4, … hosts below them, whose latencies are guesses.
FabricSpec network_of(std::int64_t hosts);

// Of ranks on the CPUs of `hosts` hosts like this one. Each rank gets an equal part of the cores
// that this process may run on and of the memory. Bandwidth of memory is measured; all ranks of a
// host call it at the same time. Kernels and exchanges have no figures yet: the profile holds
// guesses that `shardwright probe` replaces by what the probe's runs and exchanges say.
ClusterSpec describe_machine(std::int64_t ranks_per_host, std::int64_t hosts);

// "measured by shardwright probe, 2026-03-01, Intel(R) Xeon(R) Processor"
std::string probe_source(const std::string& device);

}  // namespace shardwright::executor
