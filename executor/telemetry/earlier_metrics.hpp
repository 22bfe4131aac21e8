// The metrics that a run which goes on finds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <set>
#include <string>

namespace shardwright::executor {

// Calls `take` with the step of each line of metrics.jsonl and the line. True if the last line is
// cut off (no JSON, and no line feed behind it), as a run that was killed leaves it: that one alone
// is left out. Nothing is called where there is no file. Throws InputError for what is no regular
// file, and with the other lines that are neither empty nor an object with a step, up to a hundred
// of them, by their numbers.
bool for_each_earlier_step(
    const std::filesystem::path& file,
    const std::function<void(std::int64_t step, const std::string& line)>& take);

// The steps before `end` that are not among `steps`, as people say it: "steps 5 to 19", "step 3",
// "steps 0, 4 to 6, 8 and others after them"; empty if none is missing.
std::string missing_steps(const std::set<std::int64_t>& steps, std::int64_t end);

}  // namespace shardwright::executor
