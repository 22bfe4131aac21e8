// Random plans of everything that is shipped, beyond what a search tries.
#pragma once

#include <optional>
#include <random>

#include "core/spec/plan_check.hpp"
#include "tests/planner/random_request.hpp"

namespace shardwright::planner {

// A training run and one of its plans, whether or not the plan fits.
struct RandomRun {
  PlanRequest request;
  Plan plan;
};

inline bool one_in(std::mt19937& random, int n) {
  return std::uniform_int_distribution<int>(0, n - 1)(random) == 0;
}

// A number of layers for each of `chunks` chunks, each with at least one.
inline std::vector<std::int64_t> uneven_split(std::mt19937& random, std::int64_t layers,
                                              std::int64_t chunks) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(chunks), layers / chunks);
  for (std::int64_t i = 0; i < layers % chunks; ++i) ++sizes[static_cast<std::size_t>(i)];
  std::uniform_int_distribution<std::size_t> any(0, sizes.size() - 1);
  for (std::size_t moves = 0; moves < sizes.size(); ++moves) {
    std::int64_t& from = sizes[any(random)];
    if (from < 2) continue;
    --from;
    ++sizes[any(random)];
  }
  return sizes;
}

// Stages of a pipeline, or one alone.
inline void draw_pipeline(std::mt19937& random, const ModelSpec& model, Plan& plan) {
  plan.pp = one_in(random, 8) ? 1 : pick<std::int64_t>(random, {2, 3, 4, 6, 8, 16});
  if (plan.pp == 1) plan.schedule = ScheduleKind::OneFOneB;
  if (plan.schedule == ScheduleKind::ZbV) plan.vpp = 2;
  if (plan.schedule == ScheduleKind::Interleaved)
    plan.vpp = pick<std::int64_t>(random, {2, 2, 3, 4});
  if (one_in(random, 4) && model.layers >= plan.chunks())
    plan.stage_layers = uneven_split(random, model.layers, plan.chunks());
  plan.embedding_counts_as_layer = one_in(random, 6);
  plan.head_counts_as_layer = one_in(random, 6);
}

inline void draw_data_parallelism(std::mt19937& random, Plan& plan) {
  plan.zero_stage = pick<int>(random, {0, 1, 2, 3});
  if (plan.zero_stage > 0 && one_in(random, 4))
    plan.shard_group = pick<std::int64_t>(random, {2, 4, 8});
  if (one_in(random, 4)) plan.rank_order = pipeline_inside_data();
  if (one_in(random, 3)) plan.overlap.grad_reduce = false;
  if (one_in(random, 3)) plan.overlap.param_gather = false;
  if (one_in(random, 3)) plan.overlap.p2p = false;
}

// A way in which the replicas of a plan may agree, whether or not its rules allow it.
inline ReplicaAgreement any_agreement(std::mt19937& random) {
  ReplicaAgreement agreement;
  agreement.sync = pick<ReplicaSync>(random, {ReplicaSync::AllReduce, ReplicaSync::LocalSteps});
  if (agreement.local()) {
    agreement.inner_steps = pick<std::int64_t>(random, {1, 8, 100});
    agreement.outer =
        pick<OuterOptimizer>(random, {OuterOptimizer::Average, OuterOptimizer::Nesterov});
  }
  agreement.compression = pick<ReplicaCompression>(
      random, {ReplicaCompression::None, ReplicaCompression::Bf16, ReplicaCompression::Int8,
               ReplicaCompression::Fp8, ReplicaCompression::OneBit, ReplicaCompression::TopK,
               ReplicaCompression::PowerSgd});
  return agreement;
}

// Any parameter servers.
inline ReplicaAgreement any_servers(std::mt19937& random) {
  ReplicaAgreement agreement;
  agreement.sync = ReplicaSync::ParameterServer;
  agreement.server_updates = pick<ServerUpdates>(
      random,
      {ServerUpdates::Synchronous, ServerUpdates::BoundedStaleness, ServerUpdates::Asynchronous});
  agreement.server_place =
      pick<ServerPlace>(random, {ServerPlace::Colocated, ServerPlace::Colocated,
                                 ServerPlace::Colocated, ServerPlace::Dedicated});
  agreement.servers = pick<std::int64_t>(random, {0, 0, 0, 1});
  if (agreement.server_updates == ServerUpdates::BoundedStaleness)
    agreement.staleness = pick<std::int64_t>(random, {0, 4});
  return agreement;
}

inline void draw_layers(std::mt19937& random, const ModelSpec& model, Plan& plan) {
  plan.tp = pick<std::int64_t>(random, {1, 1, 2, 4, 8});
  plan.cp = pick<std::int64_t>(random, {1, 1, 1, 2, 4});
  plan.context_parallel = pick<ContextParallelKind>(
      random,
      {ContextParallelKind::Ring, ContextParallelKind::AllGather, ContextParallelKind::Ulysses});
  plan.sequence_parallel = !one_in(random, 4);
  if (model.moe) {
    plan.ep = pick<std::int64_t>(random, {1, 2, 4, 8, 16});
    plan.expert_tp = pick<std::int64_t>(random, {1, plan.tp});
    plan.multi_token_prediction = one_in(random, 2);
    if (one_in(random, 4)) plan.overlap.expert_parallel = !plan.overlap.expert_parallel;
    if (one_in(random, 4)) plan.overlap.expert_microbatches = !plan.overlap.expert_microbatches;
  }
  if (one_in(random, 4)) plan.overlap.tensor_parallel = !plan.overlap.tensor_parallel;
  plan.recompute = pick<RecomputePolicy>(random, {RecomputePolicy::None, RecomputePolicy::Selective,
                                                  RecomputePolicy::Full, RecomputePolicy::PerOp});
  if (plan.recompute == RecomputePolicy::Selective) {
    for (const RecomputeModule module : recomputable_modules(model).members())
      if (one_in(random, 3)) plan.recompute_modules.insert(module);
  }
  if (plan.recompute == RecomputePolicy::Full && one_in(random, 2))
    plan.recompute_layers = std::uniform_int_distribution<std::int64_t>(1, 4)(random);
}

// The draw, if it breaks no rule.
inline std::optional<RandomRun> try_run(std::mt19937& random, const ModelSpec& model,
                                        const ClusterSpec& cluster, const StackSpec& stack,
                                        ScheduleKind schedule) {
  RandomRun run;
  Plan& plan = run.plan;
  plan.schedule = schedule;
  plan.overlap = usual_overlap(stack, model);
  plan.precision =
      pick<Precision>(random, {Precision::Bf16, Precision::Bf16, Precision::Fp16, Precision::Fp8});
  draw_layers(random, model, plan);
  draw_pipeline(random, model, plan);
  draw_data_parallelism(random, plan);
  plan.dp = pick<std::int64_t>(random, {1, 2, 4, 8, 16});
  plan.micro_batch = pick<std::int64_t>(random, {1, 1, 2, 4});
  plan.seq_len = pick<std::int64_t>(random, {1024, 2048, 4096, 8192});
  plan.global_batch =
      plan.dp * plan.micro_batch * pick<std::int64_t>(random, {1, 2, 4, 6, 8, 12, 16, 24, 32});
  if (first_broken_rule(model, cluster, plan)) return std::nullopt;
  run.request.model = model;
  run.request.cluster = cluster;
  run.request.stack = stack;
  run.request.gpus = plan.world_size();
  run.request.global_batch = plan.global_batch;
  run.request.seq_len = plan.seq_len;
  run.request.precision = plan.precision;
  return run;
}

// Any shipped model, cluster and stack, every schedule, sharding, degree, split of the layers and
// switch.
inline RandomRun random_run(std::mt19937& random) {
  const ModelSpec& model = pick(random, shipped_model_specs());
  const ClusterSpec& cluster = pick(random, shipped_cluster_specs());
  const StackSpec& stack = pick(random, shipped_stack_specs());
  // Rules forbid more plans of some schedules than of others.
  const auto schedule = pick<ScheduleKind>(
      random, {ScheduleKind::GPipe, ScheduleKind::OneFOneB, ScheduleKind::Interleaved,
               ScheduleKind::ZbH1, ScheduleKind::ZbH2, ScheduleKind::ZbV, ScheduleKind::DualPipe});
  while (true) {
    if (auto run = try_run(random, model, cluster, stack, schedule)) return *run;
  }
}

}  // namespace shardwright::planner
