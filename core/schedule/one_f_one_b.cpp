// GPipe (arXiv 1811.06965) and 1F1B, also called PipeDream-flush (arXiv 2104.04473, section 2.2).
#include <algorithm>

#include "core/schedule/placement.hpp"
#include "core/schedule/schedule_definition.hpp"
#include "core/schedule/stage_list.hpp"

namespace shardwright {

namespace {

std::vector<Slot> gpipe_list(const ScheduleShape& shape, std::int64_t /*stage*/) {
  StageList list(shape.chunks, shape.microbatches);
  for (std::int64_t i = 0; i < shape.microbatches; ++i) list.forward();
  for (std::int64_t i = 0; i < shape.microbatches; ++i) list.backward();
  return std::move(list).take();
}

std::vector<Slot> one_f_one_b_list(const ScheduleShape& shape, std::int64_t stage) {
  StageList list(shape.chunks, shape.microbatches);
  const std::int64_t warmup = shape.stages - 1 - stage;
  for (std::int64_t i = 0; i < warmup; ++i) list.forward();
  for (std::int64_t i = 0; i < shape.microbatches; ++i) {
    list.forward();
    list.backward();
  }
  return std::move(list).take();
}

}  // namespace

const ScheduleDefinition kGPipe = {ScheduleKind::GPipe, one_chunk_only, loop_placement, gpipe_list};

const ScheduleDefinition kOneFOneB = {ScheduleKind::OneFOneB, one_chunk_only, loop_placement,
                                      one_f_one_b_list};

}  // namespace shardwright
