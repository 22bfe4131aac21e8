// The files that a run leaves in its folder for `shardwright calibrate`.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "core/timeline/timeline.hpp"

namespace shardwright::executor {

// Throws RuntimeFailure, "FILE: cannot be written: REASON", with the system's reason (errno).
// Called right after the call that failed.
[[noreturn]] void fail_to_write(const std::filesystem::path& file);

// The following throw RuntimeFailure.

// Writes another file beside it, which then takes its name: no reader sees a part of it, and where
// the name is a symbolic link, the file takes its place and the link's target stays as it is.
void replace_file(const std::filesystem::path& file, std::string_view text);
// Returns the name of that other file, and removes what an earlier run has left under it.
std::filesystem::path unfinished_name(const std::filesystem::path& file);

// Replaces the file.
void write_json(const std::filesystem::path& file, const nlohmann::ordered_json& document,
                int indent = 2);

// Writes FOLDER/timeline-STEP-RANK.json (timeline_file.hpp), which also states the step.
void write_timeline(const std::filesystem::path& folder, std::int64_t step, std::int64_t rank,
                    Timeline timeline);

// Removes the timelines of steps from `first_step` on that an earlier run has left. Throws
// std::filesystem::filesystem_error.
void remove_timelines(const std::filesystem::path& folder, std::int64_t first_step);

}  // namespace shardwright::executor
