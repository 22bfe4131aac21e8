// How schedules are defined. To add one:
//   1. give it a ScheduleKind (schedule_kind.hpp) and a name (core/spec/plan.cpp),
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
  // What the schedule asks of a shape whose numbers are all positive.
  std::optional<std::string> (*why_not)(const ScheduleShape& shape);
  // Where chunks sit and which microbatches pass them; see placement.hpp.
  std::vector<Route> (*routes)(const ScheduleShape& shape);
  // What one stage runs, in order.
  std::vector<Slot> (*stage_list)(const ScheduleShape& shape, std::int64_t stage);
  // See activation_bound and published_bubble.
  std::int64_t (*activation_bound)(const ScheduleShape& shape);
  Seconds (*bubble)(const ScheduleShape& shape, const ChunkTimes& times);
};

extern const ScheduleDefinition kGPipe;        // one_f_one_b.cpp
extern const ScheduleDefinition kOneFOneB;     // one_f_one_b.cpp
extern const ScheduleDefinition kInterleaved;  // interleaved.cpp
extern const ScheduleDefinition kZbH1;         // zero_bubble.cpp
extern const ScheduleDefinition kZbH2;         // zero_bubble.cpp
extern const ScheduleDefinition kZbV;          // zero_bubble_v.cpp
extern const ScheduleDefinition kDualPipe;     // dual_pipe.cpp

// Common pieces of definitions.

// Refuses more than one chunk per stage.
std::optional<std::string> one_chunk_only(const ScheduleShape& shape);
// (p-1)(F+B+W): the pipeline fills and drains once.
Seconds fill_and_drain(const ScheduleShape& shape, const ChunkTimes& times);

}  // namespace shardwright
