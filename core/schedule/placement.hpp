// The stages that the parts of the model sit on, and the routes of the microbatches through them.
#pragma once

#include <vector>

#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

// Chunk 0 of all stages in order, then chunk 1 of all stages in order, …
std::vector<Route> loop_placement(const ScheduleShape& shape);

// Chunks alternate in direction: down with chunk 0, back up with chunk 1, …
std::vector<Route> v_placement(const ScheduleShape& shape);

// Each stage holds two parts of the model: the first half of the microbatches runs down through
// chunk 0, the second half up through chunk 1.
std::vector<Route> two_way_placement(const ScheduleShape& shape);

}  // namespace shardwright
