// Names of the files in which a run leaves its measured timelines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright {

// The name of a file with the spans of one rank in one step.
struct TimelineFile {
  // The step and the rank, both counted from 0.
  std::int64_t step = 0, rank = 0;

  bool operator==(const TimelineFile&) const = default;
};

// "timeline-STEP-RANK.json"
std::string name_of(const TimelineFile& file);
// Returns nothing for any other name.
std::optional<TimelineFile> parse_timeline_name(std::string_view name);

}  // namespace shardwright
