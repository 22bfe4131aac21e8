// Names of the files in which a run leaves its measured timelines.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace shardwright {

// What one rank did in one step.
struct TimelineFile {
  std::int64_t step = 0, rank = 0;  // from 0 on

  bool operator==(const TimelineFile&) const = default;
};

// "timeline-STEP-RANK.json"
std::string name_of(const TimelineFile& file);
// Nothing for any other name.
std::optional<TimelineFile> parse_timeline_name(std::string_view name);

}  // namespace shardwright
