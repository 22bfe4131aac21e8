// shardwright compare
#include <CLI/CLI.hpp>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/step_json.hpp"
#include "cli/output/step_page.hpp"
#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"
#include "core/spec/scenario.hpp"
#include "planner/wording.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

struct CompareOptions {
  CommonOptions common;
  std::string first, second;
};

Table input_table(const planner::Comparison& comparison) {
  Table table({{"input", ColumnKind::Prose}, {"A", ColumnKind::Prose}, {"B", ColumnKind::Prose}});
  for (const planner::InputDifference& input : comparison.inputs)
    table.add_row({input.pointer(), input.first.text, input.second.text});
  return table;
}

// Figures that are zero in both are left out.
Table result_table(const planner::Comparison& comparison) {
  Table table({{"figure", ColumnKind::Prose},
               {"A", kNumber},
               {"B", kNumber},
               {"B less A", kNumber},
               {"change", kNumber, "%"}});
  for (const planner::ResultDifference& result : comparison.results) {
    if (result.first == 0.0 && result.second == 0.0) continue;
    const auto text = [&](double value) { return planner::value_text(result.figure, value); };
    const bool is_ratio = planner::unit_of(result.figure) == planner::FigureUnit::Ratio;
    const std::string change =
        is_ratio ? format_percent(result.change()) + " points" : text(result.change());
    const double ratio = result.change() / std::abs(result.first);
    table.add_row({planner::figure_text(result.figure), text(result.first), text(result.second),
                   change, result.first == 0.0 ? "" : format_signed_percent(ratio)});
  }
  return table;
}

ordered_json result_json(const Scenario& scenario, const sim::StepResult& result) {
  return step_json(scenario, result,
                   validation::confidence_of(scenario, result.step, result.memory().peak));
}

ordered_json comparison_json(const Scenario& first, const Scenario& second,
                             const planner::Comparison& comparison) {
  ordered_json document = new_document("comparison");
  document["verdict"] = planner::verdict_text(comparison, "A", "B");
  document["judged_by"] = name_of(comparison.yardstick);
  document["inputs"] = ordered_json::array();
  for (const planner::InputDifference& input : comparison.inputs) {
    document["inputs"].push_back({{"field", input.pointer()},
                                  {"a", ordered_json::parse(input.first.json)},
                                  {"b", ordered_json::parse(input.second.json)}});
  }
  document["results"] = ordered_json::array();
  for (const planner::ResultDifference& result : comparison.results) {
    document["results"].push_back({{"figure", planner::key_of(result.figure)},
                                   {"a", result.first},
                                   {"b", result.second},
                                   {"change", result.change()}});
  }
  document["a"] = result_json(first, comparison.first);
  document["b"] = result_json(second, comparison.second);
  return document;
}

ExitCode compare(const CompareOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  if (options.first == "-" && options.second == "-") {
    throw InputError("shardwright compare",
                     {{"B", "standard input, which is A too", "a file of its own"}});
  }
  ProblemList problems("shardwright compare");
  const Scenario first = read_part("", problems, [&] { return load_scenario(options.first); });
  const Scenario second = read_part("", problems, [&] { return load_scenario(options.second); });
  problems.throw_if_any();
  const planner::Comparison comparison = planner::compare(first, second);
  Page page = first.cluster == second.cluster ? new_page(options.common, first.cluster)
                                              : new_page(options.common);
  page.paragraph(planner::verdict_text(comparison, "A", "B"));
  if (!comparison.inputs.empty()) page.table(input_table(comparison));
  page.table(result_table(comparison));
  deliver(options.common, page, comparison_json(first, second, comparison));
  report_fit("shardwright compare: A", comparison.first, first);
  report_fit("shardwright compare: B", comparison.second, second);
  return ExitCode::Ok;
}

}  // namespace

void add_compare_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "compare", "Compare two plan files: their inputs and the parts of their steps");
  command->footer("Example:\n  shardwright compare plan.json other-plan.json");
  const auto options = std::make_shared<CompareOptions>();
  add_option(*command, "A", options->first, "FILE|-", "A plan file")->required();
  add_option(*command, "B", options->second, "FILE|-", "Another plan file")->required();
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return compare(*options); }; });
}

}  // namespace shardwright::cli
