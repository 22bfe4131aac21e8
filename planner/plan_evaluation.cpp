#include "planner/plan_evaluation.hpp"

#include <tbb/enumerable_thread_specific.h>
#include <tbb/parallel_for.h>

#include <algorithm>
#include <atomic>

#include "core/lowering/stage_states.hpp"
#include "core/program/groups.hpp"
#include "core/spec/adapters.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/layer_cost_cache.hpp"
#include "sim/step/analytic.hpp"
#include "sim/step/layer_costs.hpp"

namespace shardwright::planner {
namespace {

// The average time of a step in which the accelerators of a stage compute. No simulation finds
// less.
Seconds computing(const sim::StageCosts& costs) {
  return Seconds(sim::mean_over_stages(costs, &sim::StageCost::compute));
}

double bound_of_score(const PlanRequest& request, const Plan& plan, const sim::StageCosts& costs,
                      Seconds bound) {
  sim::StepResult result;
  result.step = bound;
  result.stages.resize(1);
  result.stages[0].memory.peak = costs.memory.peak;
  const StepExpense expense = step_expense(request.cluster, plan, bound, computing(costs));
  // The simulation adds in another order.
  constexpr double kRounding = 1.0 - 1e-9;
  return score(request.objective, plan, result, expense) * kRounding;
}

class CutEvaluation {
 public:
  CutEvaluation(const PlanRequest& request, const Plan& cut, std::uint32_t number,
                sim::ScheduleProfiles& profiles)
      : request_(request),
        cut_(cut),
        number_(number),
        available_(available_memory(request)),
        most_(request.look_beyond_margin ? whole_memory(request) : available_),
        hopeless_(!request.advice && least_memory(request) > most_),
        profiles_(profiles) {
    result_.broken_rules.assign(all_plan_rules().size(), 0);
    result_.broken_constraints.assign(
        request.constraints.fixed.size() + request.constraints.forbidden.size(), 0);
  }

  Evaluation run() {
    for_each_plan(space_of(request_), cut_, [this](const Plan& plan) { look_at(plan); });
    return std::move(result_);
  }

 private:
  void look_at(const Plan& plan) {
    const auto index = static_cast<std::uint32_t>(result_.space++);
    if (const auto rule = first_broken_rule(request_.model, request_.cluster, plan, request_.gpus,
                                            restricting_stack(request_))) {
      ++result_.broken_rules[static_cast<std::size_t>(*rule)];
      if (*rule == PlanRule::GlobalBatch) result_.undivided.insert(plan.dp);
      return;
    }
    const auto constraint = first_broken_constraint(request_.constraints, plan);
    if (constraint) {
      ++result_.broken_constraints[*constraint];
      return;
    }
    const bool validated = !request_.validated || request_.validated(plan);
    if (request_.validated_only && !validated) {
      ++result_.not_validated;
      return;
    }
    if (!hopeless_) price_layers(plan);
    if (hopeless_ || states_exceed(plan)) {
      ++result_.too_large;
      return;
    }
    const Bytes memory = costs_->memory(plan);
    if (memory > available_) {
      ++result_.too_large;
      if (memory.value() < result_.tightest.memory) result_.tightest = {memory.value(), plan};
      if (memory > most_) return;
    }
    const sim::StageCosts& costs = costs_->costs();
    const Seconds bound = sim::bound_step(costs, plan);
    (memory > available_ ? result_.beyond : result_.plans)
        .push_back({bound_of_score(request_, plan, costs, bound), bound.value(),
                    sim::analytic_step(costs, plan, bound).value(), costs.memory.peak.value(),
                    number_, index, static_cast<std::uint16_t>(plan.pp), plan.zero_stage == 3,
                    validated});
  }

  // If the pipeline axis is the outermost, its depth does not matter to the groups within a stage.
  void price_layers(const Plan& plan) {
    const bool outermost = plan.rank_order.back() == Axis::Pipeline;
    const std::int64_t pp = outermost ? 1 : plan.pp;
    if (layers_ && priced_pp_ == pp) return;
    Plan cut = cut_;
    cut.pp = priced_pp_ = pp;
    cut.dp = request_.gpus / (cut.tp * cut.cp * pp);
    layers_ = request_.layer_costs
                  ? request_.layer_costs->of(request_.model, request_.cluster, request_.stack, cut)
                  : std::make_shared<const sim::LayerCosts>(
                        sim::layer_costs(request_.model, cut, request_.cluster, request_.stack));
    costs_.emplace(sim::CutContext{request_.model, request_.cluster, request_.stack, *layers_},
                   profiles_);
    parameters_ = {};
    for (const std::int32_t kind : layers_->kind_of_layer) {
      const auto& kinds = layers_->kept.empty() ? layers_->recomputed : layers_->kept;
      add_parameters(kinds[static_cast<std::size_t>(kind)]);
    }
    add_parameters(layers_->embedding);
    add_parameters(layers_->head);
  }

  void add_parameters(const sim::PartCost& part) { parameters_ += part.parameters; }

  // True if the states that an average stage holds from step to step exceed both the memory and the
  // peak of the tightest plan: then this plan neither fits nor is tighter.
  bool states_exceed(const Plan& plan) const {
    const auto stages = static_cast<double>(plan.pp);
    const PartParameters share{.dense = parameters_.dense / stages,
                               .expert = parameters_.expert / stages,
                               .frozen_dense = parameters_.frozen_dense / stages,
                               .frozen_expert = parameters_.frozen_expert / stages};
    // The peak adds in another order.
    constexpr double kRounding = 1.0 - 1e-9;
    double states = 0.0;
    for (const PersistentMemory& state : persistent_memory(share, plan, request_.stack))
      states += state.bytes.value() * kRounding;
    return Bytes(states) > most_ && states > result_.tightest.memory;
  }

  const PlanRequest& request_;
  const Plan& cut_;
  std::uint32_t number_;
  Bytes available_;
  // The largest peak of the plans that are looked at.
  Bytes most_;
  bool hopeless_;
  sim::ScheduleProfiles& profiles_;
  std::shared_ptr<const sim::LayerCosts> layers_;
  std::optional<sim::StageCostCache> costs_;
  // Parameters of all layers, the embedding and the head, on one rank of each.
  PartParameters parameters_;
  std::int64_t priced_pp_ = 0;
  Evaluation result_;
};

void add_counts(std::vector<std::int64_t>& sum, const std::vector<std::int64_t>& more) {
  sum.resize(std::max(sum.size(), more.size()));
  for (std::size_t i = 0; i < more.size(); ++i) sum[i] += more[i];
}

// The layer cut of any plan: its fields that the ops of one layer depend on, and representative
// values of the others (layer_cuts()).
Plan layer_cut_of(const ModelSpec& model, const Plan& plan) {
  Plan cut = plan;
  cut.vpp = 1;
  cut.stage_layers.clear();
  if (plan.rank_order.back() == Axis::Pipeline) {
    cut.dp = plan.dp * plan.pp;
    cut.pp = 1;
  }
  cut.shard_group = 0;
  if (!shards_parameters(model, plan)) cut.zero_stage = 0;
  if (plan.recompute == RecomputePolicy::None || plan.recompute == RecomputePolicy::Full) {
    cut.recompute = RecomputePolicy::Full;
    cut.recompute_layers = 1;
    cut.recompute_interval = 1;
    cut.stage_recompute_layers.clear();
  }
  return cut;
}

}  // namespace

std::int64_t Evaluation::broken(PlanRule rule) const {
  const auto index = static_cast<std::size_t>(rule);
  return index < broken_rules.size() ? broken_rules[index] : 0;  // empty without a cut
}

void Evaluation::add(const Evaluation& other) {
  space += other.space;
  too_large += other.too_large;
  not_validated += other.not_validated;
  add_counts(broken_rules, other.broken_rules);
  add_counts(broken_constraints, other.broken_constraints);
  plans.insert(plans.end(), other.plans.begin(), other.plans.end());
  beyond.insert(beyond.end(), other.beyond.begin(), other.beyond.end());
  if (other.tightest.memory < tightest.memory) tightest = other.tightest;
  undivided.insert(other.undivided.begin(), other.undivided.end());
}

SearchCounts counts_of(const PlanRequest& request, const Evaluation& evaluation,
                       std::int64_t simulated) {
  SearchCounts counts;
  counts.space = evaluation.space;
  counts.evaluated = static_cast<std::int64_t>(evaluation.plans.size());
  counts.simulated = simulated;
  const auto add = [&](const std::string& rule, std::int64_t count) {
    if (count > 0) counts.rejected.push_back({rule, count});
  };
  for (std::size_t i = 0; i < evaluation.broken_rules.size(); ++i)
    add(name_of(static_cast<PlanRule>(i)), evaluation.broken_rules[i]);
  const std::vector<Constraint>& fixed = request.constraints.fixed;
  for (std::size_t i = 0; i < evaluation.broken_constraints.size(); ++i) {
    const std::string name =
        i < fixed.size() ? "fix " + to_string(fixed[i])
                         : "forbid " + to_string(request.constraints.forbidden[i - fixed.size()]);
    add(name, evaluation.broken_constraints[i]);
  }
  add("validated ground", evaluation.not_validated);
  add("memory", evaluation.too_large);
  return counts;
}

Bytes available_memory(const PlanRequest& request) {
  return whole_memory(request) * request.memory_share;
}

Bytes whole_memory(const PlanRequest& request) {
  const Bytes device = request.cluster.accelerator.memory * request.max_memory_ratio;
  return request.max_memory > Bytes() ? std::min(request.max_memory, device) : device;
}

Bytes least_memory(const PlanRequest& request) {
  const double parameters = static_cast<double>(count_parameters(request.model).total);
  const double each = parameters / static_cast<double>(request.gpus);
  // Frozen weights alone; at most all of them are in 4 bits.
  const bool narrow = request.lora && request.lora->base == FrozenFormat::Nf4;
  const double element = storage_bytes(request.precision).value();
  const PartParameters share =
      request.lora ? PartParameters{.frozen_dense = each * (narrow ? kNf4Bytes / element : 1.0)}
                   : PartParameters{.dense = each};
  auto least = infinite<Bytes>();
  for (const int zero_stage : request.limits.zero_stages) {
    for (const OptimizerStates states : request.limits.optimizer_states) {
      Plan plan;
      plan.zero_stage = zero_stage;
      plan.precision = request.precision;
      plan.optimizer_states = states;
      Bytes sum;
      for (const PersistentMemory& state : persistent_memory(share, plan, request.stack))
        sum += state.bytes;
      least = std::min(least, sum);
    }
  }
  return least;
}

SpaceRequest space_of(const PlanRequest& request) {
  return {request.model,   request.cluster,   request.stack, request.gpus,  request.global_batch,
          request.seq_len, request.precision, request.lora,  request.limits};
}

const StackSpec* restricting_stack(const PlanRequest& request) {
  return request.limits.base ? nullptr : &request.stack;
}

ClosedForms closed_forms(const PlanRequest& request, const Plan& plan) {
  sim::ScheduleProfiles profiles;
  const sim::LayerCosts layers = sim::layer_costs(request.model, layer_cut_of(request.model, plan),
                                                  request.cluster, request.stack);
  sim::StageCostCache cache({request.model, request.cluster, request.stack, layers}, profiles);
  cache.memory(plan);
  const sim::StageCosts& costs = cache.costs();
  const Seconds bound = sim::bound_step(costs, plan);
  return {bound, sim::analytic_step(costs, plan, bound), costs.memory.peak};
}

Evaluation evaluate_cut(const PlanRequest& request, const std::vector<Plan>& cuts,
                        std::uint32_t cut, sim::ScheduleProfiles& profiles) {
  return CutEvaluation(request, cuts[cut], cut, profiles).run();
}

Evaluation evaluate_space(const PlanRequest& request, const std::vector<Plan>& cuts,
                          const std::function<bool(const Evaluation& of_cut)>& enough) {
  std::vector<Evaluation> of_cut(cuts.size());
  const auto store = std::make_shared<sim::ScheduleProfileStore>();
  tbb::enumerable_thread_specific<sim::ScheduleProfiles> profiles(
      [&store] { return sim::ScheduleProfiles(store); });
  std::atomic<bool> stopped = false;
  tbb::parallel_for(std::size_t{0}, cuts.size(), [&](std::size_t cut) {
    if (stopped || request.stop.stop_requested()) return;
    of_cut[cut] = evaluate_cut(request, cuts, static_cast<std::uint32_t>(cut), profiles.local());
    if (enough(of_cut[cut])) stopped = true;
  });
  Evaluation all;
  for (const Evaluation& each : of_cut) all.add(each);
  return all;
}

bool has_feasible_plan(const PlanRequest& request) {
  const auto fits = [](const Evaluation& of_cut) { return !of_cut.plans.empty(); };
  return fits(evaluate_space(request, layer_cuts(space_of(request)), fits));
}

Plan find_plan(const PlanRequest& request, const std::vector<Plan>& cuts,
               const EvaluatedPlan& evaluated) {
  Plan found;
  std::uint32_t index = 0;
  for_each_plan(space_of(request), cuts[evaluated.cut], [&](const Plan& plan) {
    if (index++ == evaluated.index) found = plan;
  });
  return found;
}

}  // namespace shardwright::planner
