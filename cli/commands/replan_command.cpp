// shardwright replan
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/option_values.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/step_json.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "planner/pool_counts.hpp"
#include "planner/rebalance.hpp"
#include "planner/replan.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kReplan = "shardwright replan";
constexpr const char* kSlowRank = "--slow-rank";

struct ReplanOptions {
  CommonOptions common;
  std::string plan, ranks;
  // "RANK:FACTOR" each.
  std::vector<std::string> slow_ranks;
  // The plan so far, if it is not `plan`.
  std::string now;
  std::string out;

  bool rebalances() const { return !slow_ranks.empty() || !now.empty(); }
};

nlohmann::ordered_json replan_json(const planner::Replanned& found) {
  nlohmann::ordered_json document = new_document("replanned");
  document["ranks"] = found.scenario.plan.world_size();
  document["plan"] = candidate_json(found.candidate, found.scenario);
  const Scenario& scenario = found.scenario;
  add_parts(document, scenario.model, scenario.cluster, scenario.stack);
  return document;
}

// The ranks that are left in each pool, by "POOL=N,...".
std::map<std::string, std::int64_t> read_pool_ranks(const std::string& text,
                                                    ProblemList& problems) {
  std::map<std::string, std::int64_t> ranks;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) {
    const std::size_t equals = part.rfind('=');
    if (equals == std::string::npos || equals == 0) {
      problems.add("--ranks", fmt::format("\"{}\"", part),
                   "the ranks that are left in each pool, as in old=8,new=16");
      continue;
    }
    const std::string pool = part.substr(0, equals);
    if (ranks.contains(pool))
      problems.add("--ranks", fmt::format("{} twice", pool), "each pool once");
    ranks[pool] = read_count("--ranks", part.substr(equals + 1), kMaxWorld, problems);
  }
  return ranks;
}

// The accelerators that are left of the scenario's cluster, and their number.
std::int64_t take_ranks(const std::string& text, Scenario& scenario) {
  ProblemList problems(kReplan);
  if (scenario.cluster.pools.empty()) {
    const std::int64_t ranks = read_count("--ranks", text, kMaxWorld, problems);
    problems.throw_if_any();
    return ranks;
  }
  const auto left = read_pool_ranks(text, problems);
  problems.throw_if_any();
  try {
    scenario.cluster = planner::left_of(scenario.cluster, left);
  } catch (const InputError& error) {
    problems.add_all("--ranks ", error);
  }
  problems.throw_if_any();
  return planner::accelerators_of(scenario.cluster);
}

// Writes the plan and shows the page. The JSON has the plan too, so that it alone goes to standard
// output where both would.
void deliver_plan(const ReplanOptions& options, const Scenario& found, const Page& page,
                  const nlohmann::ordered_json& document) {
  const std::string out = options.out.empty() && options.common.json != "-" ? "-" : options.out;
  if (!out.empty()) write_file(out, json_text(to_json(found)), options.common.force);
  deliver(options.common, page, document, out == "-");
}

ExitCode replan_for_ranks(const ReplanOptions& options) {
  const Scenario before = load_scenario(options.plan);
  Scenario left = before;
  const std::int64_t ranks = take_ranks(options.ranks, left);
  const InterruptWatch interrupt;
  const auto found = planner::replan(left, ranks, interrupt.token());
  if (!found) {
    print_message(fmt::format("No plan fits {} ranks or fewer.", format_count(ranks)));
    return interrupt.token().stop_requested() ? ExitCode::Interrupted : ExitCode::NoFeasiblePlan;
  }
  Page page = new_page(options.common, before.cluster);
  page.heading(fmt::format("{} on {} ranks instead of {}", before.model.name,
                           found->scenario.plan.world_size(), before.plan.world_size()));
  page.table(candidate_table({found->candidate}));
  deliver_plan(options, found->scenario, page, replan_json(*found));
  return ExitCode::Ok;
}

// The slowdown of each rank, by "RANK:FACTOR".
std::vector<double> read_slowdowns(const std::vector<std::string>& texts, std::int64_t ranks) {
  ProblemList problems(kReplan);
  std::vector<double> slowdown(static_cast<std::size_t>(ranks), 1.0);
  for (const std::string& text : texts) {
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) {
      problems.add(kSlowRank, fmt::format("\"{}\"", text), "RANK:FACTOR, as in 5:1.2");
      continue;
    }
    const std::int64_t rank = read_index(kSlowRank, text.substr(0, colon), ranks, problems);
    const double factor = read_ratio(kSlowRank, text.substr(colon + 1), problems);
    if (factor < 1.0 || factor > kMostSlowdown) {
      problems.add(kSlowRank, fmt::format("\"{}\"", text),
                   fmt::format("a factor from 1 to {}", kMostSlowdown));
    }
    slowdown[static_cast<std::size_t>(rank)] = factor;
  }
  problems.throw_if_any();
  return slowdown;
}

// "replicas of 6, 2 microbatches", "stages of 5, 3 layers", "the shares of the plan".
std::string shares_text(const Plan& plan) {
  std::vector<std::int64_t> counts;
  for (const PoolReplicas& part : plan.replica_pools)
    counts.insert(counts.end(), static_cast<std::size_t>(part.replicas), part.microbatches);
  if (!counts.empty()) return fmt::format("replicas of {} microbatches", fmt::join(counts, ", "));
  if (!plan.stage_layers.empty())
    return fmt::format("stages of {} layers", fmt::join(plan.stage_layers, ", "));
  return "the shares of the plan";
}

nlohmann::ordered_json rebalanced_json(const planner::Rebalanced& found) {
  nlohmann::ordered_json document = new_document("rebalanced");
  const Scenario& scenario = found.scenario;
  document["shares"] = shares_text(scenario.plan);
  document["step_before_s"] = found.before.value();
  document["step_s"] = found.after.value();
  document["gain_ratio"] = found.gain();
  document["plan"] = to_json(scenario.plan);
  add_parts(document, scenario.model, scenario.cluster, scenario.stack);
  return document;
}

ExitCode replan_for_speeds(const ReplanOptions& options) {
  const Scenario scenario = load_scenario(options.plan);
  const Plan now = options.now.empty() ? scenario.plan : load_scenario(options.now).plan;
  const auto found = planner::rebalance(
      scenario, now, read_slowdowns(options.slow_ranks, scenario.plan.world_size()));
  if (!found) {
    print_message(fmt::format("No other shares of the work make steps {} % faster.",
                              format_percent(planner::kLeastRebalanceGain, 0)));
    return ExitCode::NoFeasiblePlan;
  }
  Page page = new_page(options.common, scenario.cluster);
  page.heading(fmt::format("{}: {}", scenario.model.name, shares_text(found->scenario.plan)));
  page.facts({{"Step so far", format_time(found->before)},
              {"Step with these shares", format_time(found->after)},
              {"Gain", format_percent(found->gain()) + " %"}});
  deliver_plan(options, found->scenario, page, rebalanced_json(*found));
  return ExitCode::Ok;
}

ExitCode replan(const ReplanOptions& options) {
  check_destinations({{"--json", options.common.json}, {"--out", options.out}},
                     options.common.force);
  if (options.ranks.empty() == options.rebalances()) {
    return options.rebalances() ? replan_for_speeds(options) : replan_for_ranks(options);
  }
  const bool both = options.rebalances();
  throw InputError(
      kReplan,
      {{"--ranks", both ? fmt::format("{} with --slow-rank or --now", options.ranks) : "nothing",
        "either the ranks that are left, or --slow-rank or --now"}});
}

}  // namespace

void add_replan_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "replan",
      "Find the best plan for continuing a run with other ranks, or ranks of other speeds");
  command->footer(
      R"(Model, cluster, batch and sequences stay the same. `shardwright run --elastic` calls this command
when it has lost ranks, and `shardwright run --rebalance` when ranks have become slower.

Example:
  shardwright replan plan.json --ranks 12 --out smaller.json
  shardwright run smaller.json --data corpus.bin --steps 1000 --out run --resume
On a cluster of several pools, after half of the pool old was lost:
  shardwright replan plan.json --ranks new=16,old=8 --out smaller.json
Rank 3 computes half as fast as the others:
  shardwright replan plan.json --slow-rank 3:2 --out balanced.json)");
  const auto options = std::make_shared<ReplanOptions>();
  add_option(*command, "PLAN", options->plan, "FILE|-", "The plan file of the run")->required();
  add_option(
      *command, "--ranks", options->ranks, "N|POOL=N,...",
      "Number of available ranks; the plan may use fewer. On a cluster of several pools those "
      "of each pool that has any, in whole nodes");
  command
      ->add_option(kSlowRank, options->slow_ranks,
                   "In place of --ranks: the kernels of a rank take FACTOR times as long as those "
                   "of others, as in 5:1.2; the plan gets other shares of the work (repeatable)")
      ->type_name("RANK:FACTOR");
  add_option(*command, "--now", options->now, "FILE|-",
             "With --slow-rank, or without it where all ranks are equally fast again: the plan of "
             "such shares that the run is under (default: PLAN)");
  add_option(*command, "--out", options->out, "FILE|-",
             "Output file for the plan (default -: standard output, unless --json takes it)",
             "Output");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return replan(*options); }; });
}

}  // namespace shardwright::cli
