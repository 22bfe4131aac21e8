// Shipped profiles at the clocks of a short benchmark, for the laws of the cost models.
#pragma once

#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim::fixtures {

AcceleratorSpec a100();
AcceleratorSpec h100();
AcceleratorSpec b200();

// Eight H100 per node on NVLink 4 with one 400 Gb/s NIC each, below one switch that adds nothing
// up.
ClusterSpec dgx_h100();

}  // namespace shardwright::sim::fixtures
