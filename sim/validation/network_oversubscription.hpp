// What a source says of how thin its network is above the leaves.
#pragma once

#include <optional>
#include <string>

namespace shardwright::sim {

struct Oversubscription {
  std::optional<double>
      ratio;              // bandwidth entering a switch from below over that leaving it upwards
  std::string rest;       // of the text, without what was read
  std::string not_taken;  // words on it that tell no ratio, or none that a network has
};

// Reads "oversubscription 2:1", "2:1 blocking", "1:3 tapered", "2x oversubscribed", "non-blocking".
Oversubscription read_oversubscription(const std::string& text);

}  // namespace shardwright::sim
