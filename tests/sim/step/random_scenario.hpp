// Random small training steps for property tests: dense and sparse models, every schedule and every
// kind of sharding, on a few nodes.
#pragma once

#include <rapidcheck.h>

#include <initializer_list>
#include <string>

#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "tests/core/spec/random_plan.hpp"

namespace shardwright::sim::fixtures {

template <class T>
T one_of(std::initializer_list<T> values) {
  return *rc::gen::elementOf(std::vector<T>(values));
}

inline ModelSpec small_model(bool sparse, bool tied) {
  ModelSpec model;
  model.name = "small";
  model.family = "llama";
  model.layers = 16;
  model.hidden = 1024;
  model.vocab = 32000;
  model.max_seq_len = 8192;
  model.attention.heads = 8;
  model.attention.kv_heads = 4;
  model.attention.head_dim = 128;
  model.mlp.ffn_hidden = 4096;
  model.tied_embeddings = tied;
  if (sparse) {
    model.moe = MoeSpec{};
    model.moe->experts = 8;
    model.moe->top_k = 2;
    model.moe->expert_ffn = 2048;
    model.moe->first_dense_layers = 1;
    model.moe->shared_experts = one_of<std::int64_t>({0, 1});
    model.moe->shared_expert_ffn = 2048 * model.moe->shared_experts;
    model.moe->shared_expert_gate = model.moe->shared_experts > 0 && any_flag();
  }
  return model;
}

// A pool "second" for a cluster of one pool, with the same hardware, number of nodes and price.
inline PoolSpec pool_like_first(const ClusterSpec& cluster) {
  return {.name = "second",
          .accelerator = cluster.accelerator,
          .node = cluster.node,
          .fabric = cluster.fabric,
          .nodes = cluster.nodes,
          .price = cluster.price};
}

// A scenario of shipped parts whose plan is still the default one.
inline Scenario shipped_scenario(const std::string& model,
                                 const std::string& stack = "megatron-core",
                                 const std::string& cluster = "dgx-h100") {
  return {load_model(model), load_cluster(cluster), load_stack(stack), {}};
}

// A small dense model on H100 nodes, with 8 microbatches of 4096 tokens a replica.
inline Scenario small_scenario(std::int64_t dp, std::int64_t tp, std::int64_t pp,
                               const std::string& stack = "megatron-core") {
  Scenario scenario{small_model(false, false), load_cluster("dgx-h100"), load_stack(stack), {}};
  Plan& plan = scenario.plan;
  plan.dp = dp;
  plan.tp = tp;
  plan.pp = pp;
  plan.global_batch = 8 * dp;
  plan.seq_len = 4096;
  return scenario;
}

inline void pick_degrees(Plan& plan, bool sparse) {
  plan.dp = one_of<std::int64_t>({1, 2, 4});
  plan.tp = one_of<std::int64_t>({1, 2, 4});
  plan.pp = one_of<std::int64_t>({1, 2, 4});
  plan.cp = one_of<std::int64_t>({1, 1, 2});
  plan.vpp = one_of<std::int64_t>({1, 1, 2});
  plan.ep = sparse ? one_of<std::int64_t>({1, 2, 4}) : 1;
  plan.expert_tp = sparse ? one_of<std::int64_t>({1, 2}) : 1;
}

inline Plan any_small_plan(bool sparse) {
  Plan plan;
  pick_degrees(plan, sparse);
  plan.zero_stage = one_of({0, 1, 2, 3});
  plan.shard_group = plan.zero_stage == 0 ? 0 : one_of<std::int64_t>({0, 0, 2});
  plan.micro_batch = one_of<std::int64_t>({1, 2});
  plan.global_batch = plan.dp * plan.micro_batch * one_of<std::int64_t>({1, 4, 8});
  plan.seq_len = 2048;
  plan.schedule = any_enumerator<ScheduleKind>();
  plan.recompute = any_enumerator<RecomputePolicy>();
  plan.context_parallel = any_enumerator<ContextParallelKind>();
  plan.overlap.p2p = any_flag();
  plan.overlap.grad_reduce = any_flag();
  plan.overlap.param_gather = any_flag();
  plan.overlap.expert_parallel = sparse && any_flag();
  plan.overlap.expert_microbatches = plan.ep > 1 && any_flag();
  plan.offload_activations = one_of({false, false, true});
  shuffle_axes(plan.rank_order);
  return plan;
}

// A valid scenario. Plans that break a rule are drawn again.
inline Scenario any_small_scenario(const std::string& cluster = "dgx-h100") {
  Scenario scenario;
  const bool sparse = any_flag();
  scenario.model = small_model(sparse, any_flag());
  scenario.model.mtp_layers = one_of<std::int64_t>({0, 0, 1});
  scenario.cluster = load_cluster(cluster);
  scenario.stack = load_stack(one_of<std::string>({"megatron-core", "megatron-lm-2021", "fsdp2"}));
  do {
    scenario.plan = any_small_plan(sparse);
  } while (first_broken_rule(scenario.model, scenario.cluster, scenario.plan));
  return scenario;
}

}  // namespace shardwright::sim::fixtures
