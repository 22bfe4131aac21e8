// shardwright explain
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/scenario_options.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/server_report.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/quantity_text.hpp"
#include "core/lowering/lowering.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

struct ExplainOptions {
  CommonOptions common;
  ScenarioOptions scenario;
  std::string gain;
};

Table sensitivity_table(const planner::Explanation& explanation) {
  const std::vector<planner::Sensitivity>& sensitivities = explanation.sensitivities;
  const bool has_variants = std::any_of(sensitivities.begin(), sensitivities.end(),
                                        [](const auto& each) { return !each.through.empty(); });
  std::vector<Column> columns = {
      {fmt::format("{} % more", format_number(100.0 * explanation.gain))},
      {"step", ColumnKind::Number, "s"},
      {"throughput", ColumnKind::Number, "%"}};
  if (has_variants) columns.push_back({"with", ColumnKind::Prose});
  Table table(std::move(columns));
  const int decimals = decimals_for(explanation.result.step.value());
  for (const planner::Sensitivity& sensitivity : sensitivities) {
    std::vector<std::string> cells = {name_of(sensitivity.resource),
                                      format_fixed(sensitivity.step.value(), decimals),
                                      format_signed_percent(sensitivity.gain)};
    if (has_variants) cells.push_back(sensitivity.through);
    table.add_row(std::move(cells));
  }
  return table;
}

validation::Confidence confidence_of(const ChosenScenario& chosen,
                                     const planner::Explanation& explanation) {
  return validation::confidence_of(chosen.scenario, chosen.prediction_class,
                                   explanation.result.step, explanation.result.memory().peak);
}

ordered_json explain_json(const ChosenScenario& chosen, const planner::Explanation& explanation) {
  const Scenario& scenario = chosen.scenario;
  ordered_json document = new_document("explanation");
  document["inputs"] = inputs_json(scenario.model, scenario.cluster, scenario.stack);
  document["filled_in"] = chosen.filled_in;
  document["notes"] = chosen.notes;
  document["partial"] = explanation.partial;
  document["limit"] = planner::limit_text("The plan", explanation);
  document["shares"] = ordered_json::array();
  for (const planner::TimeShare& share : explanation.shares) {
    document["shares"].push_back({{"what", planner::name_of(share.use)},
                                  {"share_ratio", share.share},
                                  {"mainly", share.mainly ? name_of(*share.mainly) : ""},
                                  {"mainly_ratio", share.mainly_share}});
  }
  document["gain_ratio"] = explanation.gain;
  document["sensitivities"] = ordered_json::array();
  for (const planner::Sensitivity& sensitivity : explanation.sensitivities) {
    document["sensitivities"].push_back({{"resource", name_of(sensitivity.resource)},
                                         {"step_s", sensitivity.step.value()},
                                         {"throughput_gain_ratio", sensitivity.gain},
                                         {"through", sensitivity.through}});
  }
  document.update(step_json(scenario, explanation.result, confidence_of(chosen, explanation)));
  add_parts(document, scenario.model, scenario.cluster, scenario.stack);
  return document;
}

std::optional<sim::ServerUse> servers_of(const Scenario& scenario) {
  if (!scenario.plan.replicas.has_servers()) return std::nullopt;
  const Program program = lower(scenario.model, scenario.plan, scenario.stack);
  return sim::server_use(sim::served_parameters_of(program), scenario);
}

ExitCode explain(const ExplainOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  ProblemList problems("shardwright explain");
  const double gain = options.gain.empty() ? planner::kSensitivityStep
                                           : read_ratio("--gain", options.gain, problems);
  problems.throw_if_any();
  const ChosenScenario chosen = choose_scenario(options.scenario, "shardwright explain");
  const InterruptWatch interrupt;
  const planner::Explanation explanation =
      planner::explain(chosen.scenario, gain, interrupt.token());
  print_notes("shardwright explain", chosen.notes);
  Page page = new_page(options.common, chosen.scenario.cluster);
  add_step(page, chosen.scenario, explanation.result, confidence_of(chosen, explanation));
  const std::optional<sim::ServerUse> servers = servers_of(chosen.scenario);
  if (servers) add_servers(page, *servers);
  add_stages(page, chosen.scenario.plan, explanation.result);
  page.paragraph(planner::limit_text("The plan", explanation));
  if (explanation.partial)
    page.warning("interrupted: the gain from some resources was not computed");
  if (!explanation.sensitivities.empty()) page.table(sensitivity_table(explanation));
  add_filled_in(page, chosen.filled_in);
  deliver(options.common, page, explain_json(chosen, explanation));
  const bool fits = report_fit("shardwright explain", explanation.result, chosen.scenario);
  if (explanation.partial) return ExitCode::Interrupted;
  return fits ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

}  // namespace

void add_explain_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "explain", "Find the bottleneck of a plan, and the gain from more of each resource");
  command->footer("Example:\n  shardwright explain --plan plan.json");
  const auto options = std::make_shared<ExplainOptions>();
  add_scenario_options(*command, options->scenario);
  options->scenario.takes_pools = true;
  add_option(*command, "--gain", options->gain, "RATIO",
             "Increase each resource by this ratio (default 10%)");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return explain(*options); }; });
}

}  // namespace shardwright::cli
