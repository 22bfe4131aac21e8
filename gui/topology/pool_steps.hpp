// A plan's step on each of the pools on which its stages lie.
#pragma once

#include <memory>
#include <vector>

#include "core/spec/scenario.hpp"
#include "gui/topology/link_traffic.hpp"

namespace shardwright::gui {

// Returns the step on the cluster; on several pools a part for each, in the order of the pipeline.
// The parts leave out what passes between pools. Throws InputError where the ranks cannot be laid
// on the cluster.
std::vector<std::shared_ptr<const PlacedStep>> placed_steps(const Scenario& scenario,
                                                            const Timeline* timeline);

}  // namespace shardwright::gui
