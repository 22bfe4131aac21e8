// Random plans for property tests: any value that a plan file may hold, sensible or not.
#pragma once

#include <rapidcheck.h>

#include <cstdint>
#include <vector>

#include "core/spec/plan.hpp"
#include "core/spec/precision.hpp"

namespace shardwright {

template <class E>
E any_enumerator() {
  return enumerators<E>()[*rc::gen::inRange<std::size_t>(0, kEnumCount<E>)];
}

inline std::int64_t any_between(std::int64_t least, std::int64_t most) {
  return *rc::gen::inRange<std::int64_t>(least, most + 1);
}

inline Plan any_plan() {
  Plan plan;
  for (std::int64_t* degree :
       {&plan.dp, &plan.tp, &plan.pp, &plan.cp, &plan.ep, &plan.expert_tp, &plan.vpp}) {
    *degree = any_between(1, 40);
  }
  plan.micro_batch = any_between(1, 16);
  plan.global_batch = any_between(1, 100'000);
  plan.seq_len = any_between(1, 200'000);
  plan.zero_stage = static_cast<int>(any_between(0, 3));
  plan.shard_group = any_between(0, 64);
  plan.recompute_layers = any_between(0, 50);
  plan.schedule = any_enumerator<ScheduleKind>();
  plan.context_parallel = any_enumerator<ContextParallelKind>();
  plan.recompute = any_enumerator<RecomputePolicy>();
  plan.offload_optimizer = any_enumerator<OptimizerOffload>();
  plan.precision = any_enumerator<Precision>();
  for (bool* flag :
       {&plan.sequence_parallel, &plan.overlap.grad_reduce, &plan.overlap.param_gather,
        &plan.overlap.tensor_parallel, &plan.overlap.p2p, &plan.overlap.expert_parallel,
        &plan.overlap.expert_microbatches, &plan.embedding_counts_as_layer,
        &plan.head_counts_as_layer, &plan.offload_activations, &plan.multi_token_prediction}) {
    *flag = *rc::gen::arbitrary<bool>();
  }
  for (std::size_t i = plan.rank_order.size() - 1; i > 0; --i) {
    std::swap(plan.rank_order[i], plan.rank_order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
  }
  plan.stage_layers =
      *rc::gen::container<std::vector<std::int64_t>>(rc::gen::inRange<std::int64_t>(0, 20));
  return plan;
}

}  // namespace shardwright
