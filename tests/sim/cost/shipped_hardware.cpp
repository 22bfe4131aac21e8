#include "tests/sim/cost/shipped_hardware.hpp"

#include "core/spec/profile_library.hpp"
#include "sim/cost/matrix_peak.hpp"

namespace shardwright::sim::fixtures {
namespace {

AcceleratorSpec benchmarked(const char* name) {
  return at_full_clock(load_accelerator(name));
}

}  // namespace

AcceleratorSpec a100() {
  static const AcceleratorSpec kSpec = benchmarked("a100-80gb");
  return kSpec;
}

AcceleratorSpec h100() {
  static const AcceleratorSpec kSpec = benchmarked("h100-sxm");
  return kSpec;
}

AcceleratorSpec b200() {
  static const AcceleratorSpec kSpec = benchmarked("b200");
  return kSpec;
}

ClusterSpec dgx_h100() {
  static const ClusterSpec kCluster = [] {
    ClusterSpec cluster = load_cluster("dgx-h100");
    cluster.fabric.levels.clear();
    cluster.fabric.in_network_reduction = false;
    return cluster;
  }();
  return kCluster;
}

}  // namespace shardwright::sim::fixtures
