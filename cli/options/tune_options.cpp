#include "cli/options/tune_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <set>
#include <sstream>
#include <thread>

#include "cli/options/option_values.hpp"
#include "cli/options/run_options.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/split_mix.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/profile_library.hpp"
#include "planner/forecast.hpp"
#include "sim/run/run_simulation.hpp"
#include "sim/step/simulate.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::cli {
namespace {

using planner::TunedName;
using planner::TunedParameter;
using planner::TuningSearch;

constexpr const char* kTune = "shardwright tune";
constexpr const char* kFleet = "settled-fleet";
constexpr double kMostHeldOut = 0.5;
constexpr std::int64_t kMostTrials = 10'000, kMostRungs = 1'000, kMostTunedSteps = 1'000'000'000;

// Without a value the fallback.
std::int64_t count_or(const char* option, const std::string& text, std::int64_t fallback,
                      std::int64_t most, ProblemList& problems) {
  return text.empty() ? fallback : read_count(option, text, most, problems);
}

const TunedParameter* find(const planner::StudyRules& rules, TunedName name) {
  const auto found = std::ranges::find(rules.parameters, name, &TunedParameter::name);
  return found == rules.parameters.end() ? nullptr : &*found;
}

Plan with_batch(Plan plan, std::int64_t batch) {
  plan.global_batch = batch;
  // A smaller batch may not hold whole microbatches of the plan's size.
  if (batch % plan.dp == 0) plan.micro_batch = std::gcd(plan.micro_batch, batch / plan.dp);
  return plan;
}

void read_parameters(const TuneOptions& options, planner::StudyRules& rules,
                     ProblemList& problems) {
  if (options.vary.empty())
    problems.add("--vary", "nothing", "what trials vary, as in lr=1e-4..1e-2");
  for (const std::string& text : options.vary) {
    const std::size_t before = problems.size();
    const TunedParameter parameter = planner::read_tuned_parameter("--vary", text, problems);
    if (problems.size() > before) continue;
    if (find(rules, parameter.name) != nullptr) {
      problems.add("--vary", fmt::format("{} twice", name_of(parameter.name)), "each name once");
      continue;
    }
    rules.parameters.push_back(parameter);
  }
}

// The steps of the trials with the largest batch.
std::int64_t fewest_steps(const TuningSetup& setup) {
  const auto batch = static_cast<double>(setup.scenario.plan.global_batch);
  const TunedParameter* varied = find(setup.rules, TunedName::GlobalBatch);
  const double most = varied == nullptr ? batch : varied->most();
  return static_cast<std::int64_t>(std::floor(static_cast<double>(setup.steps) * batch / most));
}

// Without a number as many rungs as trials and steps allow. The plan is read, or was refused.
void read_rungs(const TuneOptions& options, TuningSetup& setup, ProblemList& problems) {
  constexpr std::int64_t kUsualGenerations = 10;
  planner::StudyRules& rules = setup.rules;
  const bool evolves = rules.search == TuningSearch::Population;
  const std::int64_t steps = std::max<std::int64_t>(1, fewest_steps(setup));
  const std::int64_t most =
      evolves ? kMostRungs : planner::most_halving_rungs(rules.trials, rules.reduction);
  const std::int64_t usual =
      evolves ? std::min(kUsualGenerations, steps)
              : std::min(most, planner::most_halving_rungs(steps, rules.reduction));
  std::int64_t rungs = count_or("--rungs", options.rungs, usual, kMostRungs, problems);
  if (rungs > most) {
    problems.add("--rungs", std::to_string(rungs),
                 fmt::format("at most {}: of {} trials one in {} goes on at each rung", most,
                             rules.trials, rules.reduction));
    rungs = most;
  }
  rules.rungs =
      evolves ? planner::even_rungs(rungs) : planner::halving_rungs(rungs, rules.reduction);
}

// Trials reach each rung with at least one step more, and warm up within their steps.
void check_steps(const TuningSetup& setup, const std::string& asked, ProblemList& problems) {
  const planner::StudyRules& rules = setup.rules;
  const TunedParameter* batch = find(rules, TunedName::GlobalBatch);
  const auto of_plan = static_cast<double>(setup.scenario.plan.global_batch);
  const double ratio = batch == nullptr ? 1.0 : of_plan / batch->most();
  const auto fewest = static_cast<double>(fewest_steps(setup));
  if (fewest * rules.rungs.front() < 1.0 - 1e-9) {
    const std::size_t rungs = rules.rungs.size();
    problems.add("--steps", asked,
                 fmt::format("at least {:.0f}, so that {} has a step{}",
                             std::ceil(1.0 / (ratio * rules.rungs.front()) - 1e-9),
                             rungs == 1 ? "each trial" : fmt::format("each of {} rungs", rungs),
                             rungs == 1 ? "" : ", or fewer --rungs"));
  }
  const TunedParameter* warmup = find(rules, TunedName::WarmupSteps);
  if (warmup != nullptr && warmup->most() > fewest) {
    problems.add("--vary", fmt::format("warm-up of {} steps", warmup->most()),
                 fmt::format("at most the {:.0f} steps of a trial", fewest));
  }
}

std::vector<std::int64_t> batches_of(const TuningSetup& setup) {
  const TunedParameter* batch = find(setup.rules, TunedName::GlobalBatch);
  if (batch == nullptr) return {setup.scenario.plan.global_batch};
  return {batch->listed.begin(), batch->listed.end()};
}

void check_batches(const TuningSetup& setup, ProblemList& problems) {
  const Scenario& scenario = setup.scenario;
  for (const std::int64_t batch : batches_of(setup)) {
    const Plan plan = with_batch(scenario.plan, batch);
    for (const BrokenRule& broken : broken_rules(scenario.model, &scenario.cluster, plan))
      problems.add(fmt::format("--vary global-batch={} {}", batch, broken.problem.where),
                   broken.problem.found, broken.problem.expected);
  }
  if (setup.rules.search == TuningSearch::Population &&
      find(setup.rules, TunedName::GlobalBatch) != nullptr) {
    problems.add("--vary", "global-batch with --search population",
                 "values that leave the number of steps: trials continue from each other's");
  }
}

// True if the executor may take GPUs for trials of the plan.
bool runs_on_gpus(const TuneOptions& options, const Plan& plan) {
  if (options.device == "cuda") return true;
  return options.device != "cpu" && plan.precision == Precision::Bf16;
}

// The pools of a trial and its ranks on each.
std::vector<std::pair<ClusterSpec, std::int64_t>> ranks_on_pools(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  if (!names_pools(plan)) return {{scenario.cluster, plan.world_size()}};
  std::vector<std::pair<ClusterSpec, std::int64_t>> ranks;
  for (ClusterSpec& pool : pool_clusters(scenario.cluster, plan)) {
    const std::int64_t on_pool = ranks_on_pool(plan, pool.name);
    ranks.emplace_back(std::move(pool), on_pool);
  }
  return ranks;
}

// The most ranks that trials may have on the plan's cluster. On several pools each trial takes its
// ranks from each of them.
std::optional<std::int64_t> most_ranks(const Scenario& scenario) {
  if (!names_pools(scenario.plan)) return scenario.cluster.most_accelerators();
  std::optional<std::int64_t> trials;
  for (const auto& [pool, ranks] : ranks_on_pools(scenario)) {
    if (const auto size = pool.most_accelerators())
      trials = std::min(trials.value_or(kMaxWorld), *size / ranks);
  }
  if (trials) *trials *= scenario.plan.world_size();
  return trials;
}

void read_workers(const TuneOptions& options, TuningSetup& setup, ProblemList& problems) {
  const std::int64_t world = setup.scenario.plan.world_size();
  const bool gpus = runs_on_gpus(options, setup.scenario.plan);
  const std::int64_t cores = std::max<std::int64_t>(std::thread::hardware_concurrency(), world);
  // The executor alone knows the number of GPUs, so that several trials need a stated one.
  const std::int64_t usual = options.simulate || gpus ? world : cores;
  setup.ranks = count_or("--ranks", options.ranks, usual, kMaxWorld, problems);
  if (setup.ranks < world)
    problems.add("--ranks", options.ranks, fmt::format("at least the {} of the plan", world));
  if (const auto most = most_ranks(setup.scenario); options.simulate && most && setup.ranks > *most)
    problems.add("--ranks", options.ranks,
                 fmt::format("at most the {} GPUs that {} has or can join{}", format_count(*most),
                             setup.scenario.cluster.name,
                             names_pools(setup.scenario.plan) ? " for whole trials" : ""));
  // More ranks than all trials take stay idle.
  setup.workers = static_cast<std::size_t>(
      std::clamp<std::int64_t>(setup.ranks / world, 1, setup.rules.trials));
  if (options.simulate || !gpus) return;
  setup.gpus = visible_gpus(std::getenv(kVisibleGpus), setup.ranks);
  if (static_cast<std::int64_t>(setup.gpus.size()) < setup.ranks)
    problems.add(
        "--ranks", std::to_string(setup.ranks),
        fmt::format("at most the {} of {}", format_plural(setup.gpus.size(), "GPU"), kVisibleGpus));
}

void check_places(const TuneOptions& options, ProblemList& problems) {
  if (!options.device.empty() && options.device != "auto" && options.device != "cpu" &&
      options.device != "cuda")
    problems.add("--device", fmt::format("\"{}\"", options.device), "one of auto, cpu, cuda");
  const std::array needed = {std::pair("--data", &options.data), std::pair("--out", &options.out)};
  for (const auto& [option, value] : needed) {
    if (options.simulate == value->empty()) continue;
    problems.add(option, options.simulate ? "beside --simulate" : "nothing",
                 options.simulate         ? "no such option: nothing is trained"
                 : value == &options.data ? "the corpus to train on"
                                          : "the folder of the trials");
  }
  if (options.simulate && !options.validation.empty())
    problems.add("--validation-ratio", "beside --simulate", "no such option: nothing is trained");
  if (options.simulate && options.resume)
    problems.add("--resume", "beside --simulate", "no such option: nothing is trained");
  if (!options.simulate && !options.run.empty())
    problems.add("--run", options.run, "--simulate, whose failures, checkpoints and prices it has");
  std::error_code error;
  if (!options.data.empty() && !std::filesystem::exists(options.data, error))
    problems.add("--data", options.data, "a file that exists");
}

void read_rules(const TuneOptions& options, TuningSetup& setup, ProblemList& problems) {
  constexpr std::int64_t kUsualTrials = 16, kUsualReduction = 3, kMostReduction = 100;
  planner::StudyRules& rules = setup.rules;
  rules.search = read_part("", problems, [&] {
    return options.search.empty() ? TuningSearch::Random
                                  : parse_name<TuningSearch>(options.search, "--search");
  });
  rules.trials = count_or("--trials", options.trials, kUsualTrials, kMostTrials, problems);
  rules.reduction =
      count_or("--reduction", options.reduction, kUsualReduction, kMostReduction, problems);
  if (parse_count(options.reduction) == 1)
    problems.add("--reduction", options.reduction, "an integer of at least 2");
  rules.reduction = std::max<std::int64_t>(2, rules.reduction);
  rules.seed =
      static_cast<std::uint64_t>(count_or("--seed", options.seed, 1, kMostTunedSteps, problems));
  setup.steps =
      options.steps.empty() ? 0 : read_count("--steps", options.steps, kMostTunedSteps, problems);
  if (options.steps.empty())
    problems.add("--steps", "nothing", "the steps of a trial that is trained to the end");
  if (!options.validation.empty())
    setup.validation_ratio = read_ratio("--validation-ratio", options.validation, problems);
  if (setup.validation_ratio > kMostHeldOut)
    problems.add("--validation-ratio", options.validation, "at most 0.5");
  read_parameters(options, rules, problems);
}

// The nodes that so many trials at once fill. Trials smaller than a node share one.
double nodes_of_trials(const TuningSetup& setup, std::size_t trials) {
  std::int64_t nodes = 0;
  for (const auto& [pool, of_trial] : ranks_on_pools(setup.scenario)) {
    const std::int64_t per_node = std::max<std::int64_t>(1, pool.node.accelerators);
    const std::int64_t ranks = static_cast<std::int64_t>(trials) * of_trial;
    nodes += (ranks + per_node - 1) / per_node;
  }
  return static_cast<double>(nodes);
}

// A trial of this scenario that is trained to its end. It saves its state as a run does: at the
// interval of the profile, or else at the best one. The spare nodes are those of all trials, few of
// which fail at once; the rates are those of the profile, because studies share their fleet.
sim::RunModel run_of_trial(const TuningSetup& setup, const Scenario& scenario) {
  planner::ForecastRequest request;
  request.scenario = scenario;
  request.run = setup.run;
  request.run.stages.clear();
  request.gains = false;
  request.run.recovery.spares *= nodes_of_trials(setup, setup.workers) / nodes_of_trials(setup, 1);
  request.tokens = static_cast<double>(setup.steps) *
                   static_cast<double>(setup.scenario.plan.global_batch) *
                   static_cast<double>(scenario.plan.seq_len);
  sim::RunModel model = planner::forecast(request, planner::run_stages(request), {}).model;
  model.rate_spread = 0.0;
  const planner::StepSpread spread = step_spread_of(scenario);
  model.step_low = spread.low;
  model.step_high = spread.high;
  return model;
}

}  // namespace

void add_tune_options(CLI::App& command, TuneOptions& options) {
  add_option(command, "PLAN", options.plan, "FILE", "The plan file of all trials")->required();
  add_option(command, "--data", options.data, "FILE", "Corpus, as of shardwright run");
  add_option(command, "--out", options.out, "FOLDER", "Folder of the trials and their results");
  add_option(
      command, "--validation-ratio", options.validation, "RATIO",
      "Share of the corpus that is held out from training, and whose loss compares the trials "
      "(default 0: the training loss does)");
  add_option(command, "--steps", options.steps, "N",
             "Steps of a trial that is trained to the end; with another batch as many tokens");
  add_option(command, "--vary", options.vary, "NAME=VALUES",
             fmt::format("A range (lr=1e-4..1e-2), a list (weight-decay=0,0.1) or one value, for "
                         "each of {}",
                         fmt::join(names_of<TunedName>(), ", ")));
  constexpr const char* kSearch = "Search";
  add_option(command, "--search", options.search, "NAME",
             fmt::format("One of {} (default random)", fmt::join(names_of<TuningSearch>(), ", ")),
             kSearch);
  add_option(command, "--trials", options.trials, "N", "Sets of values (default 16)", kSearch);
  add_option(command, "--reduction", options.reduction, "N",
             "One trial in so many goes on at each rung (default 3)", kSearch);
  add_option(
      command, "--rungs", options.rungs, "N",
      "Places at which trials are compared (default: as many as trials and steps allow; of a "
      "population at most 10)",
      kSearch);
  add_option(command, "--seed", options.seed, "N",
             "Seed of the values, of weights and of the order of samples (default 1)", kSearch);
  constexpr const char* kPlaces = "Where it runs";
  add_option(
      command, "--ranks", options.ranks, "N",
      "Ranks that are there, on one host: several trials run at once (default: a core each; on "
      "GPUs those of one trial)",
      kPlaces);
  add_option(command, "--device", options.device, "DEVICE", "cpu, cuda or auto (default)", kPlaces);
  command.add_flag("--resume", options.resume, "Continue a tuning that was interrupted")
      ->group(kPlaces);
  command
      .add_flag("--simulate", options.simulate,
                "Train nothing: predict the time and the cost on the plan's cluster")
      ->group(kPlaces);
  add_option(
      command, "--run", options.run, "NAME|FILE",
      fmt::format("With --simulate: the run profile whose failures, checkpoints, start-up and "
                  "prices hold (default {})",
                  kFleet),
      kPlaces);
}

std::vector<std::string> visible_gpus(const char* listed, std::int64_t count) {
  std::vector<std::string> gpus;
  if (listed == nullptr) {
    for (std::int64_t ordinal = 0; ordinal < count; ++ordinal)
      gpus.push_back(std::to_string(ordinal));
    return gpus;
  }
  std::istringstream list(listed);
  for (std::string gpu; std::getline(list, gpu, ',') && std::ssize(gpus) < count;)
    gpus.push_back(gpu);
  return gpus;
}

Plan TuningSetup::plan_of(const std::vector<double>& values) const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (rules.parameters[i].name == TunedName::GlobalBatch)
      return with_batch(scenario.plan, static_cast<std::int64_t>(values[i]));
  }
  return scenario.plan;
}

std::int64_t TuningSetup::steps_at(const std::vector<double>& values, std::size_t rung) const {
  return steps_of_batch(plan_of(values).global_batch, rung);
}

std::int64_t TuningSetup::steps_of_batch(std::int64_t batch, std::size_t rung) const {
  const double ratio = static_cast<double>(scenario.plan.global_batch) / static_cast<double>(batch);
  const double all = std::ceil(static_cast<double>(steps) * ratio * (1.0 - 1e-12));
  return static_cast<std::int64_t>(std::max(1.0, std::round(all * rules.rungs[rung])));
}

Seconds TuningSetup::time_of(const planner::TrialJob& job) const {
  const std::int64_t before = job.rung == 0 ? 0 : steps_at(job.values, job.rung - 1);
  const auto trained = static_cast<double>(steps_at(job.values, job.rung) - before);
  return startup + trained * step_times.at(plan_of(job.values).global_batch);
}

Seconds TuningSetup::simulated_time(const planner::TrialJob& job, std::int64_t study) const {
  const std::int64_t before = job.rung == 0 ? 0 : steps_at(job.values, job.rung - 1);
  const double share = static_cast<double>(steps_at(job.values, job.rung) - before) /
                       static_cast<double>(all_steps(job.values));
  sim::RunModel model = runs.at(plan_of(job.values).global_batch);
  // The error of the predicted step is the same in all jobs of a study.
  const double error = sim::step_factor(model, kSimulatedStudies, study);
  model.work = model.work_at(error);
  for (Seconds& part : model.work) part *= share;
  model.step_low = model.step_high = 1.0;
  // Short jobs save their states as trials do, unless the profile states an interval.
  if (run.checkpoint.interval <= Seconds())
    model.interval =
        std::min(model.interval, model.total_work() / static_cast<double>(kCheckpointsOfJob));
  model.interval = std::min(model.interval, model.total_work());
  const std::uint64_t job_index = job.trial * rules.rungs.size() + job.rung;
  const sim::RunOutcome outcome =
      sim::simulate_run(model, {.runs = 1, .seed = split_mix(rules.seed + job_index)}, study);
  return outcome.finished ? outcome.wall : Seconds(std::numeric_limits<double>::infinity());
}

TuningSetup read_tuning(const TuneOptions& options) {
  ProblemList problems(kTune);
  TuningSetup setup;
  const std::size_t none = problems.size();
  setup.scenario = read_part("", problems, [&] { return load_scenario(options.plan); });
  const bool has_plan = problems.size() == none;
  read_rules(options, setup, problems);
  read_rungs(options, setup, problems);
  check_places(options, problems);
  if (has_plan) {
    read_workers(options, setup, problems);
    check_batches(setup, problems);
    if (setup.steps > 0 && !setup.rules.rungs.empty()) check_steps(setup, options.steps, problems);
  }
  if (options.simulate) {
    setup.run = read_part("--run", problems,
                          [&] { return load_run(options.run.empty() ? kFleet : options.run); });
    setup.startup = setup.run.startup;
  }
  problems.throw_if_any();
  for (const std::int64_t batch : batches_of(setup)) {
    Scenario scenario = setup.scenario;
    scenario.plan = with_batch(scenario.plan, batch);
    const sim::StepResult step = sim::simulate_step(scenario);
    setup.step_times[batch] = step.step;
    if (!options.simulate) continue;
    setup.fits = report_fit(kTune, step, scenario) && setup.fits;
    setup.runs[batch] = run_of_trial(setup, scenario);
  }
  return setup;
}

}  // namespace shardwright::cli
