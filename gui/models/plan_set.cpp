#include "gui/models/plan_set.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "gui/models/text.hpp"
#include "planner/objective.hpp"

namespace shardwright::gui {
namespace {

using nlohmann::json;
using planner::PlanCandidate;

void append_new(std::vector<PlanCandidate>& plans, const std::vector<PlanCandidate>& more) {
  for (const PlanCandidate& candidate : more) {
    const bool known = std::any_of(plans.begin(), plans.end(), [&](const PlanCandidate& other) {
      return other.plan == candidate.plan;
    });
    if (!known) plans.push_back(candidate);
  }
}

PlanSet set_of(const planner::PlanRequest& request) {
  PlanSet set;
  set.request = request;
  set.request.progress = {};
  set.request.found = {};
  set.request.stop = {};
  set.request.layer_costs = nullptr;  // The search alone needs them.
  set.origin = u"search"_s;
  return set;
}

sim::TimeBreakdown read_time(ObjectReader object) {
  sim::TimeBreakdown time;
  ObjectReader exposed = object.object("exposed");
  for (const sim::StepPart part : enumerators<sim::StepPart>()) {
    const std::string key = std::string(name_of(part)) + "_s";
    // Files may leave out what few plans have.
    const bool is_rare = part == sim::StepPart::Offload || part == sim::StepPart::Stall;
    if (const std::optional<Axis> axis = sim::exposed_axis(part))
      time.of(part) = Seconds(exposed.number(name_of(*axis), kNonNegative));
    else if (!is_rare || object.has(key))
      time.of(part) = Seconds(object.number(key, kNonNegative));
  }
  time.recompute = Seconds(object.number("recompute_s", kNonNegative));
  return time;
}

sim::MemoryPeak read_memory(ObjectReader object) {
  sim::MemoryPeak memory;
  memory.peak = Bytes(object.number("peak_bytes", kNonNegative));
  ObjectReader breakdown = object.object("breakdown");
  for (const MemoryCategory category : enumerators<MemoryCategory>())
    memory.breakdown[category] = Bytes(breakdown.number(name_of(category), kNonNegative));
  return memory;
}

std::int32_t stage_of(ObjectReader object, std::size_t stages) {
  const IntegerRange range{0, stages == 0 ? 0 : static_cast<std::int64_t>(stages) - 1};
  return static_cast<std::int32_t>(object.integer("stage", range));
}

sim::StepResult read_result(ObjectReader& object) {
  sim::StepResult result;
  result.step = Seconds(object.number("step_s"));
  result.throughput.tokens_per_s_per_gpu = object.number("tokens_per_s_per_gpu");
  result.throughput.tflops_per_gpu = object.number("tflops_per_gpu");
  result.throughput.mfu = object.number("mfu");
  result.throughput.hfu = object.number("hfu");
  for (ObjectReader& stage : object.objects("stages"))
    result.stages.push_back(
        {read_time(stage.object("time")), {}, read_memory(stage.object("memory"))});
  if (result.stages.empty()) {
    object.problem("stages", "nothing", "at least one stage");
    result.stages.emplace_back();
  }
  result.bottleneck = stage_of(object.object("time"), result.stages.size());
  result.fullest = stage_of(object.object("memory"), result.stages.size());
  return result;
}

// Reports broken rules, because a plan that breaks one cannot be simulated again.
void check_rules(const planner::PlanRequest& request, const Plan& plan, ObjectReader& object) {
  const std::string pointer = object.pointer() + "/plan";
  for (const BrokenRule& broken : broken_rules(request.model, &request.cluster, plan, 0, pointer)) {
    object.problems().add(broken.problem.where, broken.problem.found, broken.problem.expected);
  }
}

// A result names the pool beside a plan that lies on it alone, because it writes this plan for a
// cluster that is this pool. The check of rules refuses a plan that has more stages than layers.
void take_pool(Plan& plan, std::int64_t layers, ObjectReader& object) {
  if (names_pools(plan) || plan.pp > layers || !object.has("pools")) return;
  const std::vector<std::string> pools = object.texts("pools");
  if (pools.size() == 1) plan.stage_pools.assign(static_cast<std::size_t>(plan.pp), pools.front());
}

PlanCandidate read_candidate(const planner::PlanRequest& request, ObjectReader& object) {
  PlanCandidate candidate;
  ObjectReader plan = object.object("plan");
  candidate.plan = read_plan(plan);
  take_pool(candidate.plan, request.model.layers, object);
  if (object.problems().empty()) check_rules(request, candidate.plan, object);
  candidate.result = read_result(object);
  const auto stages = static_cast<std::int64_t>(candidate.result.stages.size());
  if (names_pools(candidate.plan) && stages != count_stages(candidate.plan))
    object.problem("stages", std::to_string(stages),
                   fmt::format("{}, as the plan has", count_stages(candidate.plan)));
  candidate.analytic = Seconds(object.number("analytic_s", kNonNegative));
  candidate.bound = Seconds(object.number("bound_s", kNonNegative));
  candidate.dollars_per_step = Dollars(object.number("dollars_per_step", kNonNegative));
  candidate.joules_per_step = Joules(object.number("joules_per_step", kNonNegative));
  candidate.score = object.number("score", {-1e30, 1e30, false});
  return candidate;
}

template <class Load>
void read_part(ObjectReader& inputs, const char* key, const Load& load) {
  const std::string name = inputs.text(key);
  if (name.empty()) return;
  try {
    load(name);
  } catch (const InputError& error) {
    inputs.problem(key, "\"" + name + "\"", error.problems().front().expected);
  }
}

// Reads the inputs of a result. Older versions named them instead of holding them.
void read_request(ObjectReader& root, planner::PlanRequest& request) {
  if (root.has("model")) {
    Scenario parts;
    read_parts(root, parts);
    request.model = std::move(parts.model);
    request.cluster = std::move(parts.cluster);
    request.stack = std::move(parts.stack);
    return;
  }
  ObjectReader inputs = root.object("inputs");
  read_part(inputs, "model", [&](const std::string& name) { request.model = load_model(name); });
  read_part(inputs, "cluster",
            [&](const std::string& name) { request.cluster = load_cluster(name); });
  read_part(inputs, "stack", [&](const std::string& name) { request.stack = load_stack(name); });
}

void take_goal(PlanSet& set) {
  if (set.plans.empty()) return;
  const Plan& plan = set.plans.front().plan;
  set.request.takes_pools = true;
  set.request.gpus = plan.world_size();
  // A plan on one of several pools may use fewer accelerators than others.
  for (const PlanCandidate& candidate : set.plans) {
    if (!set.request.cluster.pools.empty())
      set.request.gpus = std::max(set.request.gpus, candidate.plan.world_size());
  }
  set.request.global_batch = plan.global_batch;
  set.request.seq_len = plan.seq_len;
  set.request.precision = plan.precision;
  set.request.lora = plan.lora;
}

}  // namespace

void mark_front(PlanSet& set) {
  set.on_front.assign(set.plans.size(), false);
  if (!set.request.cluster.pools.empty()) return;
  std::vector<planner::TradeOff> points;
  points.reserve(set.plans.size());
  for (const PlanCandidate& plan : set.plans)
    points.push_back({plan.result.step.value() / plan.tokens(), plan.result.memory().peak.value()});
  for (const std::size_t index : planner::pareto_front(points)) set.on_front[index] = true;
}

Scenario PlanSet::scenario(std::size_t plan) const {
  return planner::scenario_of(request, plans[plan].plan);
}

std::optional<std::size_t> find_plan(const PlanSet& set, const Plan& plan) {
  const auto found =
      std::find_if(set.plans.begin(), set.plans.end(),
                   [&](const PlanCandidate& candidate) { return candidate.plan == plan; });
  if (found == set.plans.end()) return std::nullopt;
  return static_cast<std::size_t>(found - set.plans.begin());
}

std::optional<std::size_t> best_on_pool(const PlanSet& set, const std::string& pool) {
  std::optional<std::size_t> best;
  for (std::size_t plan = 0; plan < set.plans.size(); ++plan) {
    const bool is_on_it = pools_of(set.plans[plan].plan) == std::vector{pool};
    if (is_on_it && (!best || set.plans[plan].score < set.plans[*best].score)) best = plan;
  }
  return best;
}

PlanSet plan_set_of(const planner::PlanRequest& request, const planner::SearchResult& result) {
  PlanSet set = set_of(request);
  set.plans = result.plans;
  append_new(set.plans, result.front);
  append_new(set.plans, result.layouts);
  for (const planner::PoolAlone& pool : result.pools)
    if (pool.best) append_new(set.plans, {*pool.best});
  if (result.placed && result.placed->best) append_new(set.plans, {*result.placed->best});
  set.counts = result.counts;
  set.wall_s = result.wall_s;
  set.complete = !result.partial;
  set.infeasible = result.infeasible;
  mark_front(set);
  return set;
}

PlanSet plan_set_so_far(const planner::PlanRequest& request, const std::vector<PlanCandidate>& best,
                        const std::vector<PlanCandidate>& earlier) {
  PlanSet set = set_of(request);
  set.plans = best;
  set.complete = false;
  keep_plans(set, earlier);
  return set;
}

void keep_plans(PlanSet& set, const std::vector<PlanCandidate>& plans) {
  append_new(set.plans, plans);
  std::stable_sort(set.plans.begin(), set.plans.end(),
                   [](const auto& a, const auto& b) { return a.score < b.score; });
  mark_front(set);
}

PlanSet plan_set_of(const Scenario& scenario, const QString& origin) {
  PlanSet set;
  set.request.model = scenario.model;
  set.request.cluster = scenario.cluster;
  set.request.stack = scenario.stack;
  set.plans = {planner::candidate_of(scenario)};
  set.origin = origin;
  take_goal(set);
  mark_front(set);
  return set;
}

PlanSet read_plan_set(const json& document, const std::string& source) {
  ProblemList problems(source);
  ObjectReader root(document, "", problems);
  PlanSet set;
  read_request(root, set.request);
  for (ObjectReader& plan : root.objects("plans"))
    set.plans.push_back(read_candidate(set.request, plan));
  std::vector<PlanCandidate> more;
  if (root.has("front")) {
    for (ObjectReader& plan : root.objects("front"))
      more.push_back(read_candidate(set.request, plan));
  }
  const auto add_best = [&](ObjectReader of) {
    if (!of.has("best")) return;
    ObjectReader best = of.object("best");
    more.push_back(read_candidate(set.request, best));
  };
  if (root.has("pools"))
    for (ObjectReader& pool : root.objects("pools")) add_best(pool);
  if (root.has("placed")) add_best(root.object("placed"));
  problems.throw_if_any();
  append_new(set.plans, more);
  set.origin = to_qstring(source);
  take_goal(set);
  mark_front(set);
  return set;
}

}  // namespace shardwright::gui
