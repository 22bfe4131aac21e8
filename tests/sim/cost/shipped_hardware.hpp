// Shipped profiles at the clocks of a short benchmark, for the laws of the cost models.
#pragma once

#include "core/spec/profile_library.hpp"
#include "sim/cost/matrix_peak.hpp"

namespace shardwright::sim::fixtures {

inline AcceleratorSpec a100() {
  static const AcceleratorSpec kSpec = at_full_clock(load_accelerator("a100-80gb"));
  return kSpec;
}

inline AcceleratorSpec h100() {
  static const AcceleratorSpec kSpec = at_full_clock(load_accelerator("h100-sxm"));
  return kSpec;
}

inline AcceleratorSpec b200() {
  static const AcceleratorSpec kSpec = at_full_clock(load_accelerator("b200"));
  return kSpec;
}

// Eight H100 per node on NVLink 4 with one 400 Gb/s NIC each, below one switch that adds nothing
// up.
inline ClusterSpec dgx_h100() {
  static const ClusterSpec kCluster = [] {
    ClusterSpec cluster = load_cluster("dgx-h100");
    cluster.fabric.levels.clear();
    cluster.fabric.in_network_reduction = false;
    return cluster;
  }();
  return kCluster;
}

}  // namespace shardwright::sim::fixtures
