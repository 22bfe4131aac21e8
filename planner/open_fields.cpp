#include "planner/open_fields.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>

#include "core/base/json_reader.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/constraints.hpp"

namespace shardwright::planner {
namespace {

// The layer split is no field of constraints.
constexpr const char* kSplit = "stage_layers";

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// True if the plan is the same whatever the value of the field, so that the space holds only one.
bool has_no_effect(PlanField field, const Plan& plan, const std::vector<std::string>& open) {
  switch (field) {
    case PlanField::Schedule:
    case PlanField::Vpp:
      return plan.pp == 1 && !contains(open, "pp");
    case PlanField::ContextParallel:
      return plan.cp == 1 && !contains(open, "cp");
    default:
      return false;
  }
}

// Leaves no value of the field to be tried but that of the constraint, which the search adds.
void narrow(SearchLimits& limits, PlanField field) {
  switch (field) {
    case PlanField::Vpp:
      limits.max_vpp = 1;
      return;
    case PlanField::ZeroStage:
      return limits.zero_stages.clear();
    case PlanField::RecomputeModules:
      limits.usual_recompute_modules = false;
      return;
    case PlanField::ShardGroup:
      limits.sharding_within_node = false;
      return;
    case PlanField::MicroBatch:
      limits.max_micro_batch = 0;
      return;
    case PlanField::SequenceParallel:
      return limits.sequence_parallel.clear();
    case PlanField::Schedule:
      return limits.schedules.clear();
    case PlanField::ContextParallel:
      return limits.context_parallel.clear();
    case PlanField::OptimizerStates:
      return limits.optimizer_states.clear();
    case PlanField::OffloadOptimizer:
      return limits.offload_optimizer.clear();
    case PlanField::OffloadActivations:
      return limits.offload_activations.clear();
    default:
      return;
  }
}

// The limits of a search for all fields, each with all of its values.
SearchLimits wide_limits(const Scenario& scenario) {
  SearchLimits limits;
  limits.base = scenario.plan;
  limits.rank_orders = {scenario.plan.rank_order};
  limits.replicas = scenario.plan.replicas;
  limits.sequence_parallel = {true, false};
  limits.offload_optimizer = {OptimizerOffload::None, OptimizerOffload::Host,
                              OptimizerOffload::Nvme};
  limits.offload_activations = {false, true};
  limits.partial_recompute = limits.recompute_by_stage = false;
  limits.recompute_layers.resize(static_cast<std::size_t>(scenario.model.layers));
  std::iota(limits.recompute_layers.begin(), limits.recompute_layers.end(), 1);
  return limits;
}

}  // namespace

const std::vector<std::string>& searched_fields() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    const nlohmann::ordered_json plan = to_json(Plan{});
    for (const auto& [name, value] : plan.items()) {
      const auto field = plan_field_named(name);
      if (name == kSplit || (field && *field != PlanField::GlobalBatch)) names.push_back(name);
    }
    return names;
  }();
  return kNames;
}

std::vector<std::string> with_followers(const std::vector<std::string>& open) {
  std::vector<std::string> all = open;
  if (contains(open, "recompute")) all.insert(all.end(), {"recompute_modules", "recompute_layers"});
  if (contains(open, kSplit))
    all.insert(all.end(), {"embedding_counts_as_layer", "head_counts_as_layer"});
  return all;
}

bool opens_world(const std::vector<std::string>& open) {
  const std::array degrees = {"dp", "tp", "pp", "cp"};
  return std::any_of(degrees.begin(), degrees.end(),
                     [&](const char* degree) { return contains(open, degree); });
}

PlanRequest request_for_open(const Scenario& scenario, const std::vector<std::string>& open,
                             std::int64_t gpus) {
  const Plan& plan = scenario.plan;
  PlanRequest request;
  request.model = scenario.model;
  request.cluster = scenario.cluster;
  request.stack = scenario.stack;
  request.gpus = gpus;
  request.global_batch = plan.global_batch;
  request.seq_len = plan.seq_len;
  request.precision = plan.precision;
  request.lora = plan.lora;
  request.top = request.threads = 1;
  request.front = false;
  request.limits = wide_limits(scenario);
  if (!contains(open, kSplit)) request.limits.layer_splits = {LayerSplit::OfBase};
  if (!contains(open, "recompute")) request.limits.recompute = {plan.recompute};
  const std::vector<std::string> all = with_followers(open);
  for (const std::string& name : searched_fields()) {
    const auto field = plan_field_named(name);
    if (!field || contains(all, name) || has_no_effect(*field, plan, open)) continue;
    narrow(request.limits, *field);
    request.constraints.fixed.push_back({*field, {value_of(plan, *field)}});
  }
  return request;
}

std::optional<Plan> choose_open_fields(const Scenario& scenario,
                                       const std::vector<std::string>& open, std::int64_t gpus) {
  PlanRequest request = request_for_open(scenario, open, gpus);
  const std::vector<RecomputePolicy> policies = request.limits.recompute;
  std::optional<Plan> best;
  for (const RecomputePolicy policy : policies) {
    request.limits.recompute = {policy};
    request.advice = policy == policies.back();
    const SearchResult result = search(request);
    if (result.infeasible) best = result.infeasible->nearest;
    if (result.plans.empty()) continue;
    best = result.plans.front().plan;
    break;
  }
  if (!best) return std::nullopt;
  const nlohmann::ordered_json chosen = to_json(*best);
  nlohmann::json plan = to_json(scenario.plan);
  for (const std::string& name : with_followers(open)) plan[name] = chosen.at(name);
  ProblemList problems("plan");
  ObjectReader object(plan, "", problems);
  return read_plan(object);
}

}  // namespace shardwright::planner
