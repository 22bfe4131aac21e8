// The metrics that a resumed run finds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace shardwright::executor {

// Calls `take` with the step and text of each line of metrics.jsonl. Skips a truncated last line
// (no JSON and no line feed after it), which a killed run may leave, and then returns true. Does
// nothing if the file does not exist. Throws InputError if it is no regular file, and with up to a
// hundred line numbers of other lines that are neither empty nor an object with a step.
bool for_each_earlier_step(
    const std::filesystem::path& file,
    const std::function<void(std::int64_t step, const std::string& line)>& take);

// Returns the steps before `end` that are not in `steps`: "steps 5 to 19", "step 3", "steps 0, 4 to
// 6, 8 and others after them"; empty if none is missing.
std::string missing_steps(const std::set<std::int64_t>& steps, std::int64_t end);

}  // namespace shardwright::executor
