// The rules on batches, on pipeline schedules and on the split of layers over their stages.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/plan_rules.hpp"
#include "core/spec/pools.hpp"

namespace shardwright {
namespace {

// A chunk without layers makes sense only where it has the embedding or the head.
bool chunk_sizes_hold(const std::vector<std::int64_t>& sizes) {
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const bool end = i == 0 || i + 1 == sizes.size();
    if (!within(sizes[i], end ? 0 : 1, kMaxDegree)) return false;
  }
  return true;
}

std::int64_t sum_of(const std::vector<std::int64_t>& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::int64_t{0});
}

}  // namespace

bool global_batch_holds(const PlanSubject& s) {
  if (!s.plan.replica_pools.empty()) return s.plan.global_batch == batch_of_pools(s.plan);
  return divides(s.plan.dp * s.plan.micro_batch, s.plan.global_batch);
}

bool step_size_holds(const PlanSubject& s) {
  return !global_batch_holds(s) ||  // said already
         s.model.layers * s.plan.microbatches() <= kMostMicrobatchLayers;
}

bool virtual_stages_hold(const PlanSubject& s) {
  switch (s.plan.schedule) {
    case ScheduleKind::Interleaved:
      return true;
    case ScheduleKind::ZbV:
      return s.plan.vpp == 2;
    default:
      return s.plan.vpp == 1;
  }
}

Problem virtual_stages_problem(const PlanSubject& s) {
  return {"/vpp", fmt::format("{} with the schedule {}", s.plan.vpp, name_of(s.plan.schedule)),
          s.plan.schedule == ScheduleKind::ZbV ? "2" : "1, or the schedule interleaved"};
}

namespace {

// This repeats why_not() of the schedules in numbers alone; a test compares the two.
bool runs_shape(ScheduleKind schedule, const ScheduleShape& shape) {
  const double slots = static_cast<double>(shape.stages) * static_cast<double>(shape.chunks) *
                       static_cast<double>(shape.microbatches);
  if (slots > kMostMicrobatchChunks) return false;
  switch (schedule) {
    case ScheduleKind::Interleaved:
      return shape.chunks == 1 || (shape.stages > 1 && divides(shape.stages, shape.microbatches));
    case ScheduleKind::DualPipe:
      return shape.stages % 2 == 0 && shape.microbatches % 2 == 0 &&
             shape.microbatches >= 2 * shape.stages;
    default:
      return true;
  }
}

// Replicas on different pools run different shapes: the first one that the schedule does not run;
// of none, the last one.
ScheduleShape shape_to_judge(const Plan& plan) {
  ScheduleShape shape = shape_of(plan);
  for (const PoolReplicas& part : plan.replica_pools) {
    shape.microbatches = part.microbatches;
    if (!runs_shape(plan.schedule, shape)) break;
  }
  return shape;
}

}  // namespace

bool schedule_shape_holds(const PlanSubject& s) {
  // Those rules report their own problems.
  if (!global_batch_holds(s) || !step_size_holds(s) || !virtual_stages_hold(s)) return true;
  return runs_shape(s.plan.schedule, shape_to_judge(s.plan));
}

Problem schedule_shape_problem(const PlanSubject& s) {
  const ScheduleShape shape = shape_to_judge(s.plan);
  return {"/schedule",
          fmt::format("{} on {} stages with {} microbatches", name_of(s.plan.schedule),
                      shape.stages, shape.microbatches),
          "a shape that the schedule runs: " + why_not(s.plan.schedule, shape).value_or("")};
}

// In an even split only the first and the last chunk may be without layers, where the embedding or
// the head counts as one.
bool layers_hold(const PlanSubject& s) {
  if (!s.plan.stage_layers.empty()) return true;
  const int extra = int{s.plan.embedding_counts_as_layer} + int{s.plan.head_counts_as_layer};
  return s.model.layers + extra >= s.plan.chunks();
}

Problem layers_problem(const PlanSubject& s) {
  return {"/pp",
          fmt::format("pp {} x vpp {} = {} model chunks", s.plan.pp, s.plan.vpp, s.plan.chunks()),
          fmt::format("no more than the {} layers, or {} with embedding_counts_as_layer and "
                      "head_counts_as_layer",
                      s.model.layers, s.model.layers + 2)};
}

bool stage_layers_hold(const PlanSubject& s) {
  const std::vector<std::int64_t>& sizes = s.plan.stage_layers;
  if (sizes.empty()) return true;
  return static_cast<std::int64_t>(sizes.size()) == s.plan.chunks() && chunk_sizes_hold(sizes) &&
         sum_of(sizes) == s.model.layers;
}

Problem stage_layers_problem(const PlanSubject& s) {
  const std::vector<std::int64_t>& sizes = s.plan.stage_layers;
  if (static_cast<std::int64_t>(sizes.size()) != s.plan.chunks()) {
    return {"/stage_layers", fmt::format("{} numbers", sizes.size()),
            fmt::format("{} numbers, one per model chunk (pp x vpp)", s.plan.chunks())};
  }
  if (!chunk_sizes_hold(sizes)) {
    return {"/stage_layers", fmt::format("[{}]", fmt::join(sizes, ", ")),
            "at least 1 layer in each chunk but the first and the last, and none below 0"};
  }
  return {"/stage_layers", fmt::format("{} layers in all", sum_of(sizes)),
          fmt::format("the model's {} layers", s.model.layers)};
}

}  // namespace shardwright
