// The schedules and shapes that the tests of pipeline schedules run over.
#pragma once

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <string>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"

namespace shardwright {

struct ScheduleCase {
  ScheduleKind kind;
  ScheduleShape shape;
};

inline std::string shown(const ScheduleCase& c) {
  return std::string(name_of(c.kind)) + " stages=" + std::to_string(c.shape.stages) +
         " chunks=" + std::to_string(c.shape.chunks) +
         " microbatches=" + std::to_string(c.shape.microbatches);
}

inline std::vector<ScheduleKind> all_kinds() {
  constexpr auto kKinds = enumerators<ScheduleKind>();
  return {kKinds.begin(), kKinds.end()};
}

// Every shape up to 8 stages, 4 chunks and 24 microbatches that the schedule can run, and a few
// large ones.
inline std::vector<ScheduleCase> cases_of(ScheduleKind kind) {
  std::vector<ScheduleCase> cases;
  const auto add = [&](std::int64_t stages, std::int64_t chunks, std::int64_t microbatches) {
    const ScheduleShape shape{stages, chunks, microbatches};
    if (!why_not(kind, shape)) cases.push_back({kind, shape});
  };
  for (std::int64_t stages = 1; stages <= 8; ++stages) {
    for (std::int64_t chunks = 1; chunks <= 4; ++chunks) {
      for (std::int64_t microbatches = 1; microbatches <= 24; ++microbatches) {
        add(stages, chunks, microbatches);
      }
    }
  }
  for (const std::int64_t stages : {12, 16, 31, 64}) {
    for (const std::int64_t chunks : {1, 2, 7}) add(stages, chunks, 4 * stages);
  }
  return cases;
}

inline std::vector<ScheduleCase> all_cases() {
  std::vector<ScheduleCase> all;
  for (const ScheduleKind kind : all_kinds()) {
    const std::vector<ScheduleCase> cases = cases_of(kind);
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

// Any schedule in a shape that it can run.
inline rc::Gen<ScheduleCase> any_case() {
  return rc::gen::elementOf(all_cases());
}

inline ChunkTimes chunk_times(double forward, double backward_input, double backward_weight) {
  return {Seconds(forward), Seconds(backward_input), Seconds(backward_weight)};
}

}  // namespace shardwright
