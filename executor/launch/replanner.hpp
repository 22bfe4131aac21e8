// Asks the planner, the program `shardwright replan`, for another plan.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace shardwright::executor {

// Writes to `out` the plan with which the run of `plan` continues on at most `ranks` ranks.
// `planner` is the command shardwright. Throws RuntimeFailure if there is no such plan, or if this
// process is asked to stop (stop_status).
void replan(const std::string& planner, const std::string& plan, std::int64_t ranks,
            const std::filesystem::path& out);

}  // namespace shardwright::executor
