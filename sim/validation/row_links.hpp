// The links inside of a published measurement's nodes.
#pragma once

#include <string>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "sim/validation/training_row.hpp"

namespace shardwright::sim {

// Sets the links of a shipped cluster's nodes where the row says others: PCIe in place of NVLink or
// of another generation, bridges between cards, another bandwidth. `filled_in` takes what was
// changed, and what the row says that is not taken.
void set_links(const TrainingRow& row, ClusterSpec& cluster, std::vector<std::string>& filled_in);

}  // namespace shardwright::sim
