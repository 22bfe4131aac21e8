// Definitions of schedules. To add one:
//   1. give it a ScheduleKind and a name (schedule_kind.hpp),
//   2. write its ScheduleDefinition in the file of its family or in a new file,
//   3. declare it below and name it in the table of pipeline_schedule.cpp.
// The tests in tests/core/schedule run over the whole table.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

struct ScheduleDefinition {
  ScheduleKind kind;
  // Returns what the shape lacks for the schedule; its numbers are all positive.
  std::optional<std::string> (*why_not)(const ScheduleShape& shape);
  // Returns the chunks' stages and the microbatches that pass them; see placement.hpp.
  std::vector<Route> (*routes)(const ScheduleShape& shape);
  // Returns the slots of one stage, in order.
  std::vector<Slot> (*stage_list)(const ScheduleShape& shape, std::int64_t stage);
};

// Defined in one_f_one_b.cpp.
extern const ScheduleDefinition kGPipe;
extern const ScheduleDefinition kOneFOneB;
// Defined in interleaved.cpp.
extern const ScheduleDefinition kInterleaved;
// Defined in zero_bubble.cpp.
extern const ScheduleDefinition kZbH1;
extern const ScheduleDefinition kZbH2;
// Defined in zero_bubble_v.cpp.
extern const ScheduleDefinition kZbV;
// Defined in dual_pipe.cpp.
extern const ScheduleDefinition kDualPipe;

// Refuses more than one chunk per stage.
std::optional<std::string> one_chunk_only(const ScheduleShape& shape);

}  // namespace shardwright
