// The reason why a search found no plan, and the changes that would help.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <numeric>
#include <set>
#include <utility>

#include "core/spec/plan_check.hpp"
#include "planner/plan_evaluation.hpp"

namespace shardwright::planner {
namespace {

// Rounds up to tenths of a GB, for a size to ask for.
Bytes rounded_up(Bytes bytes) {
  return Bytes(std::ceil(bytes.value() / 1e8) * 1e8);
}

// The first constraint whose values no plan of the space has. Evaluation does not tell: it counts a
// plan under the first rule that it breaks.
std::optional<Obstacle> impossible_constraint(const PlanRequest& request) {
  const std::vector<Constraint>& fixed = request.constraints.fixed;
  std::vector<std::set<std::int64_t>> values(fixed.size());
  const SpaceRequest space = space_of(request);
  for (const Plan& cut : layer_cuts(space)) {
    for_each_plan(space, cut, [&](const Plan& plan) {
      for (std::size_t i = 0; i < fixed.size(); ++i)
        values[i].insert(value_of(plan, fixed[i].field));
    });
  }
  for (std::size_t i = 0; i < fixed.size(); ++i) {
    const bool is_possible =
        std::any_of(values[i].begin(), values[i].end(),
                    [&](std::int64_t value) { return fixed[i].allows(value); });
    if (is_possible) continue;
    return Obstacle{
        ObstacleKind::Impossible, PlanRule::Range, fixed[i], {values[i].begin(), values[i].end()}};
  }
  return std::nullopt;
}

// The rule or constraint that excludes the most plans.
Obstacle biggest_obstacle(const PlanRequest& request, const Evaluation& evaluation) {
  Obstacle most;
  for (std::size_t i = 0; i < evaluation.broken_rules.size(); ++i) {
    if (evaluation.broken_rules[i] > most.plans)
      most = {ObstacleKind::Rule, static_cast<PlanRule>(i), {}, {}, evaluation.broken_rules[i]};
  }
  const std::size_t fixed = request.constraints.fixed.size();
  for (std::size_t i = 0; i < evaluation.broken_constraints.size(); ++i) {
    if (evaluation.broken_constraints[i] <= most.plans) continue;
    const bool is_fixed = i < fixed;
    most = {is_fixed ? ObstacleKind::Fixed : ObstacleKind::Forbidden,
            PlanRule::Range,
            is_fixed ? request.constraints.fixed[i] : request.constraints.forbidden[i - fixed],
            {},
            evaluation.broken_constraints[i]};
  }
  return most;
}

// True if only selective recomputation is allowed and attention is fused: selective recomputation
// is then no choice of its own, so that no plan of the space has it.
bool fixes_selective_alone(const PlanRequest& request) {
  constexpr auto kSelective = static_cast<std::int64_t>(RecomputePolicy::Selective);
  const auto& fixed = request.constraints.fixed;
  return request.stack.fusion.flash_attention &&
         std::any_of(fixed.begin(), fixed.end(), [](const Constraint& constraint) {
           return constraint.field == PlanField::Recompute &&
                  constraint.values == std::vector<std::int64_t>{kSelective};
         });
}

// Changes one thing of the request at a time and lists the changes after which a plan fits.
class Remedies {
 public:
  Remedies(const PlanRequest& request, const Evaluation& evaluation, NoFeasiblePlan& result)
      : request_(request), evaluation_(evaluation), result_(result) {
    request_.progress = nullptr;
    request_.found = nullptr;
  }

  void list() {
    raise_limit();
    replace_selective();
    drop_constraints();
    offload();
    change_batch();
    if (!change_accelerators()) fill_nodes();
    shrink_batch();
    shorten_sequences();
    add_accelerators();
    ask_for_larger_accelerators();
  }

 private:
  bool try_change(const PlanRequest& changed, std::vector<Remedy> remedies) {
    if (request_.stop.stop_requested() || !has_feasible_plan(changed)) return false;
    result_.closes_it.push_back(std::move(remedies));
    return true;
  }

  // The need of the nearest plan is known, so that no search is necessary.
  void raise_limit() {
    const bool limited = result_.available < request_.cluster.accelerator.memory;
    if (!result_.nearest || !limited) return;
    if (result_.needed <= request_.cluster.accelerator.memory)
      result_.closes_it.push_back({{RemedyField::MaxMemory, rounded_up(result_.needed)}});
  }

  void replace_selective() {
    if (!fixes_selective_alone(request_)) return;
    for (const RecomputePolicy policy : {RecomputePolicy::None, RecomputePolicy::Full}) {
      const Constraint other = {PlanField::Recompute, {static_cast<std::int64_t>(policy)}};
      PlanRequest changed = request_;
      for (Constraint& constraint : changed.constraints.fixed) {
        if (constraint.field == PlanField::Recompute) constraint = other;
      }
      try_change(changed, {{RemedyField::Fixed, other}});
    }
  }

  void drop_constraints() {
    std::vector<Remedy> all;
    bool helped = false;
    const auto drop_each = [&](std::vector<Constraint> Constraints::*list, RemedyField field) {
      const std::vector<Constraint>& constraints = request_.constraints.*list;
      for (std::size_t i = 0; i < constraints.size(); ++i) {
        PlanRequest changed = request_;
        std::vector<Constraint>& kept = changed.constraints.*list;
        kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(i));
        all.push_back({field, constraints[i]});
        helped = try_change(changed, {all.back()}) || helped;
      }
    };
    drop_each(&Constraints::fixed, RemedyField::NotFixed);
    drop_each(&Constraints::forbidden, RemedyField::NotForbidden);
    if (helped || all.size() < 2) return;
    PlanRequest changed = request_;
    changed.constraints = {};
    try_change(changed, std::move(all));
  }

  void offload() {
    const std::vector<OptimizerOffload>& tried = request_.limits.offload_optimizer;
    const auto is_tried = [&](OptimizerOffload place) {
      return std::find(tried.begin(), tried.end(), place) != tried.end();
    };
    if (!result_.nearest) return;
    for (const OptimizerOffload place : {OptimizerOffload::Host, OptimizerOffload::Nvme}) {
      if (is_tried(place)) continue;
      PlanRequest changed = request_;
      changed.limits.offload_optimizer = {place};
      const Constraint offloaded = {PlanField::OffloadOptimizer,
                                    {static_cast<std::int64_t>(place)}};
      if (try_change(changed, {{RemedyField::Fixed, offloaded}})) return;
    }
  }

  // Tries larger batches that the replicas divide, and keeps the smallest that helps. A batch may
  // still be too small for the pipeline.
  void change_batch() {
    if (result_.nearest) return;
    constexpr int kDoublings = 12;
    constexpr std::size_t kMostTried = 64;
    std::set<std::int64_t> batches;
    for (const std::int64_t replicas : evaluation_.undivided) {
      std::int64_t batch = (request_.global_batch + replicas - 1) / replicas * replicas;
      for (int i = 0; i < kDoublings && batch <= kMaxBatch; ++i, batch *= 2) batches.insert(batch);
    }
    std::size_t tried = 0;
    for (const std::int64_t batch : batches) {
      if (++tried > kMostTried) return;
      PlanRequest changed = request_;
      changed.global_batch = batch;
      if (try_change(changed, {{RemedyField::GlobalBatch, batch}})) return;
    }
  }

  // Returns the numbers of accelerators below and above the one asked for that fill nodes or,
  // within a node, halve it. Both are that number itself if it does.
  std::pair<std::int64_t, std::int64_t> full_sizes() const {
    const std::int64_t node = request_.cluster.node.accelerators, asked = request_.gpus;
    if (asked > node) return {asked / node * node, (asked + node - 1) / node * node};
    const auto within = static_cast<std::uint64_t>(asked);
    return {static_cast<std::int64_t>(std::bit_floor(within)),
            std::min(node, static_cast<std::int64_t>(std::bit_ceil(within)))};
  }

  // Tries the numbers of accelerators next to one that leaves a part of a node idle.
  void fill_nodes() {
    const auto [below, above] = full_sizes();
    const std::int64_t most = request_.cluster.most_accelerators().value_or(kMaxWorld);
    for (const std::int64_t size : {below, above}) {
      PlanRequest changed = request_;
      changed.gpus = size;
      if (size <= most && size != request_.gpus) try_change(changed, {{RemedyField::Gpus, size}});
    }
  }

  // Tries numbers of accelerators in whole nodes that are close to the one asked for. Those that
  // share the largest divisor with the batch come first: most of their plans divide it.
  bool change_accelerators() {
    const Obstacle& obstacle = result_.obstacle;
    if (obstacle.kind != ObstacleKind::Rule || obstacle.rule != PlanRule::GlobalBatch) return false;
    constexpr double kClose = 0.1;
    constexpr std::size_t kMostTried = 8;
    const std::int64_t node = request_.cluster.node.accelerators, asked = request_.gpus;
    const std::int64_t most = request_.cluster.most_accelerators().value_or(kMaxWorld);
    const auto nodes_within = static_cast<std::int64_t>(kClose * static_cast<double>(asked / node));
    std::vector<std::int64_t> sizes;
    for (std::int64_t i = -nodes_within; i <= nodes_within + 1; ++i) {
      const std::int64_t size = (asked / node + i) * node;
      if (size > 0 && size <= most && size != asked) sizes.push_back(size);
    }
    const auto order = [&](std::int64_t size) {
      return std::pair(-std::gcd(size, request_.global_batch), std::abs(size - asked));
    };
    std::sort(sizes.begin(), sizes.end(),
              [&](std::int64_t a, std::int64_t b) { return order(a) < order(b); });
    if (sizes.size() > kMostTried) sizes.resize(kMostTried);
    for (const std::int64_t size : sizes) {
      PlanRequest changed = request_;
      changed.gpus = size;
      if (try_change(changed, {{RemedyField::Gpus, size}})) return true;
    }
    return false;
  }

  // If steps are too long to be simulated, keeps the largest power of two that helps.
  void shrink_batch() {
    if (evaluation_.broken(PlanRule::StepSize) == 0) return;
    const auto asked = static_cast<std::uint64_t>(request_.global_batch);
    for (std::uint64_t batch = std::bit_floor(asked - 1); batch > 0; batch /= 2) {
      PlanRequest changed = request_;
      changed.global_batch = static_cast<std::int64_t>(batch);
      if (try_change(changed, {{RemedyField::GlobalBatch, changed.global_batch}})) return;
    }
  }

  void shorten_sequences() {
    const std::int64_t positions = request_.model.position_embeddings;
    if (request_.model.position != PositionKind::Learned || positions == 0) return;
    if (request_.seq_len <= positions) return;
    PlanRequest changed = request_;
    changed.seq_len = positions;
    try_change(changed, {{RemedyField::SeqLen, positions}});
  }

  void add_accelerators() {
    const std::int64_t most = request_.cluster.most_accelerators().value_or(kMaxWorld);
    constexpr std::int64_t kMostFactor = 1024;
    const std::int64_t least = full_sizes().second;
    for (std::int64_t factor = 2; factor <= kMostFactor; factor *= 2) {
      PlanRequest changed = request_;
      changed.gpus = least * factor;
      if (changed.gpus > most || !result_.nearest) return;
      if (least_memory(changed) > result_.available) continue;
      const Remedy gpus = {RemedyField::Gpus, changed.gpus};
      if (try_change(changed, {gpus})) return;
      if (changed.global_batch > kMaxBatch / factor) return;
      changed.global_batch *= factor;
      if (try_change(changed, {gpus, {RemedyField::GlobalBatch, changed.global_batch}})) return;
    }
  }

  void ask_for_larger_accelerators() {
    const Bytes device = request_.cluster.accelerator.memory;
    // The user's limit applies to any accelerator.
    const bool limited = whole_memory(request_) < device;
    if (!result_.nearest || limited || result_.needed <= device) return;
    result_.closes_it.push_back(
        {{RemedyField::AcceleratorMemory, result_.needed / request_.memory_share}});
  }

  PlanRequest request_;
  const Evaluation& evaluation_;
  NoFeasiblePlan& result_;
};

}  // namespace

NoFeasiblePlan explain_infeasible(const PlanRequest& request, const Evaluation& evaluation) {
  NoFeasiblePlan result;
  result.available = available_memory(request);
  if (evaluation.tightest.plan) {
    result.nearest = evaluation.tightest.plan;
    result.needed = Bytes(evaluation.tightest.memory);
    result.shortfall = result.needed - result.available;
    result.obstacle.kind = ObstacleKind::Memory;
    result.obstacle.plans = evaluation.too_large;
  } else if (fixes_selective_alone(request)) {
    result.obstacle.kind = ObstacleKind::FusedAttention;
  } else if (const std::optional<Obstacle> impossible = impossible_constraint(request)) {
    result.obstacle = *impossible;
  } else {
    result.obstacle = biggest_obstacle(request, evaluation);
  }
  result.obstacle.space = evaluation.space;
  Remedies(request, evaluation, result).list();
  return result;
}

}  // namespace shardwright::planner
