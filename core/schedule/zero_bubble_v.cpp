// ZB-V (arXiv 2401.10241, section 6): two chunks per stage in a V, so that a microbatch starts and
// ends on the first stage, and its backward pass can follow at once.
//
// With forward, input gradient and weight gradient of equal length no stage idles between its first
// and its last slot.
#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/placement.hpp"
#include "core/schedule/schedule_definition.hpp"
#include "core/schedule/stage_list.hpp"

namespace shardwright {

namespace {

// The two chunks.
constexpr std::int64_t kDown = 0, kUp = 1;

std::optional<std::string> two_chunks_only(const ScheduleShape& shape) {
  if (shape.chunks == 2) return std::nullopt;
  return fmt::format("ZB-V places 2 model chunks on each stage, not {}", shape.chunks);
}

void warm_up(StageList& list, std::int64_t stages, std::int64_t stage) {
  for (std::int64_t i = 0; i < 2 * (stages - stage) - 1; ++i) list.forward(kDown);
  for (std::int64_t i = 0; i < stage; ++i) {
    list.forward(kUp);
    list.forward(kDown);
  }
  for (std::int64_t i = 0; i < stages - stage; ++i) {
    list.forward(kUp);
    list.backward_input(kUp);
    list.backward_weight(kUp);
  }
}

void steady_round(StageList& list) {
  list.forward(kDown);
  list.backward_input(kDown);
  list.backward_weight(kDown);
  list.forward(kUp);
  list.backward_input(kUp);
  list.backward_weight(kUp);
}

void cool_down(StageList& list, std::int64_t stages, std::int64_t stage) {
  for (std::int64_t i = 0; i < stage; ++i) {
    list.backward_input(kDown);
    list.backward_input(kUp);
  }
  for (std::int64_t i = 0; i < stages - stage; ++i) {
    list.backward_input(kDown);
    list.backward_weight(kDown);
  }
  for (std::int64_t i = 0; i < stage; ++i) list.backward_weight(kUp);
  for (std::int64_t i = 0; i < stage; ++i) list.backward_weight(kDown);
}

std::vector<Slot> zb_v_list(const ScheduleShape& shape, std::int64_t stage) {
  StageList list(shape.chunks, shape.microbatches);
  const std::int64_t microbatches_to_fill = 2 * shape.stages - 1;
  const std::int64_t rounds = std::max(shape.microbatches, microbatches_to_fill) - shape.stages;
  warm_up(list, shape.stages, stage);
  for (std::int64_t i = 0; i < rounds; ++i) steady_round(list);
  cool_down(list, shape.stages, stage);
  return std::move(list).take();
}

}  // namespace

const ScheduleDefinition kZbV = {ScheduleKind::ZbV, two_chunks_only, v_placement, zb_v_list};

}  // namespace shardwright
