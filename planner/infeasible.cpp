#include "planner/infeasible.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>
#include <utility>

#include "core/spec/plan_check.hpp"

namespace shardwright::planner {
namespace {

// Three digits, as the command prints sizes.
std::string size_text(Bytes bytes) {
  return bytes >= gigabytes(999.5) ? fmt::format("{:.3g} TB", bytes.value() / 1e12)
                                   : fmt::format("{:.3g} GB", bytes.value() / 1e9);
}

// Digits in threes, as the command prints counts.
std::string count_text(std::int64_t count) {
  std::string text = fmt::format("{}", count);
  for (std::size_t end = text.size(); end > 3; end -= 3) text.insert(end - 3, ",");
  return text;
}

// A size to ask for, in tenths of a GB: not below `bytes`.
Bytes rounded_up(Bytes bytes) {
  return Bytes(std::ceil(bytes.value() / 1e8) * 1e8);
}

std::string option_of(const Constraints& constraints, std::size_t index) {
  const std::size_t fixed = constraints.fixed.size();
  return index < fixed ? "fix " + to_string(constraints.fixed[index])
                       : "forbid " + to_string(constraints.forbidden[index - fixed]);
}

// What most plans fall to, rules and constraints alike.
Rejection biggest_rejection(const PlanRequest& request, const Evaluation& evaluation) {
  Rejection most;
  const auto look_at = [&](const std::string& rule, std::int64_t count) {
    if (count > most.count) most = {rule, count};
  };
  for (std::size_t i = 0; i < evaluation.broken_rules.size(); ++i)
    look_at(fmt::format("the rule {}", name_of(static_cast<PlanRule>(i))),
            evaluation.broken_rules[i]);
  for (std::size_t i = 0; i < evaluation.broken_constraints.size(); ++i)
    look_at(option_of(request.constraints, i), evaluation.broken_constraints[i]);
  return most;
}

// Selective recomputation is no choice of its own where attention is fused, so that no plan of the
// space has it.
bool fixes_selective_alone(const PlanRequest& request) {
  constexpr auto kSelective = static_cast<std::int64_t>(RecomputePolicy::Selective);
  const auto& fixed = request.constraints.fixed;
  return request.stack.fusion.flash_attention &&
         std::any_of(fixed.begin(), fixed.end(), [](const Constraint& constraint) {
           return constraint.field == PlanField::Recompute &&
                  constraint.values == std::vector<std::int64_t>{kSelective};
         });
}

// Changes one thing of the request after the other and lists those after which a plan fits.
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

  // The nearest plan needs what it needs: no search is wanted.
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

  // Batches that the replicas divide, which they do not divide now: the smallest that helps. Few
  // sequences may still be too few for the pipeline.
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

  // Where steps are too long to be simulated: the largest power of two that helps.
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
    for (std::int64_t factor = 2; factor <= kMostFactor; factor *= 2) {
      PlanRequest changed = request_;
      changed.gpus = request_.gpus * factor;
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
    // A limit of the user's holds on any accelerator.
    const bool limited = result_.available < device;
    if (!result_.nearest || limited || result_.needed <= device) return;
    result_.closes_it.push_back({{RemedyField::AcceleratorMemory, result_.needed}});
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
    const bool limited = result.available < request.cluster.accelerator.memory;
    result.reason = fmt::format(
        "{} plans obey the rules and constraints, none fits into {}{}: the smallest "
        "needs {}",
        count_text(evaluation.too_large), limited ? "the memory limit of " : "",
        size_text(result.available), size_text(result.needed));
  } else if (fixes_selective_alone(request)) {
    result.reason = fmt::format(
        "the attention of the stack {} is fused and keeps no scores, so that selective "
        "recomputation, which drops those, is the same as none",
        request.stack.name);
  } else {
    const Rejection most = biggest_rejection(request, evaluation);
    result.reason = fmt::format(
        "none of the {} plans of the space obeys the rules and constraints; most, {}, fall to {}",
        count_text(evaluation.space), count_text(most.count), most.rule);
  }
  Remedies(request, evaluation, result).list();
  return result;
}

}  // namespace shardwright::planner
