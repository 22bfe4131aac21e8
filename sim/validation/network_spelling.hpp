// The spellings of a network's figures.
#pragma once

#include <string>

namespace shardwright::sim {

struct NetworkSpelling {
  std::string text;
  bool by_name = false;  // rate or count stand in words: "EDR", "ConnectX-7", "single"
};

// A text on the network between nodes with its figures in the usual order and units: "4 HCA HDR
// 200Gb/s", "200 Gb/s x4" and "quad HDR" as "4x 200 Gb/s", "Ethernet 25G" as "25 Gb/s". The names
// of ports stand for their rates where no figure does; those of networks are left out. Without the
// name of a network and of what a figure belongs to ("A100 80G") nothing is touched but the order.
NetworkSpelling usual_network_spelling(const std::string& stated, bool names_network);

}  // namespace shardwright::sim
