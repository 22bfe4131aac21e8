#include "planner/search_space.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"
#include "core/spec/plan_check.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::planner {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers divisors(std::int64_t number, std::int64_t most) {
  Numbers found;
  for (std::int64_t i = 1; i <= std::min(number, most); ++i) {
    if (number % i == 0) found.push_back(i);
  }
  return found;
}

std::int64_t largest_tp(const SpaceRequest& request) {
  return request.limits.max_tp > 0 ? request.limits.max_tp : sim::domain_size(request.cluster);
}

Numbers context_degrees(const SpaceRequest& request, std::int64_t tp) {
  const std::int64_t fits =
      std::max<std::int64_t>(1, request.seq_len / request.limits.min_cp_tokens);
  return divisors(request.gpus / tp, std::min(request.limits.max_cp, fits));
}

Numbers expert_degrees(const SpaceRequest& request) {
  return request.model.moe ? divisors(request.model.moe->experts, request.gpus) : Numbers{1};
}

// Returns the values in order, each once.
Numbers joined(Numbers numbers, const Numbers& more) {
  numbers.insert(numbers.end(), more.begin(), more.end());
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

Numbers expert_tensor_degrees(const SpaceRequest& request, std::int64_t tp) {
  if (!request.model.moe) return {1};
  return joined({1, tp}, request.limits.expert_tensor_degrees);
}

Numbers micro_batches(const SearchLimits& limits) {
  Numbers sizes;
  for (std::int64_t size = 1; size <= limits.max_micro_batch; size *= 2) sizes.push_back(size);
  return joined(std::move(sizes), limits.micro_batches);
}

// Attention that is not fused gathers keys and values, regardless of the plan
// (core/lowering/modules/attention.cpp).
std::vector<ContextParallelKind> context_kinds(const SpaceRequest& request, std::int64_t cp) {
  if (cp == 1) return {ContextParallelKind::Ring};
  const std::vector<ContextParallelKind>& kinds = request.limits.context_parallel;
  if (request.stack.fusion.flash_attention) return kinds;
  const auto gather = std::find(kinds.begin(), kinds.end(), ContextParallelKind::AllGather);
  return {gather == kinds.end() ? kinds.front() : *gather};
}

bool tries_zero_below_3(const SearchLimits& limits) {
  return std::any_of(limits.zero_stages.begin(), limits.zero_stages.end(),
                     [](int stage) { return stage < 3; });
}

bool tries_zero_3(const SearchLimits& limits) {
  return std::find(limits.zero_stages.begin(), limits.zero_stages.end(), 3) !=
         limits.zero_stages.end();
}

bool tries(const SearchLimits& limits, RecomputePolicy policy) {
  return std::find(limits.recompute.begin(), limits.recompute.end(), policy) !=
         limits.recompute.end();
}

// The sets of modules that are small in time for the memory that they keep: MLA's projections up,
// and activation functions and norms of layers with experts. Of each stack those that it
// recomputes.
std::vector<RecomputeModuleSet> paying_modules(const SpaceRequest& request) {
  using enum RecomputeModule;
  std::vector<RecomputeModuleSet> sets;
  const ModelSpec& model = request.model;
  const bool latent = model.attention.kind == AttentionKind::MultiHeadLatent;
  if (latent) sets.push_back({MlaUpProjection});
  if (model.moe) sets.push_back({MoeActivation, LayerNorm});
  if (model.moe && latent) sets.back().insert(MlaUpProjection);
  std::erase_if(sets, [&](RecomputeModuleSet set) {
    return !request.stack.capabilities.recompute_modules.contains_all(set);
  });
  return sets;
}

// The sets of modules that plans with selective recomputation have, each once.
std::vector<RecomputeModuleSet> selected_modules(const SpaceRequest& request) {
  const SearchLimits& limits = request.limits;
  std::vector<RecomputeModuleSet> sets;
  if (!tries(limits, RecomputePolicy::Selective)) return sets;
  if (limits.usual_recompute_modules) {
    // A core that is one kernel keeps next to nothing that could be recomputed.
    const bool same_as_none = request.stack.fusion.flash_attention &&
                              tries(limits, RecomputePolicy::None) &&
                              request.stack.capabilities.selective_recompute ==
                                  RecomputeModuleSet{RecomputeModule::CoreAttention};
    if (!same_as_none) sets.emplace_back();
    for (const RecomputeModuleSet set : paying_modules(request)) {
      if (same_as_none || set != request.stack.capabilities.selective_recompute)
        sets.push_back(set);
    }
  }
  for (const RecomputeModuleSet set : limits.recompute_modules) {
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
  }
  return sets;
}

// Appends `cut` once for each kind of layer in which its plans differ.
void append_cuts(const SpaceRequest& request, Plan cut, std::vector<Plan>& cuts) {
  const SearchLimits& limits = request.limits;
  const auto append = [&](RecomputePolicy policy, int zero_stage, RecomputeModuleSet modules = {}) {
    cut.recompute = policy;
    cut.recompute_modules = modules;
    cut.recompute_layers = policy == RecomputePolicy::Full ? 1 : 0;
    // Any group stands for all.
    const bool groups = policy == RecomputePolicy::Full &&
                        std::any_of(limits.recompute_groups.begin(), limits.recompute_groups.end(),
                                    [](std::int64_t layers) { return layers > 1; });
    cut.recompute_group = groups ? 2 : 1;
    cut.zero_stage = zero_stage;
    cuts.push_back(cut);
  };
  const std::vector<RecomputeModuleSet> sets = selected_modules(request);
  for (const int zero_stage : {0, 3}) {
    if (zero_stage == 0 ? !tries_zero_below_3(limits) : !tries_zero_3(limits)) continue;
    if (tries(limits, RecomputePolicy::None) || tries(limits, RecomputePolicy::Full))
      append(RecomputePolicy::Full, zero_stage);
    for (const RecomputeModuleSet set : sets) append(RecomputePolicy::Selective, zero_stage, set);
    if (tries(limits, RecomputePolicy::PerOp)) append(RecomputePolicy::PerOp, zero_stage);
  }
}

// Enumerates the plans of one cut and one pipeline depth, from the outer choices to the inner ones.
class PlanWalk {
 public:
  PlanWalk(const SpaceRequest& request, const std::function<void(const Plan&)>& visit)
      : request_(request), visit_(visit) {}

  void walk(const Plan& cut, std::int64_t pp) {
    plan_ = cut;
    cut_policy_ = cut.recompute;
    plan_.recompute_group = 1;
    fsdp_ = cut.zero_stage == 3;
    plan_.pp = pp;
    plan_.dp = request_.gpus / (cut.tp * cut.cp * pp);
    const bool first_order = cut.rank_order == request_.limits.rank_orders.front();
    if (!first_order && (plan_.pp == 1 || plan_.dp == 1)) return;
    for (const OptimizerOffload offload : request_.limits.offload_optimizer) {
      plan_.offload_optimizer = offload;
      walk_schedules();
    }
  }

 private:
  void walk_schedules() {
    if (plan_.pp == 1) {
      with_schedule(ScheduleKind::OneFOneB, 1);
      return;
    }
    for (const ScheduleKind schedule : request_.limits.schedules) {
      if (schedule == ScheduleKind::Interleaved) {
        const std::int64_t layers = (request_.model.layers + plan_.pp - 1) / plan_.pp;
        const Numbers even = divisors(layers, request_.limits.max_vpp);
        for (const std::int64_t vpp : joined(even, request_.limits.virtual_stages)) {
          if (vpp > 1) with_schedule(schedule, vpp);
        }
      } else {
        with_schedule(schedule, schedule == ScheduleKind::ZbV ? 2 : 1);
      }
    }
  }

  void with_schedule(ScheduleKind schedule, std::int64_t vpp) {
    plan_.schedule = schedule;
    plan_.vpp = vpp;
    bool tried_plain = false;
    for (const LayerSplit split : request_.limits.layer_splits) {
      const bool plain = !differs(split);
      if (plain && std::exchange(tried_plain, true)) continue;
      // Equal splits are written in one way, so that searches with other limits recognise the plan.
      set_split(plain ? LayerSplit::FrontHeavy : split);
      with_split();
    }
    set_split(LayerSplit::FrontHeavy);
  }

  // Derives the splits from the front-heavy one, for the chunks of the plan. If an even split lacks
  // one layer, the ends that count as layers make up for it, and the splits are the same.
  bool differs(LayerSplit split) const {
    if (split == LayerSplit::FrontHeavy) return false;
    if (split == LayerSplit::OfBase) {
      const Plan& base = *request_.limits.base;
      return base.embedding_counts_as_layer || base.head_counts_as_layer ||
             !base.stage_layers.empty();
    }
    const std::int64_t chunks = plan_.chunks(), layers = request_.model.layers;
    if (split == LayerSplit::BalancedEnds)
      return chunks > 2 && (layers < chunks || layers % chunks != chunks - 1);
    return layers > chunks && layers % chunks != 0;
  }

  void set_split(LayerSplit split) {
    if (split == LayerSplit::OfBase) {
      plan_.embedding_counts_as_layer = request_.limits.base->embedding_counts_as_layer;
      plan_.head_counts_as_layer = request_.limits.base->head_counts_as_layer;
      plan_.stage_layers = request_.limits.base->stage_layers;
      return;
    }
    const bool ends = split == LayerSplit::BalancedEnds;
    plan_.embedding_counts_as_layer = ends;
    plan_.head_counts_as_layer = ends;
    plan_.stage_layers.clear();
    if (split != LayerSplit::FrontLight) return;
    const std::int64_t chunks = plan_.chunks(), layers = request_.model.layers;
    plan_.stage_layers.assign(static_cast<std::size_t>(chunks), layers / chunks);
    std::for_each(plan_.stage_layers.end() - static_cast<std::ptrdiff_t>(layers % chunks),
                  plan_.stage_layers.end(), [](std::int64_t& count) { ++count; });
  }

  void with_split() {
    if (cut_policy_ != RecomputePolicy::Full) {
      with_recompute(cut_policy_, 0);
      return;
    }
    if (tries(request_.limits, RecomputePolicy::None)) with_recompute(RecomputePolicy::None, 0);
    if (!tries(request_.limits, RecomputePolicy::Full)) return;
    for (const std::int64_t count : partial_counts()) with_recompute(RecomputePolicy::Full, count);
    with_recompute(RecomputePolicy::Full, 0);
    for (const std::int64_t interval : within_chunk(request_.limits.recompute_intervals))
      with_pattern(interval, 1);
    for (const std::int64_t group : within_chunk(request_.limits.recompute_groups))
      with_pattern(1, group);
  }

  void with_pattern(std::int64_t interval, std::int64_t group) {
    plan_.recompute_interval = interval;
    plan_.recompute_group = group;
    with_recompute(RecomputePolicy::Full, 0);
    plan_.recompute_interval = plan_.recompute_group = 1;
  }

  // Intervals or groups of more layers recompute none, or all of them together.
  Numbers within_chunk(const Numbers& numbers) const {
    const std::int64_t layers = plan_.even_chunk(request_.model.layers);
    Numbers fitting = joined(numbers, {});
    std::erase_if(fitting, [layers](std::int64_t n) { return n < 2 || n > layers; });
    return fitting;
  }

  // The numbers of layers of a chunk that full recomputation may cover.
  Numbers partial_counts() const {
    const std::int64_t layers = plan_.even_chunk(request_.model.layers);
    Numbers counts;
    if (request_.limits.partial_recompute) {
      for (const std::int64_t quarter : {1, 2, 3}) counts.push_back(layers * quarter / 4);
    }
    counts = joined(std::move(counts), request_.limits.recompute_layers);
    std::erase_if(counts, [layers](std::int64_t count) { return count < 1 || count >= layers; });
    return counts;
  }

  void with_recompute(RecomputePolicy policy, std::int64_t layers) {
    plan_.recompute = policy;
    plan_.recompute_layers = layers;
    plan_.stage_recompute_layers.clear();
    for (const int stage : request_.limits.zero_stages) {
      if ((stage == 3) != fsdp_) continue;
      with_sharding(stage, 0);
      const std::int64_t node = data_ranks_of_a_node();
      const std::int64_t data = plan_.dp * plan_.cp;
      const bool hybrid = stage == 3 && request_.limits.sharding_within_node && node > 1 &&
                          node < data && data % node == 0;
      if (hybrid) with_sharding(stage, node);
      for (const std::int64_t group : shard_groups()) {
        if (stage > 0 && group > 0 && !(hybrid && group == node)) with_sharding(stage, group);
      }
    }
  }

  // Local steps with ZeRO are made between shard groups, of which all sizes are tried.
  Numbers shard_groups() const {
    if (!plan_.replicas.local()) return request_.limits.shard_groups;
    const std::int64_t ranks = plan_.dp * plan_.cp;
    return joined(divisors(ranks, ranks - 1), request_.limits.shard_groups);
  }

  std::int64_t data_ranks_of_a_node() const {
    std::int64_t inside = plan_.tp;
    if (plan_.rank_order == pipeline_inside_data()) inside *= plan_.pp;
    return sim::domain_block(request_.cluster, request_.gpus) / inside;
  }

  void with_sharding(int stage, std::int64_t group) {
    plan_.zero_stage = stage;
    plan_.shard_group = group;
    const bool shards_experts =
        request_.model.moe.has_value() && group_size(Group::ExpertShardInner, plan_) > 1;
    // One rank has nothing to shard over, so that all stages are one: none, or that of the base.
    const bool is_first =
        request_.limits.base.has_value() && stage == request_.limits.zero_stages.front();
    if (!is_first && stage > 0 && group_size(Group::ShardInner, plan_) == 1 && !shards_experts)
      return;
    visit_(plan_);
  }

  const SpaceRequest& request_;
  const std::function<void(const Plan&)>& visit_;
  Plan plan_;
  RecomputePolicy cut_policy_ = RecomputePolicy::None;
  bool fsdp_ = false;
};

// The sets of modules that plans offload, each once; an empty one is all that layers keep.
std::vector<OffloadModuleSet> offloaded_modules(const SearchLimits& limits, bool offload) {
  std::vector<OffloadModuleSet> sets = {{}};
  if (!offload) return sets;
  for (const OffloadModuleSet set : limits.offload_modules) {
    if (std::find(sets.begin(), sets.end(), set) == sets.end()) sets.push_back(set);
  }
  return sets;
}

// Appends the cuts with the tensor- and context-parallel ranks of `cut`.
void append_cuts_of_ranks(const SpaceRequest& request, Plan cut, std::vector<Plan>& cuts) {
  const auto with_rank_orders = [&] {
    for (const std::vector<Axis>& order : request.limits.rank_orders) {
      cut.rank_order = order;
      for (const bool offload : request.limits.offload_activations) {
        cut.offload_activations = offload;
        const bool as_base = offload && request.limits.base;
        cut.offload_layers = as_base ? request.limits.base->offload_layers : 0;
        cut.offload_ratio = as_base ? request.limits.base->offload_ratio : 1.0;
        for (const OffloadModuleSet modules : offloaded_modules(request.limits, offload)) {
          cut.offload_modules = modules;
          for (const OptimizerStates states : request.limits.optimizer_states) {
            cut.optimizer_states = states;
            append_cuts(request, cut, cuts);
          }
        }
      }
    }
  };
  for (const std::int64_t ep : expert_degrees(request)) {
    for (const std::int64_t expert_tp : expert_tensor_degrees(request, cut.tp)) {
      cut.ep = ep;
      cut.expert_tp = expert_tp;
      for (const std::int64_t size : micro_batches(request.limits)) {
        cut.micro_batch = size;
        with_rank_orders();
      }
    }
  }
}

}  // namespace

const std::vector<Axis>& pipeline_inside_data() {
  static const std::vector<Axis> kOrder = {Axis::Tensor, Axis::Context, Axis::Expert,
                                           Axis::Pipeline, Axis::Data};
  return kOrder;
}

SearchLimits narrow_limits() {
  SearchLimits limits;
  limits.schedules = {ScheduleKind::OneFOneB, ScheduleKind::Interleaved};
  limits.zero_stages = {1, 3};
  limits.recompute = {RecomputePolicy::None, RecomputePolicy::Full};
  limits.layer_splits = {LayerSplit::BalancedEnds};
  limits.context_parallel = {ContextParallelKind::AllGather};
  limits.max_micro_batch = 4;
  limits.partial_recompute = false;
  limits.sharding_within_node = false;
  return limits;
}

namespace {

// True if the stack keeps such states, and does not do so anyway.
bool differs_from_own(OptimizerStates states, const StackSpec& stack) {
  const std::vector<OptimizerStates>& runs = stack.capabilities.optimizer_states;
  if (!runs.empty() && std::find(runs.begin(), runs.end(), states) == runs.end()) return false;
  Plan own, named;
  named.optimizer_states = states;
  return adam_states(stack, own) != adam_states(stack, named) ||
         sums_in_fp32(stack, own) != sums_in_fp32(stack, named);
}

}  // namespace

SearchLimits limits_of(const StackSpec& stack, SearchLimits limits) {
  const auto keep = [](auto& tried, const auto& runs) {
    if (runs.empty()) return;
    std::erase_if(tried, [&runs](const auto& value) {
      return std::find(runs.begin(), runs.end(), value) == runs.end();
    });
  };
  keep(limits.schedules, stack.schedules);
  keep(limits.zero_stages, stack.zero_stages);
  keep(limits.recompute, stack.recompute);
  if (limits.base) return limits;
  const StackCapabilities& runs = stack.capabilities;
  keep(limits.context_parallel, runs.context_parallel);
  keep(limits.offload_optimizer, runs.offload_optimizer);
  std::erase_if(limits.optimizer_states, [&stack](OptimizerStates states) {
    return states != OptimizerStates::OfStack && !differs_from_own(states, stack);
  });
  if (!runs.sequence_parallel) limits.sequence_parallel = {false};
  limits.partial_recompute = limits.partial_recompute && runs.partial_recompute;
  limits.recompute_by_stage = limits.recompute_by_stage && runs.recompute_by_stage;
  if (!runs.recompute_interval) limits.recompute_intervals.clear();
  if (!runs.recompute_group) limits.recompute_groups.clear();
  limits.sharding_within_node = limits.sharding_within_node && runs.hybrid_sharding;
  return limits;
}

std::vector<Plan> layer_cuts(const SpaceRequest& request) {
  std::vector<Plan> cuts;
  Plan cut;
  cut.global_batch = request.global_batch;
  cut.seq_len = request.seq_len;
  cut.precision = request.precision;
  cut.lora = request.lora;
  cut.replicas = request.limits.replicas;
  cut.overlap = usual_overlap(request.stack, request.model);
  if (const std::optional<Plan>& base = request.limits.base) {
    cut.overlap = base->overlap;
    cut.multi_token_prediction = base->multi_token_prediction;
  }
  const bool overlaps_tensor = cut.overlap.tensor_parallel;
  for (const std::int64_t tp : divisors(request.gpus, largest_tp(request))) {
    for (const bool sequence_parallel : request.limits.sequence_parallel) {
      cut.tp = tp;
      cut.sequence_parallel = sequence_parallel;
      // Frameworks overlap only the collectives of sequence parallelism.
      if (!request.limits.base)
        cut.overlap.tensor_parallel = overlaps_tensor && (sequence_parallel || tp == 1);
      if (tp == 1 && sequence_parallel != request.limits.sequence_parallel.front()) continue;
      for (const std::int64_t cp : context_degrees(request, tp)) {
        cut.cp = cp;
        for (const ContextParallelKind kind : context_kinds(request, cp)) {
          cut.context_parallel = kind;
          append_cuts_of_ranks(request, cut, cuts);
        }
      }
    }
  }
  return cuts;
}

void for_each_plan(const SpaceRequest& request, const Plan& cut,
                   const std::function<void(const Plan&)>& visit) {
  PlanWalk walk(request, visit);
  for (const std::int64_t pp : divisors(request.gpus / (cut.tp * cut.cp), request.limits.max_pp))
    walk.walk(cut, pp);
}

void for_each_plan_of_depth(const SpaceRequest& request, const Plan& cut, std::int64_t pp,
                            const std::function<void(const Plan&)>& visit) {
  PlanWalk(request, visit).walk(cut, pp);
}

}  // namespace shardwright::planner
