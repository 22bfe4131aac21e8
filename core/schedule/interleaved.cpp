// Interleaved 1F1B (arXiv 2104.04473, section 2.2): each stage holds several chunks and takes the
// microbatches in groups of as many as there are stages, each group through one chunk after the
// other. The order is Megatron-LM's (megatron/core/pipeline_parallel/schedules.py).
#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/placement.hpp"
#include "core/schedule/schedule_definition.hpp"
#include "core/schedule/stage_list.hpp"

namespace shardwright {

namespace {

std::optional<std::string> whole_groups_only(const ScheduleShape& shape) {
  if (shape.chunks > 1 && shape.stages == 1) {
    return "interleaving needs at least 2 pipeline stages";
  }
  if (shape.chunks > 1 && shape.microbatches % shape.stages != 0) {
    return fmt::format(
        "interleaving needs microbatches in a multiple of the {} pipeline stages, not {}",
        shape.stages, shape.microbatches);
  }
  return std::nullopt;
}

// Forwards before the first backward, less the one that is paired with it. One chunk: as 1F1B.
// More: the last stage runs all but the last chunk of the first group, and each stage before it two
// more, one for each way.
std::int64_t warmup_forwards(const ScheduleShape& shape, std::int64_t stage) {
  const std::int64_t stages_after = shape.stages - 1 - stage;
  if (shape.chunks == 1) return stages_after;
  return std::min(2 * stages_after + (shape.chunks - 1) * shape.stages,
                  shape.chunks * shape.microbatches);
}

std::vector<Slot> interleaved_list(const ScheduleShape& shape, std::int64_t stage) {
  StageList list(shape.chunks, shape.microbatches);
  const std::int64_t steps = shape.chunks * shape.microbatches;
  const std::int64_t warmup = warmup_forwards(shape, stage);
  const auto chunk_at = [&](std::int64_t step) { return step / shape.stages % shape.chunks; };
  for (std::int64_t step = 0; step < steps + warmup; ++step) {
    if (step < steps) list.forward(chunk_at(step));
    if (step >= warmup) list.backward(shape.chunks - 1 - chunk_at(step - warmup));
  }
  return std::move(list).take();
}

}  // namespace

const ScheduleDefinition kInterleaved = {ScheduleKind::Interleaved, whole_groups_only,
                                         loop_placement, interleaved_list};

}  // namespace shardwright
