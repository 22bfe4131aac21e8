#include "planner/forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/lowering/lowering.hpp"
#include "core/lowering/stage_states.hpp"
#include "core/program/rank_grid.hpp"
#include "core/spec/pools.hpp"
#include "planner/objective.hpp"
#include "planner/replan.hpp"
#include "planner/stage_plans.hpp"
#include "sim/run/checkpoint_interval.hpp"
#include "sim/run/profile_model.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::planner {
namespace {

// The interval and the gains compare variants of runs that share their failures. As many runs are
// enough as have so many interruptions together.
constexpr double kInterruptionsOfVariants = 50'000.0;
constexpr double kFewestRuns = 100.0;
constexpr double kSecondsPerHour = 3600.0;
// The shares of the work, as reported, before the checkpoint interval, the runs and the gains.
constexpr double kBeforeInterval = 0.1, kBeforeRuns = 0.4, kBeforeGains = 0.6;

void report(const ForecastRequest& request, double share) {
  if (request.progress) request.progress(share);
}

// The trained parameters of the model: those of a plan that splits nothing.
double saved_parameters(const Scenario& scenario) {
  Plan whole;
  whole.seq_len = scenario.plan.seq_len;
  whole.precision = scenario.plan.precision;
  whole.multi_token_prediction = scenario.plan.multi_token_prediction;
  whole.lora = scenario.plan.lora;
  const Program program = lower(scenario.model, whole, scenario.stack);
  return program.stages.front().parameters.dense + program.stages.front().parameters.expert;
}

// The bytes of the states that a checkpoint holds: of each trained parameter its weight and what
// the optimizer keeps of it.
Bytes checkpoint_bytes(const Scenario& scenario, const Bytes& per_parameter) {
  const Plan& plan = scenario.plan;
  const double parameters = saved_parameters(scenario);
  if (per_parameter > Bytes()) return per_parameter * parameters;
  const AdamStates adam = adam_states(scenario.stack, plan);
  const bool fp32 = plan.precision == Precision::Fp32 || plan.precision == Precision::Tf32;
  return (storage_bytes(plan.precision) + (fp32 ? Bytes() : adam.master_weight) + adam.moments) *
         parameters;
}

// The copies of all states that data-parallel ranks hold together.
std::int64_t copies_of_states(const Plan& plan) {
  const std::int64_t ranks = plan.dp * plan.cp;
  if (plan.zero_stage == 0) return ranks;
  return plan.shard_group > 0 ? std::max<std::int64_t>(1, ranks / plan.shard_group) : 1;
}

std::int64_t accelerators_of_node(const ClusterSpec& cluster) {
  return std::max<std::int64_t>(1, cluster.node.accelerators);
}

// The fewest nodes that hold copies of one state, of all states of these groups. On several pools
// the ranks of a pool follow each other and begin with a node.
std::int64_t fewest_nodes(const Scenario& scenario, Group copies) {
  const Plan& plan = scenario.plan;
  std::vector<std::int64_t> accelerators_of_nodes;
  for (std::int32_t stage = 0; stage < count_stages(plan); ++stage)
    accelerators_of_nodes.push_back(
        accelerators_of_node(stage_cluster(scenario.cluster, plan, stage)));
  const RankGrid grid(plan);
  const GroupTable table = grid.table(copies);
  std::int64_t fewest = plan.world_size();
  for (std::uint32_t group = 0; group < table.groups(); ++group) {
    std::int64_t nodes = 0;
    std::pair<std::int32_t, std::int64_t> last{-1, -1};
    for (const std::int32_t rank : table.members_of(group)) {
      const auto stage = static_cast<std::size_t>(grid.locate(rank).stage);
      const std::pair node{pool_of_stage(plan, stage), rank / accelerators_of_nodes[stage]};
      nodes += node != last ? 1 : 0;
      last = node;
    }
    fewest = std::min(fewest, nodes);
  }
  return fewest;
}

// The copies of all states that survive the loss of any one node, and one more.
std::int64_t copies_on_nodes(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (copies_of_states(plan) == 1) return 1;
  const bool sharded = plan.zero_stage > 0;
  const std::int64_t dense = fewest_nodes(scenario, sharded ? Group::ShardOuter : Group::Data);
  if (!scenario.model.moe) return dense;
  const Group experts = sharded ? Group::ExpertShardOuter : Group::ExpertData;
  return std::min(dense, fewest_nodes(scenario, experts));
}

// The nodes of a plan, and the same weighted by the rates of their pools' failures.
struct PlanNodes {
  std::int64_t count = 0;
  double failing = 0.0;
};

PlanNodes nodes_of(const ClusterSpec& cluster, const Plan& plan, const FleetSpec& fleet) {
  PlanNodes nodes;
  const auto add = [&](const ClusterSpec& pool, std::int64_t ranks) {
    const std::int64_t per_node = accelerators_of_node(pool);
    const std::int64_t count = (ranks + per_node - 1) / per_node;
    nodes.count += count;
    nodes.failing += static_cast<double>(count) * fleet.rate_of(pool.name);
  };
  if (!names_pools(plan)) add(cluster, plan.world_size());
  for (const ClusterSpec& pool : pool_clusters(cluster, plan))
    add(pool, ranks_on_pool(plan, pool.name));
  return nodes;
}

PlanNodes nodes_of(const ForecastRequest& request) {
  return nodes_of(request.scenario.cluster, request.scenario.plan, request.run.fleet);
}

double batch_tokens(const Plan& plan) {
  return static_cast<double>(plan.global_batch) * static_cast<double>(plan.seq_len);
}

ForecastStage simulated_stage(const ForecastRequest& request, std::string name, const Plan& plan,
                              double tokens) {
  Scenario scenario = request.scenario;
  scenario.plan = plan;
  ForecastStage stage;
  stage.name = std::move(name);
  stage.plan = plan;
  stage.tokens = tokens;
  stage.steps = static_cast<std::int64_t>(std::ceil(tokens / batch_tokens(plan) * (1.0 - 1e-12)));
  stage.step = sim::simulate_step(scenario);
  return stage;
}

// The tokens that the stages of the profile leave; adds problems.
double open_tokens(const ForecastRequest& request, ProblemList& problems) {
  double stated = 0.0;
  for (const RunStage& stage : request.run.stages) stated += stage.tokens;
  if (stated <= request.tokens) return request.tokens - stated;
  problems.add("/stages", fmt::format("{:.6g} tokens in all stages", stated),
               fmt::format("at most the {:.6g} of the run", request.tokens));
  return 0.0;
}

// Adds what the profile asks for and plans on several pools do not have, and the names of pools
// that the cluster does not have.
void check_pools(const ForecastRequest& request, ProblemList& problems) {
  const Scenario& scenario = request.scenario;
  if (request.run.recovery.shrinks && names_pools(scenario.plan))
    problems.add("/recovery/shrinks", "true",
                 "false: plans for fewer nodes of several pools are not searched");
  const std::vector<std::string> names = names_of_pools(scenario.cluster);
  for (std::size_t i = 0; i < request.run.fleet.pools.size(); ++i) {
    const std::string& pool = request.run.fleet.pools[i].pool;
    if (std::ranges::find(names, pool) == names.end())
      problems.add(fmt::format("/failures/pools/{}/pool", i), fmt::format("\"{}\"", pool),
                   fmt::format("a pool of the cluster: {}", fmt::join(names, ", ")));
  }
}

// The speeds of a run that lacks nodes, which the planner finds for a few of them.
std::vector<double> shrunk_speeds(const ForecastRequest& request, std::int64_t nodes) {
  constexpr std::int64_t kMostLacking = 8;
  const Scenario& scenario = request.scenario;
  const std::int64_t per_node = accelerators_of_node(scenario.cluster);
  const sim::StepResult whole = sim::simulate_step(scenario);
  const std::vector<Plan> plans = plans_for_fewer_ranks(scenario, request.options.stop);
  std::vector<double> speeds;
  for (std::int64_t lacking = 1; lacking <= std::min(kMostLacking, nodes - 1); ++lacking) {
    if (request.options.stop.stop_requested()) break;
    const std::int64_t left = scenario.plan.world_size() - lacking * per_node;
    const double speed = shrunk_speed(scenario, plans, whole, left);
    // With more nodes a run can always go on as with fewer.
    speeds.push_back(speeds.empty() ? speed : std::min(speed, speeds.back()));
  }
  return speeds;
}

sim::RunOptions options_of_variants(const ForecastRequest& request, const sim::RunModel& model) {
  const double each = std::max(1.0, model.total_work() / sim::job_mtbf(model));
  const double runs = std::max(kFewestRuns, kInterruptionsOfVariants / each);
  sim::RunOptions options = request.options;
  options.runs = std::min({options.runs * 5, std::int64_t{5000}, static_cast<std::int64_t>(runs)});
  return options;
}

// Whole steps, at least one, and no shorter than `least`.
Seconds in_steps(Seconds interval, Seconds step, Seconds least) {
  return std::max({1.0, std::round(interval / step), std::ceil(least / step * (1.0 - 1e-9))}) *
         step;
}

void find_intervals(Forecast& forecast, const ForecastRequest& request) {
  sim::RunModel& model = forecast.model;
  const Seconds mtbf = sim::job_mtbf(model, true);
  forecast.young_interval = sim::young_interval(model.checkpoint.stall, mtbf);
  forecast.daly_interval = sim::daly_interval(model.checkpoint.stall, mtbf);
  const sim::RunOptions options = options_of_variants(request, model);
  const Seconds step = model.total_work() / static_cast<double>(forecast.steps);
  const Seconds least = std::max(step, sim::least_interval(model.checkpoint));
  forecast.best_interval = std::min(
      model.total_work(), in_steps(sim::best_interval(model, options, least), step, least));
  if (model.interval <= Seconds()) model.interval = forecast.best_interval;
  model.interval = std::min(model.interval, model.total_work());
}

sim::RunModel with_error(sim::RunModel model, StepSpread step_interval) {
  model.step_low = step_interval.low;
  model.step_high = step_interval.high;
  return model;
}

double mean_gpus(const std::vector<ForecastStage>& stages) {
  Seconds time, gpu_time;
  for (const ForecastStage& stage : stages) {
    const Seconds steps = static_cast<double>(stage.steps) * stage.step.step;
    time += steps;
    gpu_time += steps * static_cast<double>(stage.plan.world_size());
  }
  return gpu_time / time;
}

// Accelerators compute in these parts, and wait at idle power in the others.
bool is_busy(sim::RunPart part) {
  return part == sim::RunPart::Step || part == sim::RunPart::Evaluation ||
         part == sim::RunPart::LostWork;
}

Dollars cost_of(DollarsPerSecond price, double gpu_hours) {
  return price * Seconds(gpu_hours * kSecondsPerHour);
}

// The power that all accelerators of the plan draw while they wait.
Watts idle_power_of(const Scenario& scenario) {
  const Seconds second(1.0);
  const Plan& plan = scenario.plan;
  if (!names_pools(plan))
    return step_expense(scenario.cluster, plan, second, Seconds()).energy / second;
  const std::vector<Seconds> no_work(static_cast<std::size_t>(count_stages(plan)));
  return step_expense(scenario.cluster, plan, second, no_work).energy / second;
}

// The accelerators of a spare node: on several pools their mean, because there are spares of each
// pool.
double accelerators_of_spare(const ForecastRequest& request) {
  const Scenario& scenario = request.scenario;
  return !names_pools(scenario.plan) ? static_cast<double>(scenario.cluster.node.accelerators)
                                     : static_cast<double>(scenario.plan.world_size()) /
                                           static_cast<double>(nodes_of(request).count);
}

void add_expenses(Forecast& forecast, const ForecastRequest& request) {
  Scenario scenario = request.scenario;
  ClusterSpec& cluster = scenario.cluster;
  const RunSpec& run = request.run;
  if (run.power_usage_effectiveness > 0.0)
    cluster.power_usage_effectiveness = run.power_usage_effectiveness;
  forecast.power_usage_effectiveness = cluster.power_usage_effectiveness;
  const EnumArray<Contract, DollarsPerSecond> prices =
      contract_prices(run.price, accelerator_price(cluster, scenario.plan));
  const DollarsPerSecond price = prices[run.price.contract];
  const Watts idle_power =
      idle_power_of(scenario) * (forecast.mean_gpus / static_cast<double>(forecast.gpus));
  Joules busy;
  Seconds work;
  for (const ForecastStage& stage : forecast.stages) {
    const auto steps = static_cast<double>(stage.steps);
    work += steps * stage.step.step;
    scenario.plan = stage.plan;
    busy += steps * step_expense(scenario, stage.step).energy;
  }
  const Watts busy_power = busy / work;
  const double gpus = forecast.mean_gpus;
  for (const sim::RunPart part : enumerators<sim::RunPart>()) {
    const Seconds time = forecast.statistics.mean[part];
    const double hours = gpus * time.value() / kSecondsPerHour;
    forecast.expenses[part] = {hours, cost_of(price, hours),
                               (is_busy(part) ? busy_power : idle_power) * time};
  }
  const double spare_gpus =
      static_cast<double>(forecast.model.spare_nodes()) * accelerators_of_spare(request);
  const Seconds wall = forecast.statistics.mean_wall();
  const double hours = spare_gpus * wall.value() / kSecondsPerHour;
  forecast.spares = {hours, cost_of(price, hours), idle_power * wall * (spare_gpus / gpus)};
  for (const Contract contract : enumerators<Contract>())
    forecast.costs[contract] = cost_of(prices[contract], forecast.total().gpu_hours + hours);
}

// One thing that a gain has less of.
struct LessOf {
  const char* name;
  std::function<void(sim::RunModel&)> change;
};

constexpr double kLess = 0.9;

// The steps of the stages, each of which takes this part of its time.
std::vector<sim::StageSteps> stage_steps(const ForecastRequest& request,
                                         const std::vector<ForecastStage>& stages, double part) {
  std::vector<sim::StageSteps> steps;
  for (const ForecastStage& stage : stages) {
    const PlanNodes nodes = nodes_of(request.scenario.cluster, stage.plan, request.run.fleet);
    steps.push_back({static_cast<double>(stage.steps), batch_tokens(stage.plan),
                     part * stage.step.step, nodes.count,
                     nodes.failing / static_cast<double>(nodes.count)});
  }
  return steps;
}

// `shorter` is the work with shorter steps: those that wait for their input wait longer.
std::vector<LessOf> less_of_each(const sim::RunTimes& shorter) {
  using sim::RunModel;
  using sim::RunPart;
  return {
      {"step_time", [shorter](RunModel& model) { model.work = shorter; }},
      {"failures",
       [](RunModel& model) {
         for (sim::FailureProcess& process : model.failures) process.kept = kLess;
       }},
      {"detection",
       [](RunModel& model) {
         for (sim::FailureProcess& process : model.failures) process.detection *= kLess;
         model.manual_time *= kLess;
       }},
      {"restart",
       [](RunModel& model) {
         model.restart *= kLess;
         model.checkpoint.load *= kLess;
         model.checkpoint.load_stored *= kLess;
         model.load_replica *= kLess;
         model.swap *= kLess;
       }},
      {"repair",
       [](RunModel& model) {
         model.repair *= kLess;
         for (sim::FailureProcess& process : model.failures) process.repair *= kLess;
       }},
      {"checkpoint_stall",
       [](RunModel& model) {
         sim::CheckpointCost& cost = model.checkpoint;
         for (Seconds* time : {&cost.safe, &cost.stored, &cost.save})
           *time -= (1.0 - kLess) * cost.stall;
         cost.stall *= kLess;
       }},
      {"startup", [](RunModel& model) { model.startup *= kLess; }},
      {"evaluation", [](RunModel& model) { model.work[RunPart::Evaluation] *= kLess; }},
      {"stragglers", [](RunModel& model) { model.work[RunPart::Straggler] *= kLess; }},
      {"input_stalls", [](RunModel& model) { model.work[RunPart::InputStall] *= kLess; }},
  };
}

void find_gains(Forecast& forecast, const ForecastRequest& request) {
  const sim::RunModel& model = forecast.model;
  const sim::RunOptions options = options_of_variants(request, model);
  const Seconds wall = sim::simulate_runs(model, options).mean_wall();
  const std::vector<LessOf> all =
      less_of_each(sim::work_of(request.run, stage_steps(request, forecast.stages, kLess)));
  const auto most = static_cast<double>(all.size() + kEnumCount<FailureCause>);
  const auto add = [&](const std::string& name, const auto& change) {
    if (request.options.stop.stop_requested()) return;
    report(request, kBeforeGains +
                        (1.0 - kBeforeGains) * (static_cast<double>(forecast.gains.size()) / most));
    sim::RunModel changed = model;
    change(changed);
    const Seconds shorter = sim::simulate_runs(changed, options).mean_wall();
    forecast.gains.push_back({name, 1.0 - shorter / wall});
  };
  for (const LessOf& each : all) add(each.name, each.change);
  for (const FailureCause cause : enumerators<FailureCause>()) {
    if (model.failures[cause].rate <= Hertz()) continue;
    add(fmt::format("failures_{}", name_of(cause)),
        [&](sim::RunModel& changed) { changed.failures[cause].kept = kLess; });
  }
  std::ranges::stable_sort(forecast.gains, std::greater<>(), &RunGain::share);
}

// What errors call the run profile.
std::string profile_of(const ForecastRequest& request) {
  return request.run_file.empty() ? fmt::format("run profile {}", request.run.name)
                                  : request.run_file;
}

}  // namespace

EnumArray<Contract, DollarsPerSecond> contract_prices(const PriceSpec& price,
                                                      DollarsPerSecond of_cluster) {
  const DollarsPerSecond on_demand =
      price.dollars_per_gpu_hour > 0.0 ? dollars_per_hour(price.dollars_per_gpu_hour) : of_cluster;
  return {{on_demand, on_demand * price.reserved, on_demand * price.spot}};
}

RunExpense Forecast::total() const {
  RunExpense sum;
  for (const RunExpense& each : expenses) {
    sum.gpu_hours += each.gpu_hours;
    sum.cost += each.cost;
    sum.energy += each.energy;
  }
  return sum;
}

double Forecast::tokens_at(double share) const {
  Seconds left;
  for (const ForecastStage& stage : stages)
    left += static_cast<double>(stage.steps) * stage.step.step;
  left *= share;
  double tokens = 0.0;
  for (const ForecastStage& stage : stages) {
    const Seconds time = static_cast<double>(stage.steps) * stage.step.step;
    tokens += stage.tokens * std::clamp(left / time, 0.0, 1.0);
    left -= time;
  }
  return tokens;
}

const ForecastStage* stage_beyond_memory(const std::vector<ForecastStage>& stages,
                                         const ClusterSpec& cluster) {
  const auto beyond = [&](const ForecastStage& stage) {
    return stage.step.memory().peak -
           stage_cluster(cluster, stage.plan, stage.step.fullest).accelerator.memory;
  };
  const auto fullest = std::ranges::max_element(stages, {}, beyond);
  return fullest == stages.end() || beyond(*fullest) <= Bytes() ? nullptr : &*fullest;
}

void require_memory(const ForecastRequest& request, const std::vector<ForecastStage>& stages) {
  const ForecastStage* stage = stage_beyond_memory(stages, request.scenario.cluster);
  if (stage == nullptr) return;
  const AcceleratorSpec accelerator =
      stage_cluster(request.scenario.cluster, stage->plan, stage->step.fullest).accelerator;
  throw InputError(
      profile_of(request),
      {{"/stages",
        fmt::format("stage {}, which needs {} per accelerator", stage->name,
                    format_bytes(stage->step.memory().peak)),
        fmt::format("at most the {} of {}: degrees of its own for the stage, as in \"cp\": 8",
                    format_bytes(accelerator.memory), accelerator.name)}});
}

std::vector<ForecastStage> run_stages(const ForecastRequest& request) {
  const RunSpec& run = request.run;
  ProblemList problems(profile_of(request));
  check_pools(request, problems);
  const double open = open_tokens(request, problems);
  const std::vector<Plan> plans = stage_plans(request.scenario, run.stages, problems);
  problems.throw_if_any();
  std::vector<ForecastStage> stages;
  bool takes_open = false;
  for (std::size_t i = 0; i < run.stages.size(); ++i) {
    const RunStage& stage = run.stages[i];
    const double tokens = stage.tokens > 0.0 ? stage.tokens : open;
    takes_open = takes_open || stage.tokens == 0.0;
    if (tokens > 0.0) stages.push_back(simulated_stage(request, stage.name, plans[i], tokens));
  }
  if (!takes_open && open > 0.0)
    stages.push_back(simulated_stage(request, "plan", request.scenario.plan, open));
  return stages;
}

sim::RunModel run_model(const ForecastRequest& request, const std::vector<ForecastStage>& stages) {
  const Plan& plan = request.scenario.plan;
  const std::int64_t nodes = nodes_of(request).count;
  const std::vector<sim::StageSteps> steps = stage_steps(request, stages, 1.0);
  const Bytes checkpoint =
      checkpoint_bytes(request.scenario, request.run.checkpoint.bytes_per_parameter);
  sim::RunModel model = sim::run_model(
      request.run, steps,
      {nodes, checkpoint, plan.dp, copies_of_states(plan), copies_on_nodes(request.scenario)});
  if (request.run.recovery.shrinks) model.shrunk_speeds = shrunk_speeds(request, nodes);
  return model;
}

Forecast forecast(const ForecastRequest& request, std::vector<ForecastStage> stages,
                  StepSpread step_interval) {
  Forecast forecast;
  forecast.stages = std::move(stages);
  for (const ForecastStage& stage : forecast.stages) forecast.steps += stage.steps;
  forecast.gpus = request.scenario.plan.world_size();
  forecast.model = run_model(request, forecast.stages);
  report(request, kBeforeInterval);
  find_intervals(forecast, request);
  report(request, kBeforeRuns);
  // Means are those of the predicted step: its error is skewed. The percentiles contain it.
  forecast.statistics = sim::simulate_runs(forecast.model, request.options);
  if (step_interval.low != 1.0 || step_interval.high != 1.0) {
    const sim::RunStatistics spread =
        sim::simulate_runs(with_error(forecast.model, step_interval), request.options);
    forecast.statistics.wall = spread.wall;
    forecast.statistics.interruptions = spread.interruptions;
    forecast.statistics.unfinished = std::max(forecast.statistics.unfinished, spread.unfinished);
  }
  forecast.mean_gpus = mean_gpus(forecast.stages);
  if (!forecast.statistics.most_end() || request.options.stop.stop_requested()) return forecast;
  add_expenses(forecast, request);
  const Seconds wall = forecast.statistics.mean_wall();
  forecast.goodput = forecast.statistics.mean[sim::RunPart::Step] / wall;
  for (const ForecastStage& stage : forecast.stages) {
    const double gpus = static_cast<double>(stage.plan.world_size()) / forecast.mean_gpus;
    forecast.mfu += static_cast<double>(stage.steps) * (stage.step.step / wall) * gpus *
                    stage.step.throughput.mfu;
  }
  // Means of the runs that end say nothing of those that would.
  if (request.gains && forecast.statistics.unfinished == 0) find_gains(forecast, request);
  return forecast;
}

sim::RunTrajectory trajectory(const ForecastRequest& request, const Forecast& forecast,
                              StepSpread step_interval, std::size_t points) {
  // Somewhat later than the slowest runs that count.
  constexpr double kAfterwards = 1.05;
  const sim::Percentiles& wall = forecast.statistics.wall;
  const double until = std::isfinite(wall.p90) ? wall.p90 : wall.p50;
  if (!std::isfinite(until)) return {};
  return sim::run_trajectory(with_error(forecast.model, step_interval), request.options,
                             Seconds(kAfterwards * until), points);
}

}  // namespace shardwright::planner
