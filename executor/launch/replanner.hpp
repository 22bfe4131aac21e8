// Asks the planner for another plan, which is a program of its own: `shardwright replan`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace shardwright::executor {

// Writes to `out` the plan under which the run of `plan` goes on with `ranks` ranks or less.
// `planner` is the command shardwright. Throws RuntimeFailure if there is no such plan, or
// this process is asked to stop (stop_status).
void replan(const std::string& planner, const std::string& plan, std::int64_t ranks,
            const std::filesystem::path& out);

}  // namespace shardwright::executor
