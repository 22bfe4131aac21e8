#include "core/spec/plan_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/spec/field_json.hpp"
#include "core/spec/plan_check.hpp"

namespace shardwright {
namespace {

void describe_number(Plan& plan, std::int64_t Plan::*member, Presence presence, const char* meaning,
                     FieldVisitor& fields) {
  const PlanNumber& number = plan_number(member);
  fields.integer(number.key, plan.*member, {number.least, number.most}, presence, meaning);
}

void describe_overlap(OverlapSwitches& overlap, FieldVisitor& fields) {
  fields.boolean("grad_reduce", overlap.grad_reduce, kOptional,
                 "reduce gradients during the backward pass");
  fields.boolean("param_gather", overlap.param_gather, kOptional,
                 "gather parameters ahead of their use");
  fields.boolean("tensor_parallel", overlap.tensor_parallel, kOptional,
                 "hide tensor-parallel collectives behind their GEMMs");
  fields.boolean("p2p", overlap.p2p, kOptional, "send between stages during compute");
  fields.boolean("expert_parallel", overlap.expert_parallel, kOptional,
                 "hide the all-to-all of experts behind shared experts");
  fields.boolean("expert_microbatches", overlap.expert_microbatches, kOptional,
                 "hide it behind another microbatch, whose backward pass alternates with this "
                 "one's forward pass (Megatron Core: overlap_moe_expert_parallel_comm)");
}

void describe_degrees(Plan& plan, FieldVisitor& fields) {
  describe_number(plan, &Plan::dp, kRequired, "data-parallel degree", fields);
  describe_number(plan, &Plan::tp, kRequired, "tensor-parallel degree", fields);
  describe_number(plan, &Plan::pp, kRequired, "pipeline-parallel degree", fields);
  describe_number(plan, &Plan::cp, kOptional,
                  "context-parallel degree; the world has `dp * tp * pp * cp` ranks", fields);
  describe_number(plan, &Plan::ep, kOptional,
                  "expert-parallel degree, within the `dp * cp * tp` ranks of a stage", fields);
  describe_number(plan, &Plan::expert_tp, kOptional, "tensor-parallel degree inside of experts",
                  fields);
  describe_number(plan, &Plan::vpp, kOptional, "model chunks of a pipeline rank", fields);
}

void describe_batch(Plan& plan, FieldVisitor& fields) {
  describe_number(plan, &Plan::micro_batch, kRequired, "sequences of a microbatch", fields);
  describe_number(plan, &Plan::global_batch, kRequired, "sequences of a step", fields);
  describe_number(plan, &Plan::seq_len, kRequired, "tokens of a sequence", fields);
}

void describe_execution(Plan& plan, FieldVisitor& fields) {
  fields.choice("schedule", plan.schedule, kOptional,
                "pipeline schedule ([schedules](../models/schedules.md))");
  fields.choice("context_parallel", plan.context_parallel, kOptional, "how keys and values move");
  fields.choice("recompute", plan.recompute, kOptional,
                "what the backward pass recomputes "
                "([recomputation](../models/lowering.md#recomputation))");
  fields.choices("recompute_modules", plan.recompute_modules, kOptional,
                 "with selective recomputation, the modules of each layer that run again; empty: "
                 "those that the stack means by it");
  describe_number(plan, &Plan::recompute_layers, kOptional,
                  "with full recomputation, layers of each chunk that are recomputed; 0: all",
                  fields);
  describe_number(plan, &Plan::recompute_interval, kOptional,
                  "with full recomputation, only each layer of a chunk is recomputed whose number, "
                  "from 1, this divides (torchtitan up to 0.2: selective_ac_option)",
                  fields);
  describe_number(plan, &Plan::recompute_group, kOptional,
                  "with full recomputation, layers of which only the input of the first is kept; "
                  "they are recomputed together (Megatron-LM: --recompute-method uniform)",
                  fields);
  fields.choice("precision", plan.precision, kOptional, "number format of matrix products");
}

void describe_lora(Lora& lora, FieldVisitor& fields) {
  fields.integer("rank", lora.rank, {1, kMaxLoraRank}, kRequired, "rank of the adapters");
  fields.number("alpha", lora.alpha, {0.0, 1e6, false}, kOptional,
                "`alpha / rank` scales what an adapter adds; it costs nothing");
  fields.choices("targets", lora.targets, kOptional,
                 "projections with adapters: of attention, and of feed-forward blocks and experts; "
                 "empty: all that the model has");
  fields.boolean("joint", lora.joint, kOptional,
                 "one adapter for `q`, `k` and `v`, and one for `gate` and `up`, as Megatron "
                 "Bridge's LoRA has them; else each has its own");
  fields.choice("base", lora.base, kOptional,
                "format of the frozen weights of these and all other projections of the layers");
}

void describe_servers(ReplicaAgreement& replicas, FieldVisitor& fields) {
  fields.integer(
      "servers", replicas.servers, {0, kMaxDegree}, kOptional,
      "server processes, each with an equal part of the parameters; 0: one for each node "
      "of the workers");
  fields.choice("server_place", replicas.server_place, kOptional,
                "`colocated`: on the nodes of the workers; `dedicated`: on nodes of the cluster "
                "beside these, one process each");
  fields.choice("server_updates", replicas.server_updates, kOptional,
                "`synchronous`: servers apply the sum of all replicas once in a step; "
                "`bounded-staleness`: each replica's gradients as they come, and none runs further "
                "ahead of the slowest than `staleness`; `asynchronous`: none waits for another");
  fields.only_where("server_updates", replicas.server_updates, {ServerUpdates::BoundedStaleness},
                    [&] {
                      fields.integer("staleness", replicas.staleness, {0, kMaxStaleness}, kOptional,
                                     "steps that a replica may be ahead of the slowest one; 0 is "
                                     "synchronous");
                    });
}

void describe_fragments(ReplicaAgreement& replicas, FieldVisitor& fields) {
  fields.integer("fragments", replicas.fragments, {1, kMaxDegree}, kOmissible,
                 "parts of each stage's layers that are exchanged one after another, each once in "
                 "`inner_steps` (Streaming DiLoCo)");
  fields.choice("fragment_order", replicas.fragment_order, kOmissible,
                "`sequential`: a fragment has neighbouring layers; `strided`: layers at equal "
                "distances");
  fields.integer("overlap_steps", replicas.overlap_steps, {0, kMaxInnerSteps}, kOmissible,
                 "steps that replicas make beside the exchange of a fragment before they take over "
                 "its outcome");
  fields.number(
      "local_share", replicas.local_share, {0.0, 1.0, false}, kOmissible,
      "weight of a replica's own parameters in those that it goes on with; the outcome of "
      "the exchange has the rest");
}

void describe_replicas(ReplicaAgreement& replicas, FieldVisitor& fields) {
  fields.choice(
      "sync", replicas.sync, kOptional,
      "`all-reduce`: each step applies the gradients of all replicas; `local-steps`: "
      "replicas make steps of their own and agree every `inner_steps`; `parameter-server`: "
      "they push gradients to servers and pull parameters. Replicas are the data-parallel "
      "ranks, or with ZeRO the shard groups");
  fields.only_where("sync", replicas.sync, {ReplicaSync::LocalSteps}, [&] {
    fields.integer("inner_steps", replicas.inner_steps, {1, kMaxInnerSteps}, kOptional,
                   "steps of a replica between two exchanges");
    fields.choice("outer", replicas.outer, kOptional,
                  "`average`: replicas take the mean of their parameters; `nesterov`: an outer "
                  "optimizer takes their mean change as its gradient (DiLoCo)");
    fields.number("outer_learning_rate", replicas.outer_learning_rate, {0.0, 10.0, true}, kOptional,
                  "learning rate of the outer optimizer");
    fields.number("outer_momentum", replicas.outer_momentum, {0.0, 1.0, false}, kOptional,
                  "its momentum");
    describe_fragments(replicas, fields);
  });
  fields.only_where("sync", replicas.sync, {ReplicaSync::ParameterServer},
                    [&] { describe_servers(replicas, fields); });
  fields.choice("compression", replicas.compression, kOptional,
                "form in which replicas send gradients, or the outcome of local steps");
  fields.only_where("compression", replicas.compression, {ReplicaCompression::TopK}, [&] {
    fields.number("topk_ratio", replicas.topk_ratio, {0.0, 1.0, true}, kOptional,
                  "share of the elements that are sent");
  });
  fields.only_where("compression", replicas.compression, {ReplicaCompression::PowerSgd}, [&] {
    fields.integer("powersgd_rank", replicas.powersgd_rank, {1, kMaxLoraRank}, kOptional,
                   "columns of the two thin matrices");
  });
}

void describe_data_parallel(Plan& plan, FieldVisitor& fields) {
  std::optional<ReplicaAgreement> stated;
  if (plan.replicas != ReplicaAgreement()) stated = plan.replicas;
  fields.optional_section("data_parallel", stated,
                          "how replicas agree ([model](../models/replicas.md)); without it by an "
                          "all-reduce of the gradients in each step",
                          [&](ReplicaAgreement& replicas) { describe_replicas(replicas, fields); });
  plan.replicas = stated.value_or(ReplicaAgreement());
}

void describe_pool_replicas(PoolReplicas& part, FieldVisitor& fields) {
  fields.text("pool", part.pool, kOmissible,
              "name of a pool of the cluster or, for its first pool, of the cluster");
  fields.texts("stage_pools", part.stage_pools, kOmissible,
               "in place of `pool`, the pool of each of the `pp` stages");
  fields.integer("replicas", part.replicas, {1, kMaxDegree}, kRequired, "replicas of this part");
  fields.integer("microbatches", part.microbatches, {1, kMaxBatch}, kRequired,
                 "microbatches that each of them runs in a step");
  fields.integer("experts", part.experts, {0, kMaxDegree}, kOmissible,
                 "where groups of experts span several parts, the routed experts that each of "
                 "their ranks holds ([model](../models/pools.md#experts)); 0: all as many");
}

void check_rank_order(ObjectReader& object, const std::vector<Axis>& order) {
  for (auto axis = order.begin(); axis != order.end(); ++axis) {
    if (std::find(order.begin(), axis, *axis) == axis) continue;
    object.problem("rank_order", fmt::format("the axis \"{}\" twice", name_of(*axis)),
                   "each of tp, cp, ep, dp and pp once, innermost first");
  }
}

void check_world(ObjectReader& object, const Plan& plan) {
  if (world_size_in_range(plan)) return;
  object.problem("",
                 fmt::format("dp {} x tp {} x pp {} x cp {}", plan.dp, plan.tp, plan.pp, plan.cp),
                 fmt::format("a product of at most {} ranks", kMaxWorld));
}

}  // namespace

void describe(Plan& plan, FieldVisitor& fields) {
  describe_degrees(plan, fields);
  fields.boolean("sequence_parallel", plan.sequence_parallel, kOptional,
                 "split activations outside of the tensor-parallel GEMMs along the sequence");
  fields.integer("zero_stage", plan.zero_stage, {0, 3}, kOptional,
                 "ZeRO stage: 0 replicates; 1 splits optimizer states; 2 also gradients; 3 also "
                 "parameters (FSDP)");
  describe_number(plan, &Plan::shard_group, kOptional,
                  "hybrid sharding: ranks that share one copy of the states; 0: all data-parallel "
                  "ranks",
                  fields);
  describe_data_parallel(plan, fields);
  describe_batch(plan, fields);
  describe_execution(plan, fields);
  fields.section("overlap", kOptional,
                 "overlap that the plan allows and the stack must be able to do. Gathers and "
                 "reductions of ZeRO-3 overlap under every stack. Where a plan file leaves out "
                 "`tensor_parallel` or `expert_parallel`, they are as the stack usually runs them; "
                 "measurements state them",
                 [&] { describe_overlap(plan.overlap, fields); });
  fields.choices("rank_order", plan.rank_order, kOptional,
                 "nesting of the axes, innermost first, each once");
  fields.integers("stage_layers", plan.stage_layers, {0, kMaxDegree}, kOptional,
                  "layers of each of the `pp * vpp` chunks in the order of the forward pass; "
                  "empty: as even as possible, the first chunks taking the remainder");
  fields.integers("stage_recompute_layers", plan.stage_recompute_layers, {0, kMaxDegree},
                  kOmissible,
                  "with full recomputation, for each of the `pp` stages the layers of each of its "
                  "chunks that are recomputed, the first ones; empty: as `recompute_layers` says");
  fields.texts("stage_pools", plan.stage_pools, kOmissible,
               "pool of each of the `pp` stages, by the name of a pool of the cluster or, for its "
               "first pool, of the cluster; empty: all stages lie on the first pool");
  fields.list("replica_pools", plan.replica_pools, kOmissible,
              "pools of the `dp` replicas, in the order of the ranks "
              "([model](../models/pools.md#replicas)); empty: all lie on the first pool, or as "
              "`stage_pools` says",
              [&](PoolReplicas& part) { describe_pool_replicas(part, fields); });
  fields.boolean("embedding_counts_as_layer", plan.embedding_counts_as_layer, kOptional,
                 "the even split counts the embedding as a layer");
  fields.boolean("head_counts_as_layer", plan.head_counts_as_layer, kOptional,
                 "the even split counts the output head as a layer");
  fields.choice("optimizer_states", plan.optimizer_states, kOptional,
                "formats of Adam's moments, and with a pure one of gradients and without master "
                "weights ([states](../models/memory.md#states)); of-stack: as the stack's profile "
                "has them");
  fields.choice("offload_optimizer", plan.offload_optimizer, kOptional,
                "where optimizer states lie, and with them the step of the optimizer "
                "([model](../models/memory_bound_kernels.md#optimizer-on-the-host)); earlier plans "
                "say false or true");
  fields.boolean("offload_activations", plan.offload_activations, kOptional,
                 "activations wait in host memory "
                 "([model](../models/lowering.md#offload-of-activations))");
  fields.choices("offload_modules", plan.offload_modules, kOptional,
                 "with offloaded activations, the modules of each layer whose inputs wait there; "
                 "empty: all that a layer keeps");
  describe_number(plan, &Plan::offload_layers, kOptional,
                  "with offloaded activations, layers of each chunk whose activations wait there; "
                  "0: all",
                  fields);
  fields.number("offload_ratio", plan.offload_ratio, {0.0, 1.0, false}, kOptional,
                "share of a layer's activations that does, in whole tensors");
  fields.boolean("multi_token_prediction", plan.multi_token_prediction, kOptional,
                 "train the layers of the model that predict further tokens");
  fields.optional_section("lora", plan.lora,
                          "low-rank fine-tuning: train adapters alone, and no layers that predict "
                          "further tokens ([model](../models/lora.md))",
                          [&](Lora& lora) { describe_lora(lora, fields); });
}

Plan read_plan(ObjectReader& object, Plan plan) {
  const nlohmann::json& offload = object.raw("offload_optimizer");
  if (offload.is_boolean()) {
    // Earlier plans say whether the states lie on the host.
    nlohmann::json document = object.value();
    document["offload_optimizer"] =
        name_of(offload == true ? OptimizerOffload::Host : OptimizerOffload::None);
    ObjectReader now(document, object.pointer(), object.problems());
    return read_plan(now, std::move(plan));
  }
  read_fields(object, [&](FieldVisitor& fields) { describe(plan, fields); });
  check_rank_order(object, plan.rank_order);
  check_world(object, plan);
  return plan;
}

Plan read_plan_of(ObjectReader& object, const ModelSpec& model, const StackSpec& stack) {
  Plan usual;
  usual.overlap = usual_overlap(stack, model);
  // One or the other hides the exchange of tokens.
  const nlohmann::json& overlap = object.raw("overlap");
  if (overlap.is_object() && overlap.value("expert_microbatches", nlohmann::json()) == true)
    usual.overlap.expert_parallel = false;
  Plan plan = read_plan(object, std::move(usual));
  const auto stated = [&](const char* key) { return object.value().contains(key); };
  const bool more = plan.chunks() > model.layers && plan.chunks() <= model.layers + 2;
  if (more && !stated("stage_layers") && !stated("embedding_counts_as_layer") &&
      !stated("head_counts_as_layer"))
    plan.embedding_counts_as_layer = plan.head_counts_as_layer = true;
  return plan;
}

Lora read_lora(ObjectReader& object) {
  Lora lora;
  read_fields(object, [&](FieldVisitor& fields) { describe_lora(lora, fields); });
  return lora;
}

nlohmann::ordered_json to_json(const Plan& plan) {
  return write_spec(plan);
}

}  // namespace shardwright
