// ZB-H1 and ZB-H2 (arXiv 2401.10241, section 2): 1F1B with the backward pass split, where weight
// gradients are put off to fill the gaps.
//
// Both are one schedule of depth 1 and 2. Stage s starts with depth x (p-1-s) forwards more than
// 1F1B's last stage, and lags depth x s weight gradients behind, so that each stage holds up to
// depth x (p-1) + 1 activations: the late stages spend on put-off weight gradients what the early
// stages spend on warm-up. Depth 2 fills the whole way down and back with forwards.
#include <algorithm>

#include "core/schedule/placement.hpp"
#include "core/schedule/schedule_definition.hpp"
#include "core/schedule/stage_list.hpp"

namespace shardwright {

namespace {

std::vector<Slot> split_backward_list(const ScheduleShape& shape, std::int64_t stage,
                                      std::int64_t depth) {
  StageList list(shape.chunks, shape.microbatches);
  const std::int64_t warmup = depth * (shape.stages - 1 - stage);
  const std::int64_t weight_lag = std::min(depth * stage, shape.microbatches);
  for (std::int64_t i = 0; i < warmup; ++i) list.forward();
  for (std::int64_t i = 0; i < shape.microbatches; ++i) {
    list.forward();
    list.backward_input();
    if (i >= weight_lag) list.backward_weight();
  }
  for (std::int64_t i = 0; i < weight_lag; ++i) list.backward_weight();
  return std::move(list).take();
}

template <std::int64_t depth>
constexpr ScheduleDefinition split_backward(ScheduleKind kind) {
  return {kind, one_chunk_only, loop_placement, [](const ScheduleShape& shape, std::int64_t stage) {
            return split_backward_list(shape, stage, depth);
          }};
}

}  // namespace

const ScheduleDefinition kZbH1 = split_backward<1>(ScheduleKind::ZbH1);
const ScheduleDefinition kZbH2 = split_backward<2>(ScheduleKind::ZbH2);

}  // namespace shardwright
