// The spellings of a network's figures.
#pragma once

#include <string>

namespace shardwright::sim {

// A text on the network between nodes with its figures in the usual order and units: "4 HCA HDR
// 200Gb/s" and "200 Gb/s x4" as "4x 200 Gb/s", "Ethernet 25G" as "Ethernet 25 Gb/s", a port's name
// that stands alone ("HDR100") with its rate. Without the name of a network ("A100 80G") nothing
// is touched but the order.
std::string usual_network_spelling(const std::string& stated, bool names_network);

}  // namespace shardwright::sim
