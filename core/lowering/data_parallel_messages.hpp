// The messages of data parallelism: gradient buckets, parameter gathers, and the collectives that a
// bucket takes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "core/lowering/block_set.hpp"
#include "core/lowering/replica_exchange.hpp"
#include "core/lowering/stage_states.hpp"
#include "core/op/op.hpp"
#include "core/program/groups.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

// Bytes of gradients, or of gathered parameters, that travel together.
struct Bucket {
  // Over the data group.
  double dense = 0.0;
  // Over the group of ranks that hold the same experts.
  double expert = 0.0;
  // These of the mean rank, which count where a bucket is full: ranks with other numbers of experts
  // reduce the same parts of the model at once.
  double mean_expert = 0.0;

  void add(const PartParameters& part, double element_bytes) {
    dense += part.dense * element_bytes;
    expert += part.expert * element_bytes;
    mean_expert += part.mean_expert * element_bytes;
  }
  bool holds(double bytes) const { return dense + mean_expert >= bytes; }
  bool operator==(const Bucket&) const = default;
};

// Bytes from which on a gradient bucket is reduced beside the backward pass: 0 where each part is
// reduced alone, infinite where one reduction follows the backward pass.
double gradient_bucket_bytes(const ModelSpec& model, const Plan& plan, const StackSpec& stack);

// Bytes from which on parameters are gathered, where that happens beside the first forward pass.
double parameter_bucket_bytes(const Plan& plan, const StackSpec& stack);

// The same as gradient_bucket_bytes where the plan does not shard the parameters.
double unsharded_bucket_bytes(const Plan& plan, const StackSpec& stack);

// The time at which ZeRO-1 and ZeRO-2 gather the parameters that the ranks have updated.
enum class ParameterGathers { None, BesideForward, AfterOptimizer };
ParameterGathers parameter_gathers(const Plan& plan, const StackSpec& stack);

// A collective that gathers a part of a bucket of parameters.
struct ParameterGather {
  Group group = Group::ShardInner;
  double bytes = 0.0;
  // "parameters", or "expert_parameters" for those of experts.
  const char* name = nullptr;
};

// Calls `visit(ParameterGather)` for the collectives of a bucket in issue order.
template <class Visit>
void for_each_gather(const Bucket& bucket, Visit visit) {
  visit(ParameterGather{Group::ShardInner, bucket.dense, "parameters"});
  visit(ParameterGather{Group::ExpertShardInner, bucket.expert, "expert_parameters"});
}

// Fills buckets of `full` bytes with parts of the model in the order in which the first forward
// pass needs them, and calls `visit(bucket, first, end)` for each with the range of its parts.
template <class PartsOf, class Visit>
void for_each_gathered_bucket(std::size_t parts, double full, PartsOf add_part, Visit visit) {
  Bucket bucket;
  std::size_t first = 0;
  for (std::size_t i = 0; i < parts; ++i) {
    add_part(i, bucket);
    if (i + 1 < parts && !bucket.holds(full)) continue;
    visit(std::as_const(bucket), first, i + 1);
    bucket = {};
    first = i + 1;
  }
}

// A collective that reduces a part of a bucket.
struct GradientReduction {
  OpKind kind = OpKind::AllReduce;
  Group group = Group::Data;
  double bytes = 0.0;
  // True if the reduced gradients are those of expert parameters.
  bool expert = false;

  const char* name() const { return expert ? "expert_gradients" : "gradients"; }
  const char* suffix() const {
    if (kind == OpKind::Push) return ".push";
    return kind == OpKind::ReduceScatter ? ".reduce_scatter" : ".all_reduce";
  }
};

// Calls `visit(GradientReduction)` for the collectives of a bucket in issue order. With ZeRO
// gradients are scattered over the ranks that share states. What is `complete` of the bucket, since
// no microbatch adds to it any more, is then summed over the replicas of these ranks: a sum after
// each microbatch would send the shards again and again, and FSDP leaves it out (PyTorch,
// set_requires_all_reduce). Replicas that make local steps keep their gradients; with parameter
// servers they push them.
template <class Visit>
void for_each_reduction(const Bucket& bucket, const Bucket& complete, const Plan& plan,
                        Visit visit) {
  const bool local = plan.replicas.local();
  if (plan.zero_stage == 0) {
    if (local) return;
    const OpKind kind = plan.replicas.has_servers() ? OpKind::Push : OpKind::AllReduce;
    visit(GradientReduction{kind, Group::Data, bucket.dense, false});
    visit(GradientReduction{kind, Group::ExpertData, bucket.expert, true});
    return;
  }
  visit(GradientReduction{OpKind::ReduceScatter, Group::ShardInner, bucket.dense, false});
  if (!local)
    visit(GradientReduction{OpKind::AllReduce, Group::ShardOuter,
                            complete.dense / dense_shards(plan), false});
  visit(GradientReduction{OpKind::ReduceScatter, Group::ExpertShardInner, bucket.expert, true});
  if (!local)
    visit(GradientReduction{OpKind::AllReduce, Group::ExpertShardOuter,
                            complete.expert / expert_shards(plan), true});
}

// The collectives of a bucket that the last microbatch has completed.
template <class Visit>
void for_each_reduction(const Bucket& bucket, const Plan& plan, Visit visit) {
  for_each_reduction(bucket, bucket, plan, visit);
}

// True if the plan's replicas add up compressed gradients in each step.
inline bool compresses_gradients(const Plan& plan) {
  return !plan.replicas.local() && plan.replicas.compression != ReplicaCompression::None;
}

// The ops of such a reduction, whose gradients have elements of `element` bytes.
inline ExchangeOps compressed_reduction(const GradientReduction& reduction, const Plan& plan,
                                        Bytes element) {
  return sum_over_replicas(plan.replicas, reduction.bytes / element.value(), element,
                           group_size(reduction.group, plan));
}

// Calls `add(fragment, part)` for each part of a stage with the fragment of local steps that it is
// in. The embedding goes with the stage's first layer, the head with its last one. `chunks` are
// pointers to the parts of each chunk, in the order of the model, so that stages of the same
// layers have the same fragments.
template <class Chunks, class IsLayer, class Add>
void for_each_fragment_part(const ReplicaAgreement& replicas, const Chunks& chunks,
                            IsLayer is_layer, Add add) {
  std::int64_t layers = 0, layer = 0;
  for (const auto* chunk : chunks) layers += std::count_if(chunk->begin(), chunk->end(), is_layer);
  for (const auto* chunk : chunks) {
    for (const auto& part : *chunk) {
      const std::int64_t number = is_layer(part) ? layer++ : std::max<std::int64_t>(layer - 1, 0);
      add(static_cast<std::size_t>(fragment_of_layer(replicas, number, layers)), part);
    }
  }
}

// The exchange of replicas that make local steps: of a fragment of the parameters of one rank, or
// of those of experts in it.
struct LocalStepsExchange {
  Group group = Group::Data;
  double elements = 0.0;
  // "local_steps", or "expert_local_steps" for parameters of experts.
  const char* name = nullptr;
  std::size_t fragment = 0;
  ExchangeOps ops;
};

// Calls `visit(LocalStepsExchange)` for the exchanges of a stage in issue order. `fragments` has
// the parameters of each fragment.
template <class Visit>
void for_each_local_exchange(std::span<const PartParameters> fragments, const Plan& plan,
                             Visit visit) {
  if (!plan.replicas.local()) return;
  const bool splits = plan.zero_stage >= 1;
  // Only weights of fewer bits are applied from a copy.
  const bool copies = storage_bytes(plan.precision) < Bytes(4.0);
  const auto exchange = [&](std::size_t fragment, double elements, bool experts, const char* name) {
    if (elements <= 0.0) return;
    const Group group = replica_group(plan, experts);
    const Bytes applied = copies ? storage_bytes(plan.precision) : Bytes();
    visit(LocalStepsExchange{
        group, elements, name, fragment,
        agree_on_steps(plan.replicas, elements, applied, group_size(group, plan))});
  };
  for (std::size_t i = 0; i < fragments.size(); ++i) {
    const PartParameters& part = fragments[i];
    exchange(i, part.dense / (splits ? dense_shards(plan) : 1.0), false, "local_steps");
    exchange(i, part.expert / (splits ? expert_shards(plan) : 1.0), true, "expert_local_steps");
  }
}

// Calls `visit(name, group, ops)` for what a stage does with parameter servers after it has pushed
// its gradients: it waits for their step and pulls its parameters.
template <class Visit>
void for_each_served(const PartParameters& stage, const Plan& plan, Visit visit) {
  if (!plan.replicas.has_servers()) return;
  const Bytes pulled = storage_bytes(plan.precision);
  if (stage.dense > 0.0) visit("parameters", Group::Data, served_parameters(stage.dense, pulled));
  if (stage.expert > 0.0)
    visit("expert_parameters", Group::ExpertData, served_parameters(stage.expert, pulled));
}

// Bytes of the gradients that a stage adds up over other ranks than data-parallel ones.
struct GradientCopies {
  // Over the tensor group: gradients that each rank knows only a part of.
  double replicated = 0.0;
  // Over the two stages that hold the same parts of the model (DualPipe).
  double mirrored_dense = 0.0;
  double mirrored_expert = 0.0;
};
GradientCopies gradient_copies(const PartParameters& stage, const Plan& plan,
                               const StackSpec& stack);

// An all-reduce that adds up such gradients.
struct CopyReduction {
  Group group = Group::Tensor;
  double bytes = 0.0;
  Payload payload = Payload::Gradients;
  const char* name = nullptr;
};

// Calls `visit(CopyReduction)` in issue order.
template <class Visit>
void for_each_copy_reduction(const GradientCopies& copies, Visit visit) {
  visit(CopyReduction{Group::Tensor, copies.replicated, Payload::ReplicatedGradients,
                      "replicated_gradients"});
  visit(CopyReduction{Group::Mirror, copies.mirrored_dense, Payload::Gradients,
                      "mirrored_gradients"});
  visit(CopyReduction{Group::Mirror, copies.mirrored_expert, Payload::Gradients,
                      "mirrored_expert_gradients"});
}

// True if the ranks themselves have the gradients whose norm is taken.
inline bool knows_gradient_norm(const Plan& plan) {
  return !plan.replicas.has_servers() || plan.replicas.stale();
}

// The all-reduces of the gradient norm, one fp32 number each. The norm is that of all parameters:
// over the shards where the gradients are split, and over the tensor-parallel ranks and stages.
inline constexpr double kNormBytes = 4.0;
template <class Visit>
void for_each_norm_reduction(const Plan& plan, Visit visit) {
  if (plan.zero_stage >= 1) visit("gradient_norm.shards", Group::ShardInner);
  visit("gradient_norm", Group::ModelParallel);
}

}  // namespace shardwright
