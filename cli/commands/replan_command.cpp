// shardwright replan
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/option_values.hpp"
#include "cli/output/candidate_report.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/step_json.hpp"
#include "core/base/quantity_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/plan_check.hpp"
#include "planner/pool_counts.hpp"
#include "planner/replan.hpp"

namespace shardwright::cli {
namespace {

constexpr const char* kReplan = "shardwright replan";

struct ReplanOptions {
  CommonOptions common;
  std::string plan, ranks;
  std::string out;
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

ExitCode replan(const ReplanOptions& options) {
  check_destinations({{"--json", options.common.json}, {"--out", options.out}},
                     options.common.force);
  const Scenario before = load_scenario(options.plan);
  Scenario left = before;
  const std::int64_t ranks = take_ranks(options.ranks, left);
  const InterruptWatch interrupt;
  const auto found = planner::replan(left, ranks, interrupt.token());
  if (!found) {
    print_message(fmt::format("No plan fits {} ranks or fewer.", format_count(ranks)));
    return interrupt.token().stop_requested() ? ExitCode::Interrupted : ExitCode::NoFeasiblePlan;
  }
  // The JSON has the plan too, so that it alone goes to standard output where both would.
  const std::string out = options.out.empty() && options.common.json != "-" ? "-" : options.out;
  if (!out.empty()) write_file(out, json_text(to_json(found->scenario)), options.common.force);
  Page page = new_page(options.common);
  page.heading(fmt::format("{} on {} ranks instead of {}", before.model.name,
                           found->scenario.plan.world_size(), before.plan.world_size()));
  page.table(candidate_table({found->candidate}));
  deliver(options.common, page, replan_json(*found), out == "-");
  return ExitCode::Ok;
}

}  // namespace

void add_replan_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "replan", "Find the best plan for continuing a run with another number of ranks");
  command->footer(
      R"(Model, cluster, batch and sequences stay the same. `shardwright run --elastic` calls this command
when it has lost ranks.

Example:
  shardwright replan plan.json --ranks 12 --out smaller.json
  shardwright run smaller.json --data corpus.bin --steps 1000 --out run --resume
On a cluster of several pools, after half of the pool old was lost:
  shardwright replan plan.json --ranks new=16,old=8 --out smaller.json)");
  const auto options = std::make_shared<ReplanOptions>();
  add_option(*command, "PLAN", options->plan, "FILE|-", "The plan file of the run")->required();
  add_option(
      *command, "--ranks", options->ranks, "N|POOL=N,...",
      "Number of available ranks; the plan may use fewer. On a cluster of several pools those "
      "of each pool that has any, in whole nodes")
      ->required();
  add_option(*command, "--out", options->out, "FILE|-",
             "Output file for the plan (default -: standard output, unless --json takes it)",
             "Output");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return replan(*options); }; });
}

}  // namespace shardwright::cli
