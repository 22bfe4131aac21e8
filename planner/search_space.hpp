// The plans that a search looks at.
//
// Every combination of the values below whose degrees multiply to the number of accelerators is a
// plan of the space, whether or not the model allows it: those that a rule forbids are counted
// under that rule.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"
#include "planner/constraints.hpp"

namespace shardwright::planner {

// How layers fall to the chunks of a pipeline. Splits that come to the same are tried once.
enum class LayerSplit : std::uint8_t {
  FrontHeavy,    // evenly, the first chunks take what is left over
  FrontLight,    // evenly, the last chunks take it: the first stages hold the most microbatches
  BalancedEnds,  // evenly, with the embedding and the head counted as layers
};

// The values that the search tries. Degrees are divisors of the number of accelerators.
struct SearchLimits {
  std::int64_t max_tp = 0;   // 0: what the scale-up domain joins
  std::int64_t max_cp = 16;  // beyond 1 only with sequences of `min_cp_tokens` per rank or more
  std::int64_t min_cp_tokens = 2048;
  std::int64_t max_pp = 256;
  std::int64_t max_micro_batch = 16;  // powers of two up to it
  std::int64_t max_vpp = 16;
  std::vector<ScheduleKind> schedules = {
      ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::ZbH1, ScheduleKind::ZbH2,
      ScheduleKind::ZbV,      ScheduleKind::DualPipe,    ScheduleKind::GPipe};
  std::vector<bool> sequence_parallel = {true};  // with tensor parallelism
  std::vector<int> zero_stages = {0, 1, 2, 3};
  std::vector<RecomputePolicy> recompute = {RecomputePolicy::None, RecomputePolicy::Selective,
                                            RecomputePolicy::Full};
  std::vector<LayerSplit> layer_splits = {LayerSplit::FrontHeavy, LayerSplit::FrontLight,
                                          LayerSplit::BalancedEnds};
  // Others than the first with pipeline and data parallelism only: else they mean the same.
  std::vector<std::vector<Axis>> rank_orders = {Plan().rank_order};
  std::vector<OptimizerOffload> offload_optimizer = {OptimizerOffload::None};
  std::vector<bool> offload_activations = {false};
  bool partial_recompute =
      true;  // full recomputation of a quarter, half, three quarters of a chunk
  bool sharding_within_node = true;  // ZeRO-3 over the data-parallel ranks of a node as well (HSDP)
  // Beside those that the search tries of its own accord:
  std::vector<std::int64_t> recompute_layers;  // of a chunk
  std::vector<std::int64_t> shard_groups;      // ZeRO-1 to 3
  std::vector<std::int64_t> micro_batches, virtual_stages, expert_tensor_degrees;
  std::vector<ContextParallelKind> context_parallel = {
      ContextParallelKind::Ring, ContextParallelKind::AllGather, ContextParallelKind::Ulysses};

  bool operator==(const SearchLimits&) const = default;
};

// Tensor, context and expert parallelism inside of the pipeline, that inside of data parallelism:
// neighbouring stages lie closer together, and the replicas further apart.
const std::vector<Axis>& pipeline_inside_data();

// The usual schedules and shardings alone, for a first answer within a second.
SearchLimits narrow_limits();

// `limits` without the schedules and ZeRO stages that the stack does not run.
SearchLimits limits_of(const StackSpec& stack, SearchLimits limits = {});

struct SpaceRequest {
  const ModelSpec& model;
  const ClusterSpec& cluster;
  const StackSpec& stack;
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 1;
  Precision precision = Precision::Bf16;
  const SearchLimits& limits;
};

// How plans cut a layer: tp, cp, ep, micro-batch and whatever else the ops of one layer and their
// prices depend on, in the order of the space. The other fields have values that stand for all:
// `recompute` is full on one layer where the cut serves both layers that are kept and layers that
// are recomputed, `zero_stage` is 3 or 0.
std::vector<Plan> layer_cuts(const SpaceRequest& request);

// Calls `visit` for each plan of the space that cuts layers like `cut`, in order.
void for_each_plan(const SpaceRequest& request, const Plan& cut,
                   const std::function<void(const Plan&)>& visit);

// The whole space in its order, which also decides between plans of equal score.
std::vector<Plan> enumerate_plans(const SpaceRequest& request);

}  // namespace shardwright::planner
