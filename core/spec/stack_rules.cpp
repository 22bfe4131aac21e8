// The capabilities of a stack's framework: one line for each.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/spec/adapters.hpp"
#include "core/spec/plan_rules.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright {
namespace {

template <class T>
bool runs(const std::vector<T>& listed, const T& wanted) {
  return listed.empty() || std::ranges::find(listed, wanted) != listed.end();
}

template <class E>
std::string names(const std::vector<E>& listed) {
  std::vector<const char*> all;
  for (const E each : listed) all.push_back(name_of(each));
  return fmt::format("{}", fmt::join(all, ", "));
}

// A plan on a stack.
struct Pair {
  const StackCapabilities& stack;
  const ModelSpec& model;
  const Plan& plan;
};

// Combinations of axes

std::int64_t ranks_along(const Plan& plan, Axis axis) {
  if (axis == Axis::Pipeline) return plan.pp;
  return axis == Axis::Expert ? plan.ep : dense_degree(plan, axis);
}

bool allows(const AxisCombination& combination, const Plan& plan) {
  const bool applies =
      std::ranges::all_of(combination.axes, [&](Axis axis) { return ranks_along(plan, axis) > 1; });
  return !applies || std::ranges::find(combination.zero_stages, plan.zero_stage) !=
                         combination.zero_stages.end();
}

const AxisCombination* broken_combination(const Pair& p) {
  for (const AxisCombination& each : p.stack.combinations) {
    if (!allows(each, p.plan)) return &each;
  }
  return nullptr;
}

bool combinations_hold(const Pair& p) {
  return broken_combination(p) == nullptr;
}

std::string say_combination(const Pair& p) {
  const AxisCombination& broken = *broken_combination(p);
  const std::string axes = names(broken.axes);
  if (broken.zero_stages.empty()) return fmt::format("does not run {} above 1 together", axes);
  return fmt::format("does not run ZeRO stage {} with {} above 1 (it runs {})", p.plan.zero_stage,
                     axes, fmt::join(broken.zero_stages, ", "));
}

// Context, tensor and expert parallelism

bool context_kind_holds(const Pair& p) {
  return p.plan.cp == 1 || runs(p.stack.context_parallel, p.plan.context_parallel);
}

std::string say_context_kind(const Pair& p) {
  return fmt::format("does not run context parallelism by {} (it runs {})",
                     name_of(p.plan.context_parallel), names(p.stack.context_parallel));
}

bool sequence_parallel_holds(const Pair& p) {
  return p.stack.sequence_parallel || p.plan.tp == 1 || !p.plan.sequence_parallel;
}

std::string say_sequence_parallel(const Pair&) {
  return "does not run sequence parallelism";
}

bool kv_heads_hold(const Pair& p) {
  return p.stack.replicated_kv_heads || p.model.attention.kv_heads % p.plan.tp == 0 ||
         p.model.attention.kind == AttentionKind::MultiHeadLatent;
}

std::string say_kv_heads(const Pair& p) {
  return fmt::format("does not replicate the {} key/value heads over tp {}",
                     p.model.attention.kv_heads, p.plan.tp);
}

bool ulysses_kv_heads_hold(const Pair& p) {
  return p.stack.ulysses_replicates_kv_heads || p.plan.cp == 1 ||
         p.plan.context_parallel != ContextParallelKind::Ulysses ||
         p.model.attention.kv_heads % (p.plan.tp * p.plan.cp) == 0;
}

std::string say_ulysses_kv_heads(const Pair& p) {
  return fmt::format("does not replicate the {} key/value heads over tp {} x cp {} with Ulysses",
                     p.model.attention.kv_heads, p.plan.tp, p.plan.cp);
}

bool expert_tensor_holds(const Pair& p) {
  return p.stack.expert_tensor_parallel || !p.model.moe ||
         p.plan.expert_tp == (p.plan.ep == 1 ? p.plan.tp : 1);
}

std::string say_expert_tensor(const Pair& p) {
  return fmt::format("runs experts with expert_tp {} under tp {} and ep {}, not {}",
                     p.plan.ep == 1 ? p.plan.tp : 1, p.plan.tp, p.plan.ep, p.plan.expert_tp);
}

// Sharding and the order of ranks

// The ranks of a shard group; with ZeRO-0 those of context parallelism alone.
std::int64_t shard_ranks(const Plan& plan) {
  if (plan.zero_stage == 0) return plan.cp;
  return plan.shard_group == 0 ? plan.dp * plan.cp : plan.shard_group;
}

bool hybrid_sharding_holds(const Pair& p) {
  return p.stack.hybrid_sharding || p.plan.zero_stage == 0 ||
         shard_ranks(p.plan) >= p.plan.dp * p.plan.cp;
}

std::string say_hybrid_sharding(const Pair&) {
  return "shards over all data-parallel ranks only";
}

bool shard_groups_hold(const Pair& p) {
  const std::int64_t ranks = shard_ranks(p.plan);
  return std::ranges::all_of(p.stack.within_shard_group, [&](Axis axis) {
    return divides(ranks_along(p.plan, axis), axis == Axis::Expert ? ranks * p.plan.tp : ranks);
  });
}

std::string say_shard_groups(const Pair& p) {
  return fmt::format("runs {} within a shard group, which has {} ranks",
                     names(p.stack.within_shard_group), shard_ranks(p.plan));
}

bool replicas_capability_holds(const Pair& p) {
  return runs(p.stack.sync, p.plan.replicas.sync) &&
         runs(p.stack.compression, p.plan.replicas.compression);
}

std::string say_replicas(const Pair& p) {
  const ReplicaAgreement& replicas = p.plan.replicas;
  if (!runs(p.stack.sync, replicas.sync))
    return fmt::format("does not run {} (its replicas agree by {})", name_of(replicas.sync),
                       names(p.stack.sync));
  return fmt::format("does not send {} between replicas (it sends {})",
                     name_of(replicas.compression), names(p.stack.compression));
}

bool rank_order_holds(const Pair& p) {
  return p.stack.pipeline_inside_data || p.plan.pp == 1 || p.plan.dp == 1 ||
         p.plan.rank_order.back() == Axis::Pipeline;
}

std::string say_rank_order(const Pair&) {
  return "numbers pipeline ranks last";
}

// Pipelines

bool embedding_holds(const Pair& p) {
  return p.stack.shared_embedding_in_pipeline || p.plan.pp == 1 ||
         !shares_embedding(p.model, p.plan);
}

std::string say_embedding(const Pair& p) {
  return fmt::format("does not run {} in a pipeline",
                     p.model.tied_embeddings ? "tied embeddings" : "multi-token prediction");
}

// True if the chunks are the even split of `layers` with so many fewer at the ends, the first
// chunks taking the remainder.
bool splits_as(const std::vector<std::int64_t>& counts, std::int64_t layers, FewerLayers fewer) {
  const auto chunks = static_cast<std::int64_t>(counts.size());
  const std::int64_t units = layers + fewer.first + fewer.last;
  const std::int64_t least = units / chunks, more = units % chunks;
  if (least == 0 || fewer.first > least || fewer.last > least) return false;
  for (std::int64_t i = 0; i < chunks; ++i) {
    std::int64_t count = least + (i < more ? 1 : 0);
    if (i == 0) count -= fewer.first;
    if (i + 1 == chunks) count -= fewer.last;
    if (counts[static_cast<std::size_t>(i)] != count) return false;
  }
  return true;
}

bool layer_split_holds(const Pair& p) {
  if (p.stack.layer_splits == LayerSplits::Any || p.plan.pp == 1) return true;
  const auto fewer = fewer_layers_at_ends(p.model, p.plan);
  if (!fewer) return false;
  if (p.plan.vpp <= 2) return true;
  const std::int64_t units = p.model.layers + fewer->first + fewer->last;
  const std::int64_t each = p.plan.even_chunk(units);
  return (units + each - 1) / each == p.plan.chunks();
}

std::string say_layer_split(const Pair& p) {
  return fmt::format("does not split the {} layers into {} chunks like that", p.model.layers,
                     p.plan.chunks());
}

// Memory and number formats

bool partial_recompute_holds(const Pair& p) {
  return p.stack.partial_recompute || p.plan.recompute_layers == 0;
}

std::string say_partial_recompute(const Pair&) {
  return "recomputes all layers or none";
}

bool recompute_by_stage_holds(const Pair& p) {
  return p.stack.recompute_by_stage || p.plan.stage_recompute_layers.empty();
}

std::string say_recompute_by_stage(const Pair&) {
  return "recomputes as many layers on each stage";
}

bool recompute_interval_holds(const Pair& p) {
  return p.stack.recompute_interval || p.plan.recompute_interval == 1;
}

std::string say_recompute_interval(const Pair& p) {
  return fmt::format("does not recompute 1 of {} layers", p.plan.recompute_interval);
}

// Megatron Core recomputes further layers one by one (multi_token_prediction.py).
bool recompute_group_holds(const Pair& p) {
  return p.plan.recompute_group == 1 ||
         (p.stack.recompute_group && trained_mtp_layers(p.model, p.plan) == 0);
}

std::string say_recompute_group(const Pair& p) {
  return fmt::format("does not recompute {} layers at a time{}", p.plan.recompute_group,
                     p.stack.recompute_group ? " with multi-token prediction" : "");
}

// Megatron Core refuses to recompute shared experts that overlap the exchange of tokens
// (transformer_config.py).
bool shared_experts_hold(const Pair& p, RecomputeModuleSet modules) {
  return !modules.contains(RecomputeModule::SharedExperts) || !p.plan.overlap.expert_parallel;
}

bool modules_capability_holds(const Pair& p) {
  const RecomputeModuleSet modules = recomputed_modules(p.stack, p.plan);
  return p.stack.recompute_modules.contains_all(modules) && shared_experts_hold(p, modules);
}

std::string say_recompute_modules(const Pair& p) {
  const RecomputeModuleSet modules = recomputed_modules(p.stack, p.plan);
  if (!shared_experts_hold(p, modules))
    return "does not recompute shared experts that overlap the exchange of tokens";
  return fmt::format("does not recompute {} alone (it recomputes {})", names_of(modules),
                     names_of(p.stack.recompute_modules));
}

bool offload_modules_hold(const Pair& p) {
  return p.stack.offload_modules.contains_all(p.plan.offload_modules);
}

std::string say_offload_modules(const Pair& p) {
  if (p.stack.offload_modules.empty()) return "does not offload the inputs of single modules";
  return fmt::format("does not offload the inputs of {} alone (it offloads those of {})",
                     names_of(p.plan.offload_modules), names_of(p.stack.offload_modules));
}

bool states_capability_holds(const Pair& p) {
  const OptimizerStates states = p.plan.optimizer_states;
  if (states == OptimizerStates::OfStack) return true;
  return runs(p.stack.optimizer_states, states) &&
         (!is_narrow(states) || p.plan.zero_stage >= p.stack.narrow_states_zero_stage);
}

std::string say_optimizer_states(const Pair& p) {
  const OptimizerStates states = p.plan.optimizer_states;
  if (runs(p.stack.optimizer_states, states))
    return fmt::format("keeps optimizer states as {} from ZeRO stage {} on, not at {}",
                       name_of(states), p.stack.narrow_states_zero_stage, p.plan.zero_stage);
  return fmt::format("does not keep optimizer states as {} (it keeps them as {})", name_of(states),
                     names(p.stack.optimizer_states));
}

// Adapters

enum class LoraGap : std::uint8_t {
  None,
  Lora,
  Targets,
  KeysAlone,
  Experts,
  Joint,
  Separate,
  Base
};

LoraGap lora_gap(const StackCapabilities& stack, const ModelSpec& model, const Lora& lora) {
  using enum LoraTarget;
  if (!stack.lora) return LoraGap::Lora;
  const LoraCapability& trains = *stack.lora;
  const LoraTargetSet chosen = chosen_targets(model, lora);
  if (!trains.targets.contains_all(chosen)) return LoraGap::Targets;
  if (trains.keys_with_values && chosen.contains(K) != chosen.contains(V))
    return LoraGap::KeysAlone;
  if (!trains.experts && adapts_experts(model, lora)) return LoraGap::Experts;
  if (lora.joint && !trains.joint) return LoraGap::Joint;
  if (!lora.joint && !trains.separate) return LoraGap::Separate;
  return runs(trains.base, lora.base) ? LoraGap::None : LoraGap::Base;
}

std::string say_lora_gap(const StackCapabilities& stack, const ModelSpec& model, const Lora& lora) {
  switch (lora_gap(stack, model, lora)) {
    case LoraGap::None:
      break;
    case LoraGap::Lora:
      return "trains no adapters (LoRA)";
    case LoraGap::Targets:
      return fmt::format("does not add adapters to {} (it adds them to {})",
                         names_of(chosen_targets(model, lora)), names_of(stack.lora->targets));
    case LoraGap::KeysAlone:
      return "adds adapters to both of k and v or to neither";
    case LoraGap::Experts:
      return "does not add adapters to routed experts, whose projections are gate, up and down, "
             "too";
    case LoraGap::Joint:
      return "gives each projection an adapter of its own, not joint ones";
    case LoraGap::Separate:
      return "adds joint adapters only";
    case LoraGap::Base:
      return fmt::format("does not train adapters beside weights in {} (it does in {})",
                         name_of(lora.base), names(stack.lora->base));
  }
  return "";
}

bool lora_capability_holds(const Pair& p) {
  return !p.plan.lora || lora_gap(p.stack, p.model, *p.plan.lora) == LoraGap::None;
}

std::string say_lora_capability(const Pair& p) {
  return say_lora_gap(p.stack, p.model, *p.plan.lora);
}

// Offload and number formats

bool offload_holds(const Pair& p) {
  if (p.stack.offload_optimizer.empty()) return true;
  const OptimizerOffload place = p.plan.offload_optimizer;
  const int least = place == OptimizerOffload::Nvme ? 3 : place == OptimizerOffload::Host ? 1 : 0;
  return runs(p.stack.offload_optimizer, place) && p.plan.zero_stage >= least;
}

std::string say_offload(const Pair& p) {
  return fmt::format("does not offload the optimizer ({}) at ZeRO stage {}",
                     name_of(p.plan.offload_optimizer), p.plan.zero_stage);
}

bool precision_holds(const Pair& p) {
  return runs(p.stack.precisions, p.plan.precision);
}

std::string say_precision(const Pair& p) {
  return fmt::format("does not train in {} (it trains in {})", name_of(p.plan.precision),
                     names(p.stack.precisions));
}

struct Capability {
  // Called by the search: no strings, no allocation.
  bool (*holds)(const Pair& pair);
  // Ends the sentence "STACK …".
  std::string (*say)(const Pair& pair);
};

constexpr std::array kCapabilities = {
    Capability{combinations_hold, say_combination},
    Capability{context_kind_holds, say_context_kind},
    Capability{sequence_parallel_holds, say_sequence_parallel},
    Capability{kv_heads_hold, say_kv_heads},
    Capability{ulysses_kv_heads_hold, say_ulysses_kv_heads},
    Capability{expert_tensor_holds, say_expert_tensor},
    Capability{hybrid_sharding_holds, say_hybrid_sharding},
    Capability{shard_groups_hold, say_shard_groups},
    Capability{replicas_capability_holds, say_replicas},
    Capability{rank_order_holds, say_rank_order},
    Capability{embedding_holds, say_embedding},
    Capability{layer_split_holds, say_layer_split},
    Capability{partial_recompute_holds, say_partial_recompute},
    Capability{recompute_by_stage_holds, say_recompute_by_stage},
    Capability{recompute_interval_holds, say_recompute_interval},
    Capability{recompute_group_holds, say_recompute_group},
    Capability{modules_capability_holds, say_recompute_modules},
    Capability{offload_modules_hold, say_offload_modules},
    Capability{states_capability_holds, say_optimizer_states},
    Capability{offload_holds, say_offload},
    Capability{precision_holds, say_precision},
    Capability{lora_capability_holds, say_lora_capability},
};

}  // namespace

// An even split that counts an end as a layer leaves it one layer fewer.
std::optional<FewerLayers> fewer_layers_at_ends(const ModelSpec& model, const Plan& plan) {
  if (plan.stage_layers.empty()) {
    const FewerLayers fewer{plan.embedding_counts_as_layer ? 1 : 0,
                            plan.head_counts_as_layer ? 1 : 0};
    return model.layers + fewer.first + fewer.last >= plan.chunks() ? std::optional(fewer)
                                                                    : std::nullopt;
  }
  for (std::int64_t first = 0; first <= kMostFewerLayers; ++first) {
    for (std::int64_t last = 0; last <= kMostFewerLayers; ++last) {
      if (splits_as(plan.stage_layers, model.layers, {first, last}))
        return FewerLayers{first, last};
    }
  }
  return std::nullopt;
}

bool stack_holds(const PlanSubject& s) {
  if (s.stack == nullptr) return true;
  const Pair pair{s.stack->capabilities, s.model, s.plan};
  return std::ranges::all_of(kCapabilities,
                             [&](const Capability& each) { return each.holds(pair); });
}

Problem stack_problem(const PlanSubject& s) {
  return {"", fmt::format("a plan that {} does not run", s.stack->name),
          unsupported_by(*s.stack, s.model, s.plan).front()};
}

std::string adapters_refused_by(const StackSpec& stack, const ModelSpec& model, const Lora& lora) {
  return say_lora_gap(stack.capabilities, model, lora);
}

std::vector<std::string> unsupported_by(const StackSpec& stack, const ModelSpec& model,
                                        const Plan& plan) {
  std::vector<std::string> sentences;
  const auto add = [&](const std::string& said) { sentences.push_back(stack.name + " " + said); };
  if (plan.pp > 1 && !runs(stack.schedules, plan.schedule)) {
    add(fmt::format("does not run the schedule {} (it runs {})", name_of(plan.schedule),
                    names(stack.schedules)));
  }
  if (!runs(stack.zero_stages, plan.zero_stage)) {
    add(fmt::format("does not run ZeRO stage {} (it runs {})", plan.zero_stage,
                    fmt::join(stack.zero_stages, ", ")));
  }
  if (!runs(stack.recompute, plan.recompute)) {
    add(fmt::format("does not run the recomputation {} (it runs {})", name_of(plan.recompute),
                    names(stack.recompute)));
  }
  const bool gathers = plan.context_parallel == ContextParallelKind::AllGather;
  if (plan.cp > 1 && !stack.fusion.flash_attention && !gathers) {
    add(fmt::format(
        "does not fuse attention: context parallelism gathers keys and values, whatever "
        "the plan says ({})",
        name_of(plan.context_parallel)));
  }
  const Pair pair{stack.capabilities, model, plan};
  for (const Capability& each : kCapabilities) {
    if (!each.holds(pair)) add(each.say(pair));
  }
  return sentences;
}

}  // namespace shardwright
