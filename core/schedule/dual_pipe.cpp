// DualPipe (DeepSeek-V3, arXiv 2412.19437, section 3.2.1; github.com/deepseek-ai/DualPipe): the two
// halves of the microbatches enter at the two ends of the pipeline, so that a stage always has a
// forward of one direction to run beside a backward of the other.
//
// This is the schedule of the paper, for which the published bubble is exact. DeepSeek's code also
// runs the first forward and backward of the two middle stages one after the other instead of as a
// pair, which saves a little where forward and input gradient differ in length.
//
// A stage calls the direction that starts at its own end of the pipeline near and the other far.
#include <fmt/format.h>

#include <algorithm>

#include "core/schedule/placement.hpp"
#include "core/schedule/schedule_definition.hpp"
#include "core/schedule/stage_list.hpp"

namespace shardwright {

namespace {

std::optional<std::string> two_full_halves_only(const ScheduleShape& shape) {
  if (auto reason = one_chunk_only(shape)) return reason;
  if (shape.stages % 2 != 0) {
    return fmt::format("DualPipe needs an even number of pipeline stages, not {}", shape.stages);
  }
  if (shape.microbatches % 2 != 0) {
    return fmt::format("DualPipe needs an even number of microbatches, not {}", shape.microbatches);
  }
  if (shape.microbatches < 2 * shape.stages) {
    return fmt::format("DualPipe on {} pipeline stages needs at least {} microbatches, not {}",
                       shape.stages, 2 * shape.stages, shape.microbatches);
  }
  return std::nullopt;
}

// The place of a stage in its half of the pipeline.
struct HalfPlace {
  // Stages between this one and its end of the pipeline.
  std::int64_t to_end;
  // Stages between this one and the middle.
  std::int64_t to_middle;
  // The chunks of both directions.
  std::int64_t near, far;

  HalfPlace(std::int64_t stages, std::int64_t stage)
      : to_end(std::min(stage, stages - 1 - stage)),
        to_middle(stages / 2 - 1 - to_end),
        near(stage < stages / 2 ? 0 : 1),
        far(1 - near) {}
};

void warm_up(StageList& list, const HalfPlace& at) {
  for (std::int64_t i = 0; i < 2 * at.to_middle; ++i) list.forward(at.near);
  for (std::int64_t i = 0; i <= at.to_end; ++i) {
    list.forward(at.near);
    list.forward(at.far);
  }
  for (std::int64_t i = 0; i < at.to_middle; ++i) {
    list.backward_input(at.far);
    list.backward_weight(at.far);
    list.forward(at.far);
  }
}

void steady_round(StageList& list, const HalfPlace& at) {
  list.forward_beside_backward(at.near, at.far);
  list.forward_beside_backward(at.far, at.near);
}

// Backwards alone; the second half of them puts off the weight gradients. Returns the chunks of
// these in order.
std::vector<std::int64_t> drain(StageList& list, const HalfPlace& at) {
  std::vector<std::int64_t> put_off;
  const std::int64_t backwards = 2 * (at.to_end + 1);
  for (std::int64_t i = 0; i < backwards; ++i) {
    const std::int64_t chunk = i % 2 == 0 ? at.far : at.near;
    if (i < backwards / 2) {
      list.backward(chunk);
    } else {
      list.backward_input(chunk);
      put_off.push_back(chunk);
    }
  }
  return put_off;
}

void cool_down(StageList& list, const HalfPlace& at) {
  for (std::int64_t i = 0; i < at.to_middle; ++i) {
    list.backward(at.far);
    list.forward_beside_backward(at.far, at.near);
  }
  std::vector<std::int64_t> put_off = drain(list, at);
  std::size_t done = 0;
  for (std::int64_t i = 0; i < at.to_middle; ++i) {
    list.backward_weight(put_off[done++]);
    list.backward_input(at.near);
    put_off.push_back(at.near);
  }
  while (done < put_off.size()) list.backward_weight(put_off[done++]);
}

std::vector<Slot> dual_pipe_list(const ScheduleShape& shape, std::int64_t stage) {
  const auto half = static_cast<std::int32_t>(shape.microbatches / 2);
  StageList list({{0, half}, {half, half}});
  const HalfPlace at(shape.stages, stage);
  const std::int64_t rounds = shape.microbatches / 2 - shape.stages + at.to_end + 1;
  warm_up(list, at);
  for (std::int64_t i = 0; i < rounds; ++i) steady_round(list, at);
  cool_down(list, at);
  return std::move(list).take();
}

}  // namespace

const ScheduleDefinition kDualPipe = {ScheduleKind::DualPipe, two_full_halves_only,
                                      two_way_placement, dual_pipe_list};

}  // namespace shardwright
