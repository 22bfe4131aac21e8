// Devices and systems that the measured rows of tests/ground_truth were taken on.
//
// Datasheet figures are the vendors'; efficiencies are fitted on those rows, per device.
#pragma once

#include <optional>
#include <string>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim::testing {

AcceleratorSpec a100();
AcceleratorSpec h100();
AcceleratorSpec b200();

// The device of a row's "gpu"; none where the row's device is not modelled.
std::optional<AcceleratorSpec> accelerator_of(const std::string& gpu);

// Eight H100 per node on NVLink 4 with one 400 Gb/s NIC each.
ClusterSpec dgx_h100();

// The system of a row of collectives.jsonl; none where it is not modelled.
std::optional<ClusterSpec> cluster_of(const std::string& system, const std::string& gpu);

}  // namespace shardwright::sim::testing
