#include "sim/cost/token_copies.hpp"

#include <algorithm>
#include <cmath>

namespace shardwright::sim {

double remote_share(std::int64_t copies, std::int64_t most_nodes, const GroupPlacement& placement) {
  if (copies <= 1 || placement.nodes <= 1) return 1.0;
  const auto nodes = static_cast<double>(placement.nodes);
  const auto sent = static_cast<double>(copies);
  double hit = nodes * (1.0 - std::pow(1.0 - 1.0 / nodes, sent));
  if (most_nodes > 0) hit = std::min(hit, static_cast<double>(most_nodes));
  return hit / sent;
}

}  // namespace shardwright::sim
