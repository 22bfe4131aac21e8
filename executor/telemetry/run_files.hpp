// What a run leaves in its folder for `shardwright calibrate`.
#pragma once

#include <cstdint>
#include <filesystem>

#include "core/spec/scenario.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::executor {

// FOLDER/plan.json: what was run. Throws RuntimeFailure, as the next one does.
void write_plan(const std::filesystem::path& folder, const Scenario& scenario);

// FOLDER/timeline-STEP-RANK.json (timeline_file.hpp), which also says the step itself.
void write_timeline(const std::filesystem::path& folder, std::int64_t step, std::int64_t rank,
                    Timeline timeline);

// Removes the timelines of steps from `first_step` on, which an earlier run has left. Throws
// std::filesystem::filesystem_error.
void remove_timelines(const std::filesystem::path& folder, std::int64_t first_step);

}  // namespace shardwright::executor
