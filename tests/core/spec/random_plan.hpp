// Random plans for property tests: any value that a plan file may hold, sensible or not.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "core/spec/plan.hpp"
#include "core/spec/precision.hpp"
#include "tests/core/spec/model_samples.hpp"

namespace shardwright {

template <class E>
E any_enumerator() {
  return enumerators<E>()[*rc::gen::inRange<std::size_t>(0, kEnumCount<E>)];
}

inline void shuffle_axes(std::vector<Axis>& order) {
  for (std::size_t i = order.size() - 1; i > 0; --i)
    std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
}

// A plan of any of these degrees, nested in any order.
inline Plan any_plan_of_degrees(const std::vector<std::int64_t>& degrees) {
  Plan plan;
  for (std::int64_t* degree : {&plan.dp, &plan.tp, &plan.pp, &plan.cp})
    *degree = *rc::gen::elementOf(degrees);
  shuffle_axes(plan.rank_order);
  return plan;
}

// Any agreement of replicas; values that it has no use for are the defaults, which a file leaves
// out.
inline ReplicaAgreement any_agreement() {
  ReplicaAgreement agreement;
  agreement.sync = any_enumerator<ReplicaSync>();
  if (agreement.local()) {
    agreement.inner_steps = any_size(1, 1000);
    agreement.outer = any_enumerator<OuterOptimizer>();
    agreement.outer_momentum = static_cast<double>(any_size(0, 9)) / 10.0;
    agreement.fragments = any_size(1, 9);
    agreement.fragment_order = any_enumerator<FragmentOrder>();
    agreement.overlap_steps = any_size(0, 9);
    agreement.local_share = static_cast<double>(any_size(0, 9)) / 10.0;
  }
  if (agreement.has_servers()) {
    agreement.servers = any_size(0, 9);
    agreement.server_place = any_enumerator<ServerPlace>();
    agreement.server_updates = any_enumerator<ServerUpdates>();
    if (agreement.server_updates == ServerUpdates::BoundedStaleness)
      agreement.staleness = any_size(0, 9);
  }
  agreement.compression = any_enumerator<ReplicaCompression>();
  if (agreement.compression == ReplicaCompression::TopK)
    agreement.topk_ratio = static_cast<double>(any_size(1, 100)) / 100.0;
  if (agreement.compression == ReplicaCompression::PowerSgd)
    agreement.powersgd_rank = any_size(1, 64);
  return agreement;
}

inline Plan any_plan() {
  Plan plan;
  for (std::int64_t* degree :
       {&plan.dp, &plan.tp, &plan.pp, &plan.cp, &plan.ep, &plan.expert_tp, &plan.vpp}) {
    *degree = any_size(1, 40);
  }
  plan.micro_batch = any_size(1, 16);
  plan.global_batch = any_size(1, 100'000);
  plan.seq_len = any_size(1, 200'000);
  plan.zero_stage = static_cast<int>(any_size(0, 3));
  plan.shard_group = any_size(0, 64);
  plan.recompute_layers = any_size(0, 50);
  plan.recompute_interval = any_size(1, 50);
  plan.recompute_group = any_size(1, 50);
  plan.schedule = any_enumerator<ScheduleKind>();
  plan.context_parallel = any_enumerator<ContextParallelKind>();
  plan.recompute = any_enumerator<RecomputePolicy>();
  plan.recompute_modules = RecomputeModuleSet::of_bits(
      *rc::gen::inRange<std::uint32_t>(0, std::uint32_t{1} << kEnumCount<RecomputeModule>));
  plan.optimizer_states = any_enumerator<OptimizerStates>();
  plan.offload_optimizer = any_enumerator<OptimizerOffload>();
  plan.offload_modules = OffloadModuleSet::of_bits(
      *rc::gen::inRange<std::uint32_t>(0, std::uint32_t{1} << kEnumCount<OffloadModule>));
  plan.precision = any_enumerator<Precision>();
  for (bool* flag :
       {&plan.sequence_parallel, &plan.overlap.grad_reduce, &plan.overlap.param_gather,
        &plan.overlap.tensor_parallel, &plan.overlap.p2p, &plan.overlap.expert_parallel,
        &plan.overlap.expert_microbatches, &plan.embedding_counts_as_layer,
        &plan.head_counts_as_layer, &plan.offload_activations, &plan.multi_token_prediction}) {
    *flag = any_flag();
  }
  if (any_flag()) {
    plan.lora = Lora{.rank = any_size(1, 300),
                     .alpha = static_cast<double>(any_size(1, 64)),
                     .targets = LoraTargetSet::of_bits(*rc::gen::inRange<std::uint32_t>(
                         0, std::uint32_t{1} << kEnumCount<LoraTarget>)),
                     .joint = any_flag(),
                     .base = any_enumerator<FrozenFormat>()};
  }
  if (any_flag()) plan.replicas = any_agreement();
  shuffle_axes(plan.rank_order);
  plan.stage_layers =
      *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 20));
  plan.stage_recompute_layers =
      *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 20));
  return plan;
}

}  // namespace shardwright
