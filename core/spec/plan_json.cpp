#include "core/spec/plan_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/spec/plan_check.hpp"
#include "core/spec/plan_names.hpp"

namespace shardwright {
namespace {

constexpr IntegerRange kDegree{1, kMaxDegree};

void read_degrees(ObjectReader& object, Plan& plan) {
  plan.dp = object.integer("dp", kDegree);
  plan.tp = object.integer("tp", kDegree);
  plan.pp = object.integer("pp", kDegree);
  plan.cp = object.integer_or("cp", plan.cp, kDegree);
  plan.ep = object.integer_or("ep", plan.ep, kDegree);
  plan.expert_tp = object.integer_or("expert_tp", plan.expert_tp, kDegree);
  plan.vpp = object.integer_or("vpp", plan.vpp, kDegree);
}

void read_batch(ObjectReader& object, Plan& plan) {
  plan.micro_batch = object.integer("micro_batch", {1, kMaxBatch});
  plan.global_batch = object.integer("global_batch", {1, kMaxBatch});
  plan.seq_len = object.integer("seq_len", {1, kMaxSeqLen});
}

// Earlier plans say whether the states lie on the host.
OptimizerOffload read_optimizer_offload(ObjectReader& object) {
  const std::string key = "offload_optimizer";
  if (object.raw(key).is_boolean())
    return object.boolean(key) ? OptimizerOffload::Host : OptimizerOffload::None;
  return object.choice_or(key, OptimizerOffload::None, optimizer_offload_names());
}

void read_sharding(ObjectReader& object, Plan& plan) {
  plan.sequence_parallel = object.boolean_or("sequence_parallel", plan.sequence_parallel);
  plan.zero_stage = static_cast<int>(object.integer_or("zero_stage", plan.zero_stage, {0, 3}));
  plan.shard_group = object.integer_or("shard_group", plan.shard_group, {0, kMaxWorld});
  plan.offload_optimizer = read_optimizer_offload(object);
  plan.offload_activations = object.boolean_or("offload_activations", plan.offload_activations);
}

void read_execution(ObjectReader& object, Plan& plan) {
  plan.schedule = object.choice_or("schedule", plan.schedule, schedule_names());
  plan.context_parallel =
      object.choice_or("context_parallel", plan.context_parallel, context_parallel_names());
  plan.recompute = object.choice_or("recompute", plan.recompute, recompute_names());
  plan.recompute_layers =
      object.integer_or("recompute_layers", plan.recompute_layers, {0, kMaxDegree});
  plan.precision = object.choice_or("precision", plan.precision, precision_names());
  plan.multi_token_prediction =
      object.boolean_or("multi_token_prediction", plan.multi_token_prediction);
}

void read_overlap(ObjectReader& object, OverlapSwitches& overlap) {
  auto member = object.object_if("overlap");
  if (!member) return;
  overlap.grad_reduce = member->boolean_or("grad_reduce", overlap.grad_reduce);
  overlap.param_gather = member->boolean_or("param_gather", overlap.param_gather);
  overlap.tensor_parallel = member->boolean_or("tensor_parallel", overlap.tensor_parallel);
  overlap.p2p = member->boolean_or("p2p", overlap.p2p);
  overlap.expert_parallel = member->boolean_or("expert_parallel", overlap.expert_parallel);
  overlap.expert_microbatches =
      member->boolean_or("expert_microbatches", overlap.expert_microbatches);
  member->refuse_unknown_keys();
}

void read_rank_order(ObjectReader& object, std::vector<Axis>& order) {
  if (!object.has("rank_order")) return;
  order.clear();
  for (const std::string& name : object.texts("rank_order")) {
    const auto axis = std::find_if(axis_names().begin(), axis_names().end(),
                                   [&](const auto& known) { return known.first == name; });
    if (axis != axis_names().end()) {
      order.push_back(axis->second);
    } else {
      object.problem("rank_order", fmt::format("the axis \"{}\"", name), "tp, cp, ep, dp or pp");
    }
  }
  for (auto axis = order.begin(); axis != order.end(); ++axis) {
    if (std::find(order.begin(), axis, *axis) == axis) continue;
    object.problem("rank_order", fmt::format("the axis \"{}\" twice", name_of(*axis)),
                   "each of tp, cp, ep, dp and pp once, innermost first");
  }
}

void read_layer_split(ObjectReader& object, Plan& plan) {
  if (object.has("stage_layers"))
    plan.stage_layers = object.integers("stage_layers", {0, kMaxDegree});
  plan.embedding_counts_as_layer =
      object.boolean_or("embedding_counts_as_layer", plan.embedding_counts_as_layer);
  plan.head_counts_as_layer = object.boolean_or("head_counts_as_layer", plan.head_counts_as_layer);
}

void check_world(ObjectReader& object, const Plan& plan) {
  if (world_size_in_range(plan)) return;
  object.problem("",
                 fmt::format("dp {} x tp {} x pp {} x cp {}", plan.dp, plan.tp, plan.pp, plan.cp),
                 fmt::format("a product of at most {} ranks", kMaxWorld));
}

nlohmann::ordered_json overlap_json(const OverlapSwitches& overlap) {
  return {{"grad_reduce", overlap.grad_reduce},
          {"param_gather", overlap.param_gather},
          {"tensor_parallel", overlap.tensor_parallel},
          {"p2p", overlap.p2p},
          {"expert_parallel", overlap.expert_parallel},
          {"expert_microbatches", overlap.expert_microbatches}};
}

nlohmann::ordered_json rank_order_json(const std::vector<Axis>& order) {
  auto names = nlohmann::ordered_json::array();
  for (const Axis axis : order) names.push_back(name_of(axis));
  return names;
}

}  // namespace

Plan read_plan(ObjectReader& object) {
  Plan plan;
  read_degrees(object, plan);
  read_batch(object, plan);
  read_sharding(object, plan);
  read_execution(object, plan);
  read_overlap(object, plan.overlap);
  read_rank_order(object, plan.rank_order);
  read_layer_split(object, plan);
  object.refuse_unknown_keys();
  check_world(object, plan);
  return plan;
}

nlohmann::ordered_json to_json(const Plan& plan) {
  return {{"dp", plan.dp},
          {"tp", plan.tp},
          {"pp", plan.pp},
          {"cp", plan.cp},
          {"ep", plan.ep},
          {"expert_tp", plan.expert_tp},
          {"vpp", plan.vpp},
          {"sequence_parallel", plan.sequence_parallel},
          {"zero_stage", plan.zero_stage},
          {"shard_group", plan.shard_group},
          {"micro_batch", plan.micro_batch},
          {"global_batch", plan.global_batch},
          {"seq_len", plan.seq_len},
          {"schedule", name_of(plan.schedule)},
          {"context_parallel", name_of(plan.context_parallel)},
          {"recompute", name_of(plan.recompute)},
          {"recompute_layers", plan.recompute_layers},
          {"precision", name_of(plan.precision)},
          {"overlap", overlap_json(plan.overlap)},
          {"rank_order", rank_order_json(plan.rank_order)},
          {"stage_layers", plan.stage_layers},
          {"embedding_counts_as_layer", plan.embedding_counts_as_layer},
          {"head_counts_as_layer", plan.head_counts_as_layer},
          {"offload_optimizer", name_of(plan.offload_optimizer)},
          {"offload_activations", plan.offload_activations},
          {"multi_token_prediction", plan.multi_token_prediction}};
}

}  // namespace shardwright
