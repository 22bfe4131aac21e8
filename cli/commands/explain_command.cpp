// shardwright explain
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/commands/interrupt.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/scenario_options.hpp"
#include "cli/output/format.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "planner/explain.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

struct ExplainOptions {
  CommonOptions common;
  ScenarioOptions scenario;
  std::string gain;
};

Table sensitivity_table(const planner::Explanation& explanation, double gain) {
  Table table({{fmt::format("{} % more", format_number(100.0 * gain))},
               {"step", ColumnKind::Number, "s"},
               {"throughput", ColumnKind::Number, "%"},
               {"through", ColumnKind::Prose}});
  const int decimals = decimals_for(explanation.result.step.value());
  for (const planner::Sensitivity& sensitivity : explanation.sensitivities) {
    table.add_row({name_of(sensitivity.resource), format_fixed(sensitivity.step.value(), decimals),
                   fmt::format("{:+.1f}", 100.0 * sensitivity.gain), sensitivity.through});
  }
  return table;
}

ordered_json explain_json(const ChosenScenario& chosen, const planner::Explanation& explanation,
                          double gain) {
  const Scenario& scenario = chosen.scenario;
  ordered_json document = new_document("explanation");
  document["inputs"] = inputs_json(scenario.model, scenario.cluster, scenario.stack);
  document["filled_in"] = chosen.filled_in;
  document["notes"] = chosen.notes;
  document["partial"] = explanation.partial;
  document["limit"] = explanation.limit;
  document["shares"] = ordered_json::array();
  for (const planner::TimeShare& share : explanation.shares) {
    document["shares"].push_back({{"what", share.what},
                                  {"share_ratio", share.share},
                                  {"mainly", share.mainly},
                                  {"mainly_ratio", share.mainly_share}});
  }
  document["gain_ratio"] = gain;
  document["sensitivities"] = ordered_json::array();
  for (const planner::Sensitivity& sensitivity : explanation.sensitivities) {
    document["sensitivities"].push_back({{"resource", name_of(sensitivity.resource)},
                                         {"step_s", sensitivity.step.value()},
                                         {"throughput_gain_ratio", sensitivity.gain},
                                         {"through", sensitivity.through}});
  }
  document.update(step_json(scenario.plan, explanation.result, scenario.cluster, scenario.stack));
  return document;
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
  Page page = new_page(options.common);
  add_step(page, chosen.scenario, explanation.result, explanation.result.step);
  add_stages(page, explanation.result);
  page.paragraph(fmt::format("What limits it: {}.", explanation.limit));
  if (explanation.partial) page.warning("interrupted: not every resource was tried");
  if (!explanation.sensitivities.empty()) page.table(sensitivity_table(explanation, gain));
  add_filled_in(page, chosen.filled_in);
  deliver(options.common, page, explain_json(chosen, explanation, gain));
  const bool fits = report_fit("shardwright explain", explanation.result, chosen.scenario.cluster);
  if (explanation.partial) return ExitCode::Interrupted;
  return fits ? ExitCode::Ok : ExitCode::NoFeasiblePlan;
}

}  // namespace

void add_explain_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "explain", "What limits a plan, and what more of each resource would bring");
  command->footer("Example:\n  shardwright explain --plan plan.json");
  const auto options = std::make_shared<ExplainOptions>();
  add_scenario_options(*command, options->scenario);
  command
      ->add_option("--gain", options->gain, "How much more of each resource to try (default 10%)")
      ->type_name("RATIO");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return explain(*options); }; });
}

}  // namespace shardwright::cli
