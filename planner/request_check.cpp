#include "planner/request_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_text.hpp"
#include "core/spec/pools.hpp"
#include "planner/objective.hpp"
#include "planner/placements.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::planner {

namespace {

void check_range(ProblemList& problems, const char* field, std::int64_t value, std::int64_t least,
                 std::int64_t most) {
  if (value >= least && value <= most) return;
  problems.add(field, fmt::format("{}", value),
               fmt::format("a number from {} to {}", format_count(least), format_count(most)));
}

// Adds the values that a constraint names, even if the stack or the defaults exclude them.
template <class Value>
void add_values(std::vector<Value>& values, const Constraint& constraint) {
  for (const std::int64_t number : constraint.values) {
    const auto wanted = static_cast<Value>(number);
    if (std::find(values.begin(), values.end(), wanted) == values.end()) values.push_back(wanted);
  }
}

std::int64_t largest(const Constraint& constraint, std::int64_t at_least) {
  const auto most = std::max_element(constraint.values.begin(), constraint.values.end());
  return most == constraint.values.end() ? at_least : std::max(at_least, *most);
}

void widen_degrees(const Constraint& constraint, const ClusterSpec& cluster, SearchLimits& limits) {
  if (constraint.field == PlanField::Tp) {
    if (limits.max_tp == 0) limits.max_tp = sim::domain_size(cluster);
    limits.max_tp = largest(constraint, limits.max_tp);
  } else if (constraint.field == PlanField::Pp) {
    limits.max_pp = largest(constraint, limits.max_pp);
  } else if (constraint.field == PlanField::Cp) {
    limits.max_cp = largest(constraint, limits.max_cp);
    limits.min_cp_tokens = 1;
  }
}

void add_choices(const Constraint& constraint, SearchLimits& limits) {
  switch (constraint.field) {
    case PlanField::ExpertTp:
      return add_values(limits.expert_tensor_degrees, constraint);
    case PlanField::Vpp:
      return add_values(limits.virtual_stages, constraint);
    case PlanField::MicroBatch:
      return add_values(limits.micro_batches, constraint);
    case PlanField::ContextParallel:
      limits.context_parallel.clear();
      return add_values(limits.context_parallel, constraint);
    case PlanField::SequenceParallel:
      return add_values(limits.sequence_parallel, constraint);
    case PlanField::Schedule:
      return add_values(limits.schedules, constraint);
    case PlanField::ZeroStage:
      return add_values(limits.zero_stages, constraint);
    case PlanField::ShardGroup:
      return add_values(limits.shard_groups, constraint);
    case PlanField::RecomputeModules:
      for (const std::int64_t bits : constraint.values)
        limits.recompute_modules.push_back(
            RecomputeModuleSet::of_bits(static_cast<std::uint32_t>(bits)));
      return;
    case PlanField::RecomputeLayers:
      return add_values(limits.recompute_layers, constraint);
    case PlanField::RecomputeInterval:
      return add_values(limits.recompute_intervals, constraint);
    case PlanField::RecomputeGroup:
      return add_values(limits.recompute_groups, constraint);
    case PlanField::OptimizerStates:
      return add_values(limits.optimizer_states, constraint);
    case PlanField::OffloadOptimizer:
      return add_values(limits.offload_optimizer, constraint);
    case PlanField::OffloadActivations:
      return add_values(limits.offload_activations, constraint);
    case PlanField::OffloadModules:
      for (const std::int64_t bits : constraint.values)
        limits.offload_modules.push_back(
            OffloadModuleSet::of_bits(static_cast<std::uint32_t>(bits)));
      return;
    case PlanField::Tp:  // ranges, not lists
    case PlanField::Pp:
    case PlanField::Cp:
    case PlanField::Dp:  // all possible values are tried
    case PlanField::Ep:
    case PlanField::GlobalBatch:
    case PlanField::Recompute:
      return;
  }
}

void check_cluster(const PlanRequest& request, ProblemList& problems) {
  const ClusterSpec& cluster = request.cluster;
  const auto most = cluster.most_accelerators();
  if (most && request.gpus > *most) {
    problems.add("gpus", format_count(request.gpus),
                 cluster.nodes > 0
                     ? fmt::format("at most the {} accelerators of the cluster {}",
                                   format_count(*most), cluster.name)
                     : fmt::format("at most the {} accelerators that the fabric {} can join",
                                   format_count(*most), cluster.fabric.name));
  }
}

void check_pools(const PlanRequest& request, ProblemList& problems) {
  const ClusterSpec& cluster = request.cluster;
  if (!request.takes_pools) {
    problems.add("cluster", fmt::format("{} pools", cluster.pools.size() + 1),
                 "a cluster of one pool: here stages are not placed on several");
    return;
  }
  // The orders of the pools, all of which are tried, grow as their factorial.
  constexpr std::size_t kMostPools = 6;
  if (cluster.pools.size() >= kMostPools)
    problems.add("cluster", fmt::format("{} pools", cluster.pools.size() + 1),
                 fmt::format("at most {}", kMostPools));
  const std::int64_t accelerators = size_of_pools(cluster, request.gpus);
  if (request.gpus > accelerators)
    problems.add(
        "gpus", format_count(request.gpus),
        fmt::format("at most the {} accelerators of the pools", format_count(accelerators)));
}

void check_price(const PlanRequest& request, const ClusterSpec& pool, ProblemList& problems) {
  if (request.objective != Objective::Cost || accelerator_price(pool) > DollarsPerSecond()) return;
  problems.add("objective", "cost",
               fmt::format("time, memory or tokens-per-joule, as the cluster {} has no price; or "
                           "price_dollars_per_hour in its file",
                           pool.name));
}

}  // namespace

std::vector<Problem> precision_problems(const PlanRequest& request) {
  std::vector<Problem> problems;
  const ClusterSpec& cluster = request.cluster;
  const char* found = name_of(request.precision);
  const bool multiplies =
      std::ranges::any_of(names_of_pools(cluster), [&](const std::string& pool) {
        return pool_cluster(cluster, pool)->accelerator.matrix.of(request.precision) >
               FlopPerSecond();
      });
  if (!multiplies)
    problems.push_back({"precision", found,
                        cluster.pools.empty()
                            ? fmt::format("a format that the accelerator {} multiplies in",
                                          cluster.accelerator.name)
                            : "a format that the accelerators of a pool multiply in"});
  const std::vector<Precision>& trained = request.stack.capabilities.precisions;
  if (!request.limits.base && !trained.empty() &&
      std::ranges::find(trained, request.precision) == trained.end())
    problems.push_back({"precision", found,
                        fmt::format("a format that the stack {} trains in", request.stack.name)});
  return problems;
}

void check_request(const PlanRequest& request) {
  ProblemList problems("plan request");
  check_range(problems, "gpus", request.gpus, 1, kMaxWorld);
  check_range(problems, "global_batch", request.global_batch, 0, kMaxBatch);
  check_range(problems, "max_global_batch", request.max_global_batch, 0, kMaxBatch);
  if (request.max_global_batch > 0 && request.global_batch > request.max_global_batch) {
    problems.add(
        "global_batch", fmt::format("{}", request.global_batch),
        fmt::format("auto, or at most the largest batch allowed, {}", request.max_global_batch));
  }
  check_range(problems, "seq_len", request.seq_len, 1, kMaxSeqLen);
  check_range(problems, "top", request.top, 1, 1000);
  check_range(problems, "threads", request.threads, 0, 1024);
  const ClusterSpec& cluster = request.cluster;
  if (cluster.pools.empty())
    check_cluster(request, problems);
  else
    check_pools(request, problems);
  for (Problem& problem : precision_problems(request))
    problems.add(problem.where, problem.found, std::move(problem.expected));
  if (request.lora && !request.limits.base) {
    const std::string refused = adapters_refused_by(request.stack, request.model, *request.lora);
    Plan adapted;
    adapted.lora = request.lora;
    if (!refused.empty()) {
      problems.add("lora", lora_text(adapted),
                   fmt::format("what the stack trains: {} {}", request.stack.name, refused));
    }
  }
  for (const std::string& pool : names_of_pools(cluster))
    check_price(request, *pool_cluster(cluster, pool), problems);
  problems.throw_if_any();
}

void adapt_limits(PlanRequest& request) {
  request.limits = limits_of(request.stack, request.limits);
  for (const Constraint& constraint : request.constraints.fixed) {
    // A bound leaves the choice of values to the search.
    if (constraint.range == ConstraintRange::AtMost) continue;
    widen_degrees(constraint, request.cluster, request.limits);
    if (constraint.range == ConstraintRange::None) add_choices(constraint, request.limits);
  }
}

Precision usual_precision(const ClusterSpec& cluster) {
  const MatrixPeaks& peaks = cluster.accelerator.matrix;
  const bool small = std::max(peaks.bf16, peaks.fp16) > FlopPerSecond(0);
  return small ? Precision::Bf16 : Precision::Fp32;
}

void plan_for_all_of_it(PlanRequest& request) {
  constexpr std::int64_t kSequencesEach = 4;
  request.gpus = request.cluster.nodes * request.cluster.node.accelerators;
  for (const PoolSpec& pool : request.cluster.pools)
    request.gpus += pool.nodes * pool.node.accelerators;
  request.global_batch = request.gpus * kSequencesEach;
  request.seq_len = request.model.max_seq_len;
}

}  // namespace shardwright::planner
