// The search space of plans.
//
// Every combination of the values below whose degrees multiply to the number of accelerators is a
// plan of the space, even if the model does not allow it: plans that break a rule are counted under
// that rule.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"
#include "planner/constraints.hpp"

namespace shardwright::planner {

// The split of the layers into pipeline chunks. Splits with the same result are tried once.
enum class LayerSplit : std::uint8_t {
  FrontHeavy,    // evenly; the first chunks take the remainder
  FrontLight,    // evenly; the last chunks take it, as the first stages hold the most microbatches
  BalancedEnds,  // evenly, with the embedding and the head counted as layers
  OfBase,        // that of SearchLimits::base
};

// The values that the search tries. Degrees are divisors of the number of accelerators.
struct SearchLimits {
  // 0: the size of the scale-up domain.
  std::int64_t max_tp = 0;
  // Context parallelism needs at least `min_cp_tokens` tokens per rank.
  std::int64_t max_cp = 16;
  std::int64_t min_cp_tokens = 2048;
  std::int64_t max_pp = 256;
  // Powers of two up to this are tried.
  std::int64_t max_micro_batch = 16;
  std::int64_t max_vpp = 16;
  std::vector<ScheduleKind> schedules = {
      ScheduleKind::OneFOneB, ScheduleKind::Interleaved, ScheduleKind::ZbH1, ScheduleKind::ZbH2,
      ScheduleKind::ZbV,      ScheduleKind::DualPipe,    ScheduleKind::GPipe};
  // Applies to plans with tensor parallelism.
  std::vector<bool> sequence_parallel = {true};
  std::vector<int> zero_stages = {0, 1, 2, 3};
  std::vector<RecomputePolicy> recompute = {RecomputePolicy::None, RecomputePolicy::Selective,
                                            RecomputePolicy::PerOp, RecomputePolicy::Full};
  std::vector<LayerSplit> layer_splits = {LayerSplit::FrontHeavy, LayerSplit::FrontLight,
                                          LayerSplit::BalancedEnds};
  // Orders after the first are tried only with pipeline and data parallelism; without them they
  // mean the same.
  std::vector<std::vector<Axis>> rank_orders = {Plan().rank_order};
  // How the replicas of all plans agree.
  ReplicaAgreement replicas;
  std::vector<OptimizerStates> optimizer_states = {OptimizerStates::OfStack};
  std::vector<OptimizerOffload> offload_optimizer = {OptimizerOffload::None};
  std::vector<bool> offload_activations = {false};
  // Sets of modules whose inputs alone plans with offloaded activations offload, beside all of
  // them.
  std::vector<OffloadModuleSet> offload_modules;
  // Selective recomputation of what the stack means by it, and of the sets of modules that pay for
  // the model.
  bool usual_recompute_modules = true;
  // Further sets; an empty one is what the stack means by selective recomputation.
  std::vector<RecomputeModuleSet> recompute_modules;
  // True to try full recomputation of a quarter, half and three quarters of a chunk.
  bool partial_recompute = true;
  // Stages on pools of a cluster may differ in the number of layers that full recomputation covers.
  bool recompute_by_stage = true;
  // True to try ZeRO-3 over the data-parallel ranks of a node (HSDP).
  bool sharding_within_node = true;
  // Further values, in addition to those that the search always tries. Layers of a chunk:
  std::vector<std::int64_t> recompute_layers;
  // Intervals and groups of full recomputation above 1, as far as chunks have so many layers.
  std::vector<std::int64_t> recompute_intervals, recompute_groups;
  // Groups for ZeRO-1 to 3.
  std::vector<std::int64_t> shard_groups;
  std::vector<std::int64_t> micro_batches, virtual_stages, expert_tensor_degrees;
  std::vector<ContextParallelKind> context_parallel = {
      ContextParallelKind::Ring, ContextParallelKind::AllGather, ContextParallelKind::Ulysses};

  // Has the values of the fields that no search varies, such as the overlap; without it they are
  // those that the stack usually runs.
  std::optional<Plan> base;

  bool operator==(const SearchLimits&) const = default;
};

// The rank order with tensor, context and expert parallelism inside the pipeline, and the pipeline
// inside data parallelism: neighbouring stages are closer together, and replicas further apart.
const std::vector<Axis>& pipeline_inside_data();

// The usual schedules and shardings alone, for a first answer within a second.
SearchLimits narrow_limits();

// Returns `limits` without the values that the stack never runs. PlanRule::Stack excludes those
// that it does not run together.
SearchLimits limits_of(const StackSpec& stack, SearchLimits limits = {});

struct SpaceRequest {
  const ModelSpec& model;
  const ClusterSpec& cluster;
  const StackSpec& stack;
  std::int64_t gpus = 1;
  std::int64_t global_batch = 1;
  std::int64_t seq_len = 1;
  Precision precision = Precision::Bf16;
  std::optional<Lora> lora;
  const SearchLimits& limits;
};

// Returns the layer cuts of the plans, in the order of the space: tp, cp, ep, micro-batch and all
// other fields that the ops of one layer and their prices depend on. The other fields have
// representative values: `recompute` is full on one layer if the cut has both kept and recomputed
// layers, and `zero_stage` is 3 or 0.
std::vector<Plan> layer_cuts(const SpaceRequest& request);

// Calls `visit` for each plan of the space that cuts layers like `cut`, in order. The order of cuts
// and plans also decides between plans of equal score.
void for_each_plan(const SpaceRequest& request, const Plan& cut,
                   const std::function<void(const Plan&)>& visit);

// The same for those of `pp` stages alone, which divides the accelerators of the cut.
void for_each_plan_of_depth(const SpaceRequest& request, const Plan& cut, std::int64_t pp,
                            const std::function<void(const Plan&)>& visit);

}  // namespace shardwright::planner
