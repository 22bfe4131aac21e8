#include "core/schedule/pipeline_schedule.hpp"

#include <fmt/format.h>

#include <array>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/schedule/schedule_definition.hpp"

namespace shardwright {

namespace {

constexpr std::array kSchedules = {&kGPipe, &kOneFOneB, &kInterleaved, &kZbH1,
                                   &kZbH2,  &kZbV,      &kDualPipe};

const ScheduleDefinition& definition_of(ScheduleKind kind) {
  for (const ScheduleDefinition* schedule : kSchedules) {
    if (schedule->kind == kind) return *schedule;
  }
  fail_invariant("a definition for each ScheduleKind", __FILE__, __LINE__, name_of(kind));
}

std::optional<std::string> why_no_list(const ScheduleShape& shape) {
  if (shape.stages < 1) return "a pipeline needs at least 1 stage";
  if (shape.chunks < 1) return "a pipeline stage needs at least 1 model chunk";
  if (shape.microbatches < 1) return "a pipeline needs at least 1 microbatch";
  const double microbatch_chunks = static_cast<double>(shape.stages) *
                                   static_cast<double>(shape.chunks) *
                                   static_cast<double>(shape.microbatches);
  if (microbatch_chunks <= kMostMicrobatchChunks) return std::nullopt;
  return fmt::format("a pipeline has at most {} stages x chunks x microbatches",
                     format_number(kMostMicrobatchChunks));
}

// Fills PipelineSchedule::route and position.
void index_places(PipelineSchedule& schedule, std::int64_t stages) {
  std::size_t places = 0;
  for (const Route& route : schedule.routes) places += route.places.size();
  const auto chunks_per_stage = places / static_cast<std::size_t>(stages);
  schedule.route.assign(static_cast<std::size_t>(stages),
                        std::vector<std::int32_t>(chunks_per_stage));
  schedule.position = schedule.route;
  for (std::size_t route = 0; route < schedule.routes.size(); ++route) {
    std::int32_t position = 0;
    for (const Place& place : schedule.routes[route].places) {
      schedule.route[place.stage][place.chunk] = static_cast<std::int32_t>(route);
      schedule.position[place.stage][place.chunk] = position++;
    }
  }
}

}  // namespace

const Place* PipelineSchedule::previous(Place place) const {
  const std::int32_t here = position[place.stage][place.chunk];
  if (here == 0) return nullptr;
  return &routes[route[place.stage][place.chunk]].places[here - 1];
}

const Place* PipelineSchedule::next(Place place) const {
  const auto after = static_cast<std::size_t>(position[place.stage][place.chunk]) + 1;
  const std::vector<Place>& places = routes[route[place.stage][place.chunk]].places;
  if (after == places.size()) return nullptr;
  return &places[after];
}

std::optional<std::string> why_not(ScheduleKind kind, const ScheduleShape& shape) {
  if (auto reason = why_no_list(shape)) return reason;
  return definition_of(kind).why_not(shape);
}

PipelineSchedule make_schedule(ScheduleKind kind, const ScheduleShape& shape) {
  const auto reason = why_not(kind, shape);
  SHARDWRIGHT_CHECK(!reason, *reason);
  const ScheduleDefinition& definition = definition_of(kind);
  PipelineSchedule schedule;
  schedule.routes = definition.routes(shape);
  index_places(schedule, shape.stages);
  schedule.stages.reserve(static_cast<std::size_t>(shape.stages));
  for (std::int64_t stage = 0; stage < shape.stages; ++stage) {
    schedule.stages.push_back(definition.stage_list(shape, stage));
  }
  return schedule;
}

bool sends_may_block(ScheduleKind kind) {
  return kind == ScheduleKind::GPipe || kind == ScheduleKind::OneFOneB;
}

std::int64_t chunks_held(ScheduleKind kind, const ScheduleShape& shape) {
  std::size_t places = 0;
  for (const Route& route : definition_of(kind).routes(shape)) places += route.places.size();
  return static_cast<std::int64_t>(places) / shape.stages;
}

std::optional<std::string> one_chunk_only(const ScheduleShape& shape) {
  if (shape.chunks == 1) return std::nullopt;
  return fmt::format("this schedule runs 1 model chunk per stage, not {}", shape.chunks);
}

}  // namespace shardwright
