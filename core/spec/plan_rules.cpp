#include "core/spec/plan_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "core/schedule/pipeline_schedule.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/rank_nesting.hpp"

namespace shardwright {
namespace {

std::string multiple_of(std::int64_t divisor, const char* what) {
  return fmt::format("a multiple of {} ({})", divisor, what);
}

// Range

// The number that is out of its range; null if there is none.
const PlanNumber* out_of_range(const Plan& plan) {
  const auto* found =
      std::find_if(kPlanNumbers.begin(), kPlanNumbers.end(), [&](const PlanNumber& number) {
        return !within(plan.*number.member, number.least, number.most);
      });
  return found == kPlanNumbers.end() ? nullptr : found;
}

bool lora_rank_holds(const Plan& plan) {
  return !plan.lora || within(plan.lora->rank, 1, kMaxLoraRank);
}

bool range_holds(const PlanSubject& s) {
  return out_of_range(s.plan) == nullptr && lora_rank_holds(s.plan) && world_size_in_range(s.plan);
}

Problem range_problem(const PlanSubject& s) {
  const auto problem = [](const char* key, std::int64_t value, std::int64_t least,
                          std::int64_t most) {
    return Problem{fmt::format("/{}", key), fmt::format("{}", value),
                   fmt::format("an integer from {} to {}", least, most)};
  };
  if (const PlanNumber* number = out_of_range(s.plan))
    return problem(number->key, s.plan.*number->member, number->least, number->most);
  if (!lora_rank_holds(s.plan)) return problem("lora/rank", s.plan.lora->rank, 1, kMaxLoraRank);
  return {"",
          fmt::format("dp {} x tp {} x pp {} x cp {}", s.plan.dp, s.plan.tp, s.plan.pp, s.plan.cp),
          fmt::format("a product of at most {} ranks", kMaxWorld)};
}

// Ranks

std::string product_of_degrees(const Plan& plan) {
  return fmt::format("dp {} x tp {} x pp {} x cp {} = {} ranks", plan.dp, plan.tp, plan.pp, plan.cp,
                     plan.world_size());
}

bool world_size_holds(const PlanSubject& s) {
  return s.accelerators == 0 || s.plan.world_size() == s.accelerators;
}

Problem world_size_problem(const PlanSubject& s) {
  return {"", product_of_degrees(s.plan), fmt::format("{} ranks", s.accelerators)};
}

// The rules of stage_pools and replica_pools look at the size and the formats of each pool.
bool on_first_pool(const PlanSubject& s) {
  return !names_pools(s.plan);
}

bool cluster_size_holds(const PlanSubject& s) {
  if (s.cluster == nullptr || !on_first_pool(s)) return true;
  const auto most = s.cluster->most_accelerators();
  return !most || s.plan.world_size() <= *most;
}

Problem cluster_size_problem(const PlanSubject& s) {
  const std::int64_t most = s.cluster->most_accelerators().value_or(0);
  const std::int64_t node = s.cluster->accelerators_per_node();
  return {"", product_of_degrees(s.plan),
          fmt::format("at most {}: the cluster {} {} nodes of {} accelerators", most,
                      s.cluster->nodes > 0 ? "has" : "can join", most / node, node)};
}

bool precision_holds(const PlanSubject& s) {
  return s.cluster == nullptr || !on_first_pool(s) ||
         s.cluster->accelerator.matrix.of(s.plan.precision) > FlopPerSecond(0);
}

Problem precision_problem(const PlanSubject& s) {
  const AcceleratorSpec& accelerator = s.cluster->accelerator;
  std::string formats;
  for (const Precision precision : kPrecisions) {
    if (accelerator.matrix.of(precision) > FlopPerSecond(0))
      formats += fmt::format("{}{}", formats.empty() ? "" : ", ", name_of(precision));
  }
  return {
      "/precision", name_of(s.plan.precision),
      fmt::format("a format that the accelerator {} multiplies in: {}", accelerator.name, formats)};
}

// Tensor parallelism

// The heads of linear attention, whose keys are split as its values are, and which context-parallel
// ranks share out for the recurrence.
bool linear_heads_hold(const PlanSubject& s) {
  if (!s.model.linear_attention) return true;
  const LinearAttentionSpec& linear = *s.model.linear_attention;
  return divides(s.plan.tp, linear.key_heads) && divides(s.plan.tp * s.plan.cp, linear.heads);
}

bool heads_hold(const PlanSubject& s) {
  return divides(s.plan.tp, s.model.attention.heads) && linear_heads_hold(s);
}

Problem heads_problem(const PlanSubject& s) {
  if (!linear_heads_hold(s)) {
    return {"/tp", fmt::format("tp {}, cp {}", s.plan.tp, s.plan.cp),
            fmt::format("tp that divides the {} key heads of linear attention, and tp x cp that "
                        "divides its {} heads",
                        s.model.linear_attention->key_heads, s.model.linear_attention->heads)};
  }
  return {"/tp", fmt::format("{}", s.plan.tp),
          fmt::format("a divisor of the {} attention heads", s.model.attention.heads)};
}

// Heads may be split over the ranks, or each head be replicated on equally many of them.
bool splits_or_replicates(std::int64_t kv_heads, std::int64_t ranks) {
  return divides(ranks, kv_heads) || divides(kv_heads, ranks);
}

bool kv_heads_hold(const PlanSubject& s) {
  return splits_or_replicates(s.model.attention.kv_heads, s.plan.tp);
}

Problem kv_heads_problem(const PlanSubject& s) {
  return {
      "/tp", fmt::format("{}", s.plan.tp),
      fmt::format("a divisor or a multiple of the {} key/value heads", s.model.attention.kv_heads)};
}

bool ffn_hidden_holds(const PlanSubject& s) {
  if (s.plan.tp == 1) return true;
  return (!has_dense_layers(s.model) || divides(s.plan.tp, s.model.mlp.ffn_hidden)) &&
         (!s.model.moe || divides(s.plan.tp, s.model.moe->shared_expert_ffn));
}

Problem ffn_hidden_problem(const PlanSubject& s) {
  const bool dense = has_dense_layers(s.model) && !divides(s.plan.tp, s.model.mlp.ffn_hidden);
  return {"/tp", fmt::format("{}", s.plan.tp),
          fmt::format("a divisor of the {} width {}", dense ? "feed-forward" : "shared experts'",
                      dense ? s.model.mlp.ffn_hidden : s.model.moe->shared_expert_ffn)};
}

// Expert parallelism

bool expert_parallel_holds(const PlanSubject& s) {
  return s.model.moe.has_value() || (s.plan.ep == 1 && s.plan.expert_tp == 1);
}

Problem expert_parallel_problem(const PlanSubject& s) {
  return {s.plan.ep == 1 ? "/expert_tp" : "/ep",
          fmt::format("{}", s.plan.ep == 1 ? s.plan.expert_tp : s.plan.ep),
          fmt::format("1: the model {} has no experts", s.model.name)};
}

bool experts_hold(const PlanSubject& s) {
  return !s.model.moe || numbers_experts(s.plan) || divides(s.plan.ep, s.model.moe->experts);
}

Problem experts_problem(const PlanSubject& s) {
  return {"/ep", fmt::format("{}", s.plan.ep),
          fmt::format("a divisor of the {} experts", s.model.moe->experts)};
}

bool expert_ffn_holds(const PlanSubject& s) {
  return !s.model.moe || divides(s.plan.expert_tp, s.model.moe->expert_ffn);
}

Problem expert_ffn_problem(const PlanSubject& s) {
  return {"/expert_tp", fmt::format("{}", s.plan.expert_tp),
          fmt::format("a divisor of the experts' width {}", s.model.moe->expert_ffn)};
}

// The ranks of one stage, over which dense layers spread as dp x cp x tp.
std::int64_t stage_ranks(const Plan& plan) {
  return plan.dp * plan.cp * plan.tp;
}

bool expert_groups_hold(const PlanSubject& s) {
  return !s.model.moe || divides(s.plan.ep * s.plan.expert_tp, stage_ranks(s.plan));
}

Problem expert_groups_problem(const PlanSubject& s) {
  return {"/ep", fmt::format("ep {} x expert_tp {}", s.plan.ep, s.plan.expert_tp),
          fmt::format("a divisor of the {} ranks of a stage (dp x cp x tp)", stage_ranks(s.plan))};
}

// The sequence

bool is_ulysses(const Plan& plan) {
  return plan.context_parallel == ContextParallelKind::Ulysses;
}

// Causal attention gives later queries more work, so ring and all-gather hand each rank one chunk
// from the front and its mirror image from the back (arXiv 2407.21783 section 3.3.2).
std::int64_t sequence_chunks(const Plan& plan) {
  return is_ulysses(plan) ? plan.cp : 2 * plan.cp;
}

bool context_parallel_holds(const PlanSubject& s) {
  return s.plan.cp == 1 || divides(sequence_chunks(s.plan), s.plan.seq_len);
}

Problem context_parallel_problem(const PlanSubject& s) {
  return {"/seq_len", fmt::format("{}", s.plan.seq_len),
          multiple_of(sequence_chunks(s.plan), is_ulysses(s.plan) ? "cp" : "2 x cp")};
}

bool ulysses_heads_hold(const PlanSubject& s) {
  if (s.plan.cp == 1 || !is_ulysses(s.plan)) return true;
  const std::int64_t ranks = s.plan.tp * s.plan.cp;
  return divides(ranks, s.model.attention.heads) &&
         splits_or_replicates(s.model.attention.kv_heads, ranks);
}

Problem ulysses_heads_problem(const PlanSubject& s) {
  return {"/cp", fmt::format("tp {} x cp {}", s.plan.tp, s.plan.cp),
          fmt::format("a divisor of the {} attention heads, and a divisor or a multiple of the {} "
                      "key/value heads",
                      s.model.attention.heads, s.model.attention.kv_heads)};
}

bool sequence_parallel_holds(const PlanSubject& s) {
  if (!s.plan.sequence_parallel || s.plan.tp == 1) return true;
  return divides(s.plan.cp * s.plan.tp, s.plan.seq_len);
}

Problem sequence_parallel_problem(const PlanSubject& s) {
  return {"/seq_len", fmt::format("{}", s.plan.seq_len),
          multiple_of(s.plan.cp * s.plan.tp, "cp x tp, for sequence parallelism")};
}

bool positions_hold(const PlanSubject& s) {
  return s.model.position != PositionKind::Learned || s.model.position_embeddings == 0 ||
         s.plan.seq_len <= s.model.position_embeddings;
}

Problem positions_problem(const PlanSubject& s) {
  return {"/seq_len", fmt::format("{}", s.plan.seq_len),
          fmt::format("at most the model's {} learned positions", s.model.position_embeddings)};
}

// Batch and pipeline

Problem global_batch_problem(const PlanSubject& s) {
  if (!s.plan.replica_pools.empty()) {
    return {"/global_batch", fmt::format("{}", s.plan.global_batch),
            fmt::format("{}: the sequences of all microbatches of replica_pools",
                        batch_of_pools(s.plan))};
  }
  return {"/global_batch", fmt::format("{}", s.plan.global_batch),
          multiple_of(s.plan.dp * s.plan.micro_batch, "dp x micro_batch")};
}

Problem step_size_problem(const PlanSubject& s) {
  return {"/global_batch",
          fmt::format("{}, in {} microbatches through {} layers", s.plan.global_batch,
                      s.plan.microbatches(), s.model.layers),
          fmt::format("at most {} microbatches x layers to simulate: a smaller batch, or a larger "
                      "dp or micro_batch",
                      kMostMicrobatchLayers)};
}

// Sharding and rank order

bool zero_stage_holds(const PlanSubject& s) {
  return within(s.plan.zero_stage, 0, 3);
}

Problem zero_stage_problem(const PlanSubject& s) {
  return {"/zero_stage", fmt::format("{}", s.plan.zero_stage), "0, 1, 2 or 3"};
}

bool shard_group_holds(const PlanSubject& s) {
  if (s.plan.shard_group == 0) return true;
  return s.plan.zero_stage > 0 && shard_group_nests(s.plan) &&
         (!s.model.moe || shard_group_nests_with_experts(s.plan));
}

Problem shard_group_problem(const PlanSubject& s) {
  if (s.plan.zero_stage <= 0) {
    return {"/shard_group",
            fmt::format("{} with ZeRO stage {}", s.plan.shard_group, s.plan.zero_stage),
            "0: nothing is sharded"};
  }
  const std::string found = fmt::format("{}", s.plan.shard_group);
  if (shard_group_nests(s.plan)) {
    return {"/shard_group", found,
            fmt::format("0 or a divisor of the {} replicas of an expert", expert_replicas(s.plan))};
  }
  const bool context = inner_data_axis(s.plan) == Axis::Context;
  return {
      "/shard_group", found,
      fmt::format("0 or a divisor of dp x cp = {} that divides {} = {} or is a multiple of it",
                  s.plan.dp * s.plan.cp, context ? "cp" : "dp", context ? s.plan.cp : s.plan.dp)};
}

constexpr unsigned kEveryAxis = 0b11111;

bool has_each_axis(const Plan& plan) {
  unsigned seen = 0;
  for (const Axis axis : plan.rank_order) seen |= 1U << static_cast<unsigned>(axis);
  return plan.rank_order.size() == 5 && seen == kEveryAxis;
}

bool rank_order_holds(const PlanSubject& s) {
  return has_each_axis(s.plan) && (!s.model.moe || pipeline_nests_with_experts(s.plan));
}

Problem rank_order_problem(const PlanSubject& s) {
  std::vector<const char*> names;
  for (const Axis axis : s.plan.rank_order) names.push_back(name_of(axis));
  return {"/rank_order", fmt::format("[{}]", fmt::join(names, ", ")),
          has_each_axis(s.plan)
              ? fmt::format("pp last: the ranks inside of it do not nest with expert_tp {} x ep {}",
                            s.plan.expert_tp, s.plan.ep)
              : "each of tp, cp, ep, dp and pp once, innermost first"};
}

// Rules that refuse settings without effect.

bool expert_overlap_holds(const PlanSubject& s) {
  const OverlapSwitches& overlap = s.plan.overlap;
  if (overlap.expert_microbatches) return s.plan.ep > 1 && !overlap.expert_parallel;
  return !overlap.expert_parallel || has_shared_experts(s.model);
}

Problem expert_overlap_problem(const PlanSubject& s) {
  if (s.plan.overlap.expert_microbatches)
    return {"/overlap/expert_microbatches", "true",
            "false, or ep above 1 and overlap.expert_parallel false: one or the other hides the "
            "exchange of tokens"};
  return {
      "/overlap/expert_parallel", "true",
      fmt::format("false: the model {} has no shared experts to compute meanwhile", s.model.name)};
}

constexpr std::array kRules = {
    RuleDefinition{PlanRule::Range, "range", range_holds, range_problem},
    RuleDefinition{PlanRule::WorldSize, "world_size", world_size_holds, world_size_problem},
    RuleDefinition{PlanRule::ClusterSize, "cluster_size", cluster_size_holds, cluster_size_problem},
    RuleDefinition{PlanRule::Precision, "precision", precision_holds, precision_problem},
    RuleDefinition{PlanRule::Heads, "heads", heads_hold, heads_problem},
    RuleDefinition{PlanRule::KvHeads, "kv_heads", kv_heads_hold, kv_heads_problem},
    RuleDefinition{PlanRule::FfnHidden, "ffn_hidden", ffn_hidden_holds, ffn_hidden_problem},
    RuleDefinition{PlanRule::ExpertParallel, "expert_parallel", expert_parallel_holds,
                   expert_parallel_problem},
    RuleDefinition{PlanRule::Experts, "experts", experts_hold, experts_problem},
    RuleDefinition{PlanRule::ExpertFfn, "expert_ffn", expert_ffn_holds, expert_ffn_problem},
    RuleDefinition{PlanRule::ExpertGroups, "expert_groups", expert_groups_hold,
                   expert_groups_problem},
    RuleDefinition{PlanRule::ContextParallel, "context_parallel", context_parallel_holds,
                   context_parallel_problem},
    RuleDefinition{PlanRule::UlyssesHeads, "ulysses_heads", ulysses_heads_hold,
                   ulysses_heads_problem},
    RuleDefinition{PlanRule::SequenceParallel, "sequence_parallel", sequence_parallel_holds,
                   sequence_parallel_problem},
    RuleDefinition{PlanRule::Positions, "positions", positions_hold, positions_problem},
    RuleDefinition{PlanRule::GlobalBatch, "global_batch", global_batch_holds, global_batch_problem},
    RuleDefinition{PlanRule::StepSize, "step_size", step_size_holds, step_size_problem},
    RuleDefinition{PlanRule::VirtualStages, "virtual_stages", virtual_stages_hold,
                   virtual_stages_problem},
    RuleDefinition{PlanRule::ScheduleShape, "schedule_shape", schedule_shape_holds,
                   schedule_shape_problem},
    RuleDefinition{PlanRule::Layers, "layers", layers_hold, layers_problem},
    RuleDefinition{PlanRule::StageLayers, "stage_layers", stage_layers_hold, stage_layers_problem},
    RuleDefinition{PlanRule::StagePools, "stage_pools", stage_pools_hold, stage_pools_problem},
    RuleDefinition{PlanRule::ReplicaPools, "replica_pools", replica_pools_hold,
                   replica_pools_problem},
    RuleDefinition{PlanRule::RecomputeModules, "recompute_modules", recompute_modules_hold,
                   recompute_modules_problem},
    RuleDefinition{PlanRule::RecomputeLayers, "recompute_layers", recompute_layers_hold,
                   recompute_layers_problem},
    RuleDefinition{PlanRule::StageRecompute, "stage_recompute", stage_recompute_holds,
                   stage_recompute_problem},
    RuleDefinition{PlanRule::RecomputePattern, "recompute_pattern", recompute_pattern_holds,
                   recompute_pattern_problem},
    RuleDefinition{PlanRule::ZeroStage, "zero_stage", zero_stage_holds, zero_stage_problem},
    RuleDefinition{PlanRule::ShardGroup, "shard_group", shard_group_holds, shard_group_problem},
    RuleDefinition{PlanRule::DataParallel, "data_parallel", replicas_hold, replicas_problem},
    RuleDefinition{PlanRule::RankOrder, "rank_order", rank_order_holds, rank_order_problem},
    RuleDefinition{PlanRule::ExpertOverlap, "expert_overlap", expert_overlap_holds,
                   expert_overlap_problem},
    RuleDefinition{PlanRule::ActivationOffload, "activation_offload", activation_offload_holds,
                   activation_offload_problem},
    RuleDefinition{PlanRule::OptimizerStates, "optimizer_states", optimizer_states_hold,
                   optimizer_states_problem},
    RuleDefinition{PlanRule::OptimizerOffload, "optimizer_offload", optimizer_offload_holds,
                   optimizer_offload_problem},
    RuleDefinition{PlanRule::Lora, "lora", lora_holds, lora_problem},
    RuleDefinition{PlanRule::Stack, "stack", stack_holds, stack_problem},
};

// Rules are looked up by their number.
constexpr bool in_order() {
  for (std::size_t i = 0; i < kRules.size(); ++i) {
    if (static_cast<std::size_t>(kRules[i].rule) != i) return false;
  }
  return true;
}
static_assert(in_order());

}  // namespace

bool has_dense_layers(const ModelSpec& model) {
  if (!model.layer_pattern.empty()) {
    const std::vector<std::int64_t> kinds = layers_of_each_kind(model);
    return std::any_of(kinds.begin(), kinds.end(), [&](std::int64_t layer) {
      return model.parts_of(layer).ffn == LayerFfn::Dense;
    });
  }
  return !model.moe || model.moe->first_dense_layers > 0 || model.moe->layer_interval > 1;
}

std::span<const RuleDefinition> plan_rules() {
  return kRules;
}

}  // namespace shardwright
