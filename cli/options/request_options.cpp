#include "cli/options/request_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/options/common_options.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/options/settings.hpp"
#include "core/base/nearest_name.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "planner/pool_counts.hpp"
#include "planner/request_check.hpp"
#include "planner/scale.hpp"
#include "validation/prediction_errors.hpp"
#include "validation/validated_ground.hpp"

namespace shardwright::cli {
namespace {

using planner::PlanRequest;

// Returns 0 for "auto": the planner chooses the batch.
std::int64_t read_global_batch(const std::string& text, ProblemList& problems) {
  return text == "auto" ? 0 : read_count("--global-batch", text, kMaxBatch, problems, "auto");
}

// Applies `read` to an option that was given.
template <class T, class Read>
void read_if_given(const std::string& text, T& value, const Read& read) {
  if (!text.empty()) value = read(text);
}

void require(const std::string& text, const char* option, const char* expected,
             ProblemList& problems) {
  if (text.empty()) problems.add(option, "nothing", expected);
}

bool has_a_size(const ClusterSpec& cluster) {
  return cluster.nodes > 0;
}

// True if another option gives the whole scenario.
bool has_scenario(const RequestOptions& options) {
  return !options.row.empty() || !options.compare.empty();
}

// The accelerators of all pools, for a request that says no number; 1 where the cluster has one
// pool, or where a pool has no size.
std::int64_t accelerators_of_pools(const ClusterSpec& cluster) {
  std::int64_t sum = cluster.pools.empty() || !has_a_size(cluster)
                         ? 0
                         : cluster.nodes * cluster.accelerators_per_node();
  for (const PoolSpec& pool : cluster.pools) {
    const ClusterSpec alone = *pool_cluster(cluster, pool.name);
    if (sum == 0 || !has_a_size(alone)) return 1;
    sum += alone.nodes * alone.accelerators_per_node();
  }
  return std::max<std::int64_t>(1, sum);
}

void read_parts(const RequestOptions& options, PlanRequest& request, ProblemList& problems) {
  const bool from_row = has_scenario(options);
  if (!from_row || !options.model.empty())
    request.model = read_model_option(options.model, problems);
  if (!from_row || !options.cluster.empty())
    request.cluster = read_cluster_option(options.cluster, problems);
  if (!from_row || !options.stack.empty())
    request.stack = read_stack_option(options.stack, request.cluster, problems);
  refuse_plan_settings(options.settings, problems);
  apply_settings(options.settings, request.model, problems);
  apply_settings(options.settings, request.cluster, problems);
  apply_settings(options.settings, request.stack, problems);
  if (from_row) return;
  request.precision = planner::usual_precision(request.cluster);
  // A measured machine is planned for as a whole.
  if (request.cluster.stack && has_a_size(request.cluster)) {
    planner::plan_for_all_of_it(request);
    return;
  }
  request.gpus = accelerators_of_pools(request.cluster);
  if (request.gpus == 1)
    require(options.gpus, "--gpus",
            "a number of accelerators, a list as in 8,16, or a range as in 64..1024", problems);
  require(options.global_batch, "--global-batch", "a number of sequences, or auto", problems);
  require(options.seq_len, "--seq-len", "a number of tokens", problems);
}

// A percentage is one of the memory of each pool's accelerators.
void read_max_memory(const std::string& text, PlanRequest& request, ProblemList& problems) {
  if (text.empty()) return;
  const auto of = [&](Bytes whole) {
    return read_memory_size("--max-memory", text, whole, problems);
  };
  if (!request.cluster.pools.empty() && text.ends_with('%'))
    request.max_memory_ratio = of(Bytes(1.0)).value();
  else
    request.max_memory = of(request.cluster.accelerator.memory);
}

void read_numbers(const RequestOptions& options, PlanRequest& request, ProblemList& problems) {
  const auto count_of = [&](const char* option, std::int64_t most) {
    return [&problems, option, most](const std::string& text) {
      return read_count(option, text, most, problems);
    };
  };
  constexpr std::int64_t kMostPlans = 1000, kMostThreads = 1024;
  read_if_given(options.global_batch, request.global_batch,
                [&](const std::string& text) { return read_global_batch(text, problems); });
  read_if_given(options.seq_len, request.seq_len, count_of("--seq-len", kMaxSeqLen));
  read_if_given(options.top, request.top, count_of("--top", kMostPlans));
  read_if_given(options.max_global_batch, request.max_global_batch,
                count_of("--max-global-batch", kMaxBatch));
  read_if_given(options.threads, request.threads, [&](const std::string& text) {
    return static_cast<int>(read_count("--threads", text, kMostThreads, problems));
  });
  read_max_memory(options.max_memory, request, problems);
}

Lora read_lora_option(const std::string& text, ProblemList& problems) {
  const nlohmann::json value = lora_value(text);
  return read_part("", problems, [&] {
    ProblemList of_lora("--lora");
    ObjectReader reader(value, "", of_lora);
    const Lora lora = read_lora(reader);
    of_lora.throw_if_any();
    return lora;
  });
}

void read_choices(const RequestOptions& options, PlanRequest& request, ProblemList& problems) {
  read_if_given(options.precision, request.precision, [&](const std::string& text) {
    return read_part("", problems, [&] { return parse_name<Precision>(text, "--precision"); });
  });
  read_if_given(options.lora, request.lora, [&](const std::string& text) {
    return std::optional(read_lora_option(text, problems));
  });
  read_if_given(options.objective, request.objective, [&](const std::string& text) {
    return read_part("", problems,
                     [&] { return parse_name<planner::Objective>(text, "--objective"); });
  });
  const auto add_constraints = [&](const std::vector<std::string>& texts, const char* option,
                                   std::vector<planner::Constraint>& constraints) {
    for (const std::string& text : texts) {
      constraints.push_back(
          read_part("", problems, [&] { return planner::parse_constraint(text, option); }));
    }
  };
  add_constraints(options.fix, "--fix", request.constraints.fixed);
  add_constraints(options.forbid, "--forbid", request.constraints.forbidden);
}

// Adds the choices that are tried only if the user asks: they multiply the space and seldom win.
void read_vary(const std::vector<std::string>& names, planner::SearchLimits& limits,
               ProblemList& problems) {
  for (const std::string& name : names) {
    if (name == "rank-order") {
      limits.rank_orders = {Plan().rank_order, planner::pipeline_inside_data()};
    } else if (name == "offload") {
      limits.offload_optimizer = {OptimizerOffload::None, OptimizerOffload::Host,
                                  OptimizerOffload::Nvme};
    } else if (name == "optimizer-states") {
      const auto all = enumerators<OptimizerStates>();
      limits.optimizer_states.assign(all.begin(), all.end());
    } else if (name == "sequence-parallel") {
      limits.sequence_parallel = {true, false};
    } else if (name == "recompute-modules") {
      for (const RecomputeModule module : enumerators<RecomputeModule>())
        limits.recompute_modules.push_back({module});
    } else if (name == "recompute-layers") {
      limits.recompute_intervals = {2, 3, 4};
      limits.recompute_groups = {2, 4, 8};
    } else if (name != "sync" && name != "compression") {  // each of which is a search of its own
      problems.add("--vary", fmt::format("\"{}\"", name), one_of(name, vary_choices()));
    }
  }
}

// From the smallest number on, each once.
std::vector<std::int64_t> read_gpus(const RequestOptions& options, std::int64_t fallback,
                                    ProblemList& problems) {
  if (options.gpus.empty()) return {fallback};
  if (options.gpus.find(',') == std::string::npos) {
    const auto [first, last] = read_count_range("--gpus", options.gpus, kMaxWorld, problems);
    return planner::machine_sizes(first, last);
  }
  std::set<std::int64_t> sizes;
  std::istringstream stream(options.gpus + ',');
  for (std::string size; std::getline(stream, size, ',');)
    sizes.insert(read_count("--gpus", size, kMaxWorld, problems));
  return {sizes.begin(), sizes.end()};
}

std::optional<double> read_fit_probability(const RequestOptions& options,
                                           const PlanRequest& request, ProblemList& problems) {
  const bool measured = validation::has_published_errors(request.stack);
  if (options.fit_probability.empty()) {
    return options.max_memory.empty() && measured ? std::optional(validation::kFitProbability)
                                                  : std::nullopt;
  }
  if (!measured) {
    problems.add("--fit-probability", "a stack of which no peak was published",
                 "--max-memory with this stack");
    return std::nullopt;
  }
  const double asked = read_ratio("--fit-probability", options.fit_probability, problems);
  if (asked < 1.0) return asked;
  problems.add("--fit-probability", options.fit_probability,
               "a percentage below 100%, as in 95% or 0.95");
  return std::nullopt;
}

// Limits the memory such that plans fit with the probability.
void keep_margin(double probability, PlanRequest& request, ProblemList& problems) {
  try {
    request.memory_share = validation::memory_share(probability);
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems())
      problems.add("--fit-probability", problem.found, problem.expected);
  }
}

// Checks all options but the cluster.
void check_before_probe(const RequestOptions& options, const std::string& command) {
  ProblemList problems(command);
  PlanRequest unused;
  if (!has_scenario(options) || !options.model.empty()) read_model_option(options.model, problems);
  // A stack that was measured on this machine has the name of a shipped one.
  if (!options.stack.empty()) read_stack_option(options.stack, {}, problems);
  read_numbers(options, unused, problems);
  read_choices(options, unused, problems);
  read_vary(options.vary, unused.limits, problems);
  read_gpus(options, 0, problems);
  problems.throw_if_any();
}

// Turns the fields that the planner names in its errors ("global_batch") into options.
template <class Call>
void with_fields_as_options(const std::string& command, const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      std::replace(problem.where.begin(), problem.where.end(), '_', '-');
      problem.where.insert(0, "--");
    }
    throw InputError(command, std::move(problems));
  }
}

// Takes the sizes of the fleets that whole nodes make up.
void grow_pools(const RequestOptions& options, ChosenRequest& chosen) {
  if (chosen.request.cluster.pools.empty()) {
    throw InputError(
        "", {{"grow", fmt::format("\"{}\"", options.grow),
              fmt::format("a cluster of several pools; {} has one", chosen.request.cluster.name)}});
  }
  chosen.grow = options.grow;
  std::set<std::int64_t> sizes;
  for (const std::int64_t gpus : chosen.sizes)
    sizes.insert(planner::accelerators_of(chosen.machine_of(gpus)));
  chosen.sizes.assign(sizes.begin(), sizes.end());
  chosen.gpus = {chosen.sizes.front(), chosen.sizes.back()};
}

// Gives the compared plan the batch, sequence and format of the request.
void adapt_compared(ChosenRequest& chosen, ProblemList& problems) {
  const PlanRequest& request = chosen.request;
  Plan& plan = *chosen.request.compared;
  const std::int64_t ranks = plan.world_size();
  const bool on_pools = !request.cluster.pools.empty();
  if (chosen.gpus.first != chosen.gpus.second || chosen.gpus.first < ranks ||
      (!on_pools && chosen.gpus.first > ranks)) {
    problems.add("--gpus", fmt::format("{}", chosen.gpus.second),
                 fmt::format("{}{}, the size of the compared plan",
                             on_pools ? "one number of at least " : "", ranks));
  }
  if (request.global_batch == 0) {
    problems.add("--global-batch", "auto", "a number of sequences to compare plans by");
    return;
  }
  plan.global_batch = request.global_batch;
  plan.seq_len = request.seq_len;
  plan.precision = request.precision;
  plan.lora = request.lora;
  for (const BrokenRule& broken : broken_rules(request.model, &request.cluster, plan))
    problems.add("--compare " + broken.problem.where, broken.problem.found,
                 broken.problem.expected);
}

// Lets the search ask whether published runs cover a plan.
void ask_for_ground(PlanRequest& request) {
  if (!validation::has_published_errors(request.stack)) return;
  Plan precise;
  precise.precision = request.precision;
  precise.lora = request.lora;
  const Scenario scenario = planner::scenario_of(request, precise);
  const auto validated_on = [scenario](const ClusterSpec& cluster) {
    Scenario there = scenario;
    there.cluster = cluster;
    const auto ground = std::make_shared<const validation::ValidatedGround>(there);
    return [ground](const Plan& plan) { return ground->covers(plan); };
  };
  if (request.cluster.pools.empty())
    request.validated = validated_on(request.cluster);
  else
    request.validated_on = validated_on;
}

PlanRequest request_of(const Scenario& scenario) {
  PlanRequest request;
  request.model = scenario.model;
  request.cluster = scenario.cluster;
  request.stack = scenario.stack;
  request.gpus = scenario.plan.world_size();
  request.global_batch = scenario.plan.global_batch;
  request.seq_len = scenario.plan.seq_len;
  request.precision = scenario.plan.precision;
  request.lora = scenario.plan.lora;
  return request;
}

void add_inputs(CLI::App& command, RequestOptions& options) {
  constexpr const char* kGroup = "Scenario";
  const auto add = [&](const char* name, std::string& value, const char* help, const char* type) {
    add_option(command, name, value, type, help, kGroup);
  };
  add("--model", options.model, kModelHelp, "NAME|FILE|FOLDER");
  add("--cluster", options.cluster, kClusterHelp, "NAME|FILE|here");
  add("--gpus", options.gpus,
      "Number of accelerators, a list as in 8,16, or a range as in 64..1024; of a cluster of "
      "several pools the most that a plan may use (default there: all)",
      "N,...|A..B");
  add("--global-batch", options.global_batch,
      "Sequences per step, or auto: the smallest batch with nearly full throughput", "N|auto");
  add("--seq-len", options.seq_len, "Tokens per sequence, as in 8192 or 8k (k = 1,024)", "N");
  add("--stack", options.stack,
      "A shipped software stack or a JSON file (default megatron-core); of plan also several, as "
      "in fsdp2,megatron-core, or all",
      "NAME|FILE");
  add("--precision", options.precision, "Number format of the GEMMs (default bf16)", "NAME");
  add("--lora", options.lora, kLoraHelp, "rank=N,...");
  add("--row", options.row,
      "Take the scenario of a published measurement; other options replace parts of it", "FILE:ID");
  add_option(command, "--set", options.settings, "FIELD=VALUE",
             "Change a value of model, cluster or stack, as in cluster.node.nic.per_node=4 or "
             "stack.host.cuda_graphs=true (repeatable)",
             kGroup)
      ->take_all()
      ->expected(1);
}

void add_limits(CLI::App& command, RequestOptions& options) {
  constexpr const char* kGroup = "Constraints on plans";
  add_option(command, "--fix", options.fix, "FIELD=V,...",
             "Search only plans with these values, as in tp=8, pp>=4 or schedule=1f1b,interleaved",
             kGroup)
      ->expected(1)
      ->take_all();
  add_option(command, "--forbid", options.forbid, "FIELD=V,...",
             "Exclude plans with these values, as in zero=3", kGroup)
      ->expected(1)
      ->take_all();
  add_option(
      command, "--vary", options.vary, "CHOICE,...",
      "Also try rank-order (pipeline ranks inside data-parallel ranks), offload (of the "
      "optimizer), optimizer-states (of fewer bits), sequence-parallel (also without it), "
      "recompute-modules (each alone) or recompute-layers (in intervals and groups); with sync "
      "(local steps) or compression, compare the best plans of each way in which replicas "
      "agree",
      kGroup)
      ->delimiter(',')
      ->take_all();
  add_option(command, "--max-memory", options.max_memory, "SIZE",
             "Memory that a plan may use per accelerator, as in 70GB or 90%", kGroup);
  add_option(command, "--fit-probability", options.fit_probability, "PERCENT",
             "Find plans that fit into memory with this probability, by the errors of published "
             "peaks (default 95%, without --max-memory)",
             kGroup);
  command
      .add_flag("--trusted", options.trusted,
                "Search only plans of kinds that published runs cover")
      ->group(kGroup);
  add_option(command, "--max-global-batch", options.max_global_batch, "N",
             "The largest batch that --global-batch auto may choose", kGroup);
}

}  // namespace

std::vector<std::string> vary_choices() {
  return {
      "rank-order",       "offload", "optimizer-states", "sequence-parallel", "recompute-modules",
      "recompute-layers", "sync",    "compression"};
}

bool varies_agreements(const RequestOptions& options) {
  return std::any_of(options.vary.begin(), options.vary.end(), [](const std::string& choice) {
    return choice == "sync" || choice == "compression";
  });
}

void add_request_options(CLI::App& command, RequestOptions& options) {
  add_inputs(command, options);
  add_limits(command, options);
  add_option(command, "--objective", options.objective, "NAME",
             "Best plan by time (default), cost, memory or tokens-per-joule", "Search");
  add_option(command, "--top", options.top, "N", "Number of plans to show (default 5)", "Search");
  add_option(command, "--threads", options.threads, "N",
             "Number of threads (default: one per core)", "Search");
}

ChosenRequest choose_request(const RequestOptions& options, const std::string& command) {
  ProblemList problems(command);
  ChosenRequest chosen;
  if (!options.row.empty() && !options.compare.empty())
    throw InputError(command, {{"--row", "also --compare", "one of the two"}});
  if (!options.compare.empty()) {
    const Scenario scenario = load_scenario(options.compare);
    chosen.request = request_of(scenario);
    chosen.request.compared = scenario.plan;
  }
  if (!options.row.empty()) {
    validation::Measurement row = read_row_option(options.row);
    chosen.request = request_of(*row.scenario);
    chosen.filled_in = std::move(row.assumed);
  }
  if (needs_probe(options.cluster)) check_before_probe(options, command);
  read_parts(options, chosen.request, problems);
  read_numbers(options, chosen.request, problems);
  read_choices(options, chosen.request, problems);
  read_vary(options.vary, chosen.request.limits, problems);
  if (varies_agreements(options) && (command != "shardwright plan" || !options.compare.empty())) {
    problems.add(
        "--vary",
        fmt::format("sync or compression with {}", options.compare.empty() ? command : "--compare"),
        "shardwright plan without --compare, which searches each agreement of replicas");
  }
  chosen.sizes = read_gpus(options, chosen.request.gpus, problems);
  chosen.gpus = {chosen.sizes.front(), chosen.sizes.back()};
  if (chosen.request.compared) adapt_compared(chosen, problems);
  chosen.fit_probability = read_fit_probability(options, chosen.request, problems);
  if (chosen.fit_probability) keep_margin(*chosen.fit_probability, chosen.request, problems);
  problems.throw_if_any();
  chosen.request.one_per_layout = !options.all_variants;
  chosen.request.validated_only = options.trusted;
  ask_for_ground(chosen.request);
  chosen.cluster = options.cluster.empty() ? chosen.request.cluster.name : options.cluster;
  chosen.request.takes_pools = true;
  const auto filled_in =
      filled_in_by(chosen.request.model, chosen.request.cluster, chosen.request.stack);
  for (const std::string& line : filled_in) {
    // The row may have the same line.
    if (std::find(chosen.filled_in.begin(), chosen.filled_in.end(), line) == chosen.filled_in.end())
      chosen.filled_in.push_back(line);
  }
  with_fields_as_options(command, [&] {
    if (!options.grow.empty()) grow_pools(options, chosen);
    chosen.request.gpus = chosen.gpus.first;
    PlanRequest smallest = chosen.request;
    smallest.cluster = chosen.machine_of(smallest.gpus);
    planner::check_request(smallest);
  });
  return chosen;
}

ClusterSpec ChosenRequest::machine_of(std::int64_t size) const {
  if (grow.empty()) return request.cluster;
  return planner::grown_to(request.cluster, grow == "all" ? "" : grow, size);
}

void require_one_size(const ChosenRequest& chosen, const RequestOptions& options,
                      const std::string& command, const char* beside) {
  if (chosen.gpus.first == chosen.gpus.second) return;
  throw InputError(command, {{"--gpus", fmt::format("\"{}\"", options.gpus),
                              fmt::format("one number of GPUs, beside {}", beside)}});
}

std::string problems_text(const InputError& error) {
  std::vector<std::string> texts;
  for (const Problem& problem : error.problems()) texts.push_back(to_string(problem));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace shardwright::cli
