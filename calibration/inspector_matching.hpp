// The same collectives in the outputs of NCCL's Inspector of several ranks.
#pragma once

#include <optional>
#include <vector>

#include "calibration/nccl_inspector.hpp"
#include "calibration/traces/rank_matching.hpp"

namespace shardwright::calibration {

// Matches collectives by communicator and number. What a device takes for one holds its wait for
// the last rank, so that transfer and skew are those of traces (rank_matching.hpp); the group's
// name says on how many nodes it lies. None if no two processes share a communicator.
std::optional<RankMatching> match_processes(const std::vector<InspectorProcess>& processes);

}  // namespace shardwright::calibration
