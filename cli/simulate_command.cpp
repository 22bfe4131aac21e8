// shardwright simulate
#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command.hpp"
#include "cli/output.hpp"
#include "cli/scenario_options.hpp"
#include "cli/step_json.hpp"
#include "cli/step_page.hpp"
#include "sim/step/simulate.hpp"

namespace shardwright::cli {
namespace {

struct SimulateOptions {
  CommonOptions common;
  ScenarioOptions scenario;
  std::string plan_out;
};

nlohmann::ordered_json simulate_json(const ChosenScenario& chosen, const sim::StepResult& result) {
  const Scenario& scenario = chosen.scenario;
  nlohmann::ordered_json document = new_document("step");
  document["inputs"] = inputs_json(scenario.model, scenario.cluster, scenario.stack);
  document["filled_in"] = chosen.filled_in;
  document.update(step_json(scenario.plan, result));
  return document;
}

ExitCode simulate(const SimulateOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  check_destination("--out", options.plan_out, options.common.force);
  const ChosenScenario chosen = choose_scenario(options.scenario, "shardwright simulate");
  const sim::StepResult result = sim::simulate_step(chosen.scenario);
  if (!options.plan_out.empty())
    write_file(options.plan_out, json_text(to_json(chosen.scenario)), options.common.force);
  Page page = new_page(options.common);
  add_step(page, chosen.scenario, result);
  add_filled_in(page, chosen.filled_in);
  deliver(options.common, page, simulate_json(chosen, result));
  return ExitCode::Ok;
}

}  // namespace

void add_simulate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("simulate", "Simulate one training step of a plan");
  const auto options = std::make_shared<SimulateOptions>();
  add_scenario_options(*command, options->scenario);
  command->add_option("--out", options->plan_out, "Write the plan file that was simulated")
      ->type_name("FILE|-")
      ->group("Output");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return simulate(*options); }; });
}

}  // namespace shardwright::cli
