// Which part of what a source says of its networks is the one between accelerators.
//
// "Storage: 2x 100 GbE; compute: 8x 400 Gb/s", "8x400 NDR InfiniBand + 100 GbE front end": nodes
// have several networks, and collectives run over one of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"

namespace shardwright::sim {

// The protocol that a text names; Omni-Path, which is lossless and not routed as InfiniBand is,
// stands with it.
std::optional<FabricProtocol> protocol_in(const std::string& text);

struct ComputeNetwork {
  std::string text;                   // the source's without what is said of other networks
  std::vector<std::string> left_out;  // figures and all of those
};

// Leaves out clauses about storage, management, front ends and hosts, and those about Ethernet
// beside a faster kind of network.
ComputeNetwork compute_network(const std::string& stated);

}  // namespace shardwright::sim
