#include "sim/cost/token_copies.hpp"

#include <algorithm>
#include <cmath>

namespace shardwright::sim {

double remote_share(const CommunicationWork& work, const GroupPlacement& placement) {
  if (work.copies <= 1 || placement.nodes <= 1) return 1.0;
  const auto nodes = static_cast<double>(placement.nodes);
  const auto copies = static_cast<double>(work.copies);
  double hit = nodes * (1.0 - std::pow(1.0 - 1.0 / nodes, copies));
  if (work.most_nodes > 0) hit = std::min(hit, static_cast<double>(work.most_nodes));
  return hit / copies;
}

}  // namespace shardwright::sim
