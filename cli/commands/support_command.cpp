// shardwright support
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/commands/command.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/output/output_file.hpp"
#include "cli/output/step_json.hpp"
#include "core/base/nearest_name.hpp"
#include "core/base/quantity_text.hpp"
#include "planner/request_check.hpp"
#include "validation/prediction_errors.hpp"
#include "validation/validated_ground.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::ordered_json;

struct SupportOptions {
  CommonOptions common;
  std::string model, cluster, stack, precision;
};

Scenario supported_scenario(const SupportOptions& options) {
  ProblemList problems("shardwright support");
  Scenario scenario;
  scenario.model = read_model_option(options.model, problems);
  scenario.cluster = read_cluster_option(options.cluster, problems);
  scenario.stack = read_stack_option(options.stack, scenario.cluster, problems);
  if (!options.precision.empty())
    read_part("--precision", problems, [&] {
      scenario.plan.precision = parse_name<Precision>(options.precision, "--precision");
      return 0;
    });
  problems.throw_if_any();
  return scenario;
}

// What `plan` says against the scenario's precision, in its words.
std::vector<std::string> refusals_of(const Scenario& scenario) {
  planner::PlanRequest request;
  request.cluster = scenario.cluster;
  request.stack = scenario.stack;
  request.precision = scenario.plan.precision;
  std::vector<std::string> refusals;
  for (const Problem& problem : planner::precision_problems(request))
    refusals.push_back(to_string(problem));
  return refusals;
}

using CountsByConfidence = EnumArray<Confidence, std::int64_t>;

CountsByConfidence count_figures(const std::vector<const Sources*>& all) {
  CountsByConfidence counts{};
  for (const Sources* sources : all) {
    for (const auto& [pointer, provenance] : *sources) ++counts[provenance.confidence];
  }
  return counts;
}

std::vector<std::pair<std::string, CountsByConfidence>> figures_of(const Scenario& scenario) {
  const ClusterSpec& cluster = scenario.cluster;
  return {{"accelerator", count_figures({&cluster.accelerator.sources})},
          {"node, fabric and cluster",
           count_figures({&cluster.node.sources, &cluster.fabric.sources, &cluster.sources})},
          {"software stack", count_figures({&scenario.stack.sources})}};
}

Table figure_table(const Scenario& scenario) {
  std::vector<Column> columns = {{"figures of the"}};
  for (const Confidence confidence : enumerators<Confidence>())
    columns.push_back({name_of(confidence), kNumber});
  Table table(std::move(columns));
  for (const auto& [part, counts] : figures_of(scenario)) {
    std::vector<std::string> row = {part};
    for (const Confidence confidence : enumerators<Confidence>())
      row.push_back(format_count(counts[confidence]));
    table.add_row(std::move(row));
  }
  return table;
}

Table run_table(const validation::ValidatedGround& ground) {
  Table table({{"kind of plan"},
               {"published runs", kNumber},
               {"most accelerators", kNumber},
               {"longest sequence", kNumber, "tokens"}});
  for (const auto& [kind, reach] : ground.kinds()) {
    table.add_row({kind, format_count(reach.runs), format_count(reach.most_accelerators),
                   format_count(reach.longest_sequence)});
  }
  return table;
}

// The classes that plans of this scenario may be of: without and with sharded parameters, inside
// and outside validated ground.
std::vector<validation::PredictionClass> classes_of(const Scenario& scenario) {
  using enum validation::PredictionGround;
  std::vector<validation::PredictionClass> classes;
  for (const int zero_stage : {1, 3}) {
    Scenario each = scenario;
    each.plan.zero_stage = zero_stage;
    const auto of = validation::class_of(each);
    if (!of) return {};
    const bool generic = of->ground == GenericStack;
    for (const auto ground :
         generic ? std::vector{GenericStack} : std::vector{StatedPlan, OutsidePlan}) {
      const validation::PredictionClass candidate = {ground, of->workload};
      if (std::ranges::find(classes, candidate) == classes.end()) classes.push_back(candidate);
    }
  }
  return classes;
}

Table expected_error_table(const std::vector<validation::PredictionClass>& classes) {
  Table table({{"class of plan"},
               {"measured over predicted step", ColumnKind::Text, "80 % of them"},
               {"published runs", kNumber}});
  for (const validation::PredictionClass& each : classes) {
    const auto interval = validation::step_interval(Seconds(1.0), each);
    table.add_row({validation::class_text(each),
                   fmt::format("{} to {}", format_fixed(interval->low.value(), 2),
                               format_fixed(interval->high.value(), 2)),
                   format_count(interval->runs)});
  }
  return table;
}

template <class Enum>
std::string names_text(const std::vector<Enum>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) names.emplace_back(name_of(value));
  return names.empty() ? "any" : fmt::format("{}", fmt::join(names, ", "));
}

std::vector<std::pair<std::string, std::string>> capabilities(const StackSpec& stack) {
  const StackCapabilities& runs = stack.capabilities;
  std::vector<std::pair<std::string, std::string>> facts = {
      {"schedules", names_text(stack.schedules)},
      {"ZeRO stages", stack.zero_stages.empty()
                          ? "0 to 3"
                          : fmt::format("{}", fmt::join(stack.zero_stages, ", "))},
      {"context parallel", names_text(runs.context_parallel)},
      {"recomputation", names_text(stack.recompute)},
      {"precisions", names_text(runs.precisions)},
      {"low-rank adapters", runs.lora ? "yes" : "no"}};
  if (!runs.framework.empty()) facts.insert(facts.begin(), {"framework", runs.framework});
  return facts;
}

ordered_json support_json(const Scenario& scenario, const validation::ValidatedGround& ground,
                          const std::vector<std::string>& refusals) {
  ordered_json document = new_document("support");
  document["inputs"] = inputs_json(scenario.model, scenario.cluster, scenario.stack);
  document["unsupported"] = scenario.model.not_simulated;
  document["refused"] = refusals;
  document["validated"] = ordered_json::array();
  for (const auto& [kind, reach] : ground.kinds()) {
    if (!refusals.empty()) break;
    document["validated"].push_back({{"kind", kind},
                                     {"runs", reach.runs},
                                     {"most_accelerators", reach.most_accelerators},
                                     {"longest_sequence", reach.longest_sequence}});
  }
  document["classes"] = ordered_json::array();
  for (const validation::PredictionClass& each : classes_of(scenario)) {
    if (!refusals.empty()) break;
    const auto interval = validation::step_interval(Seconds(1.0), each);
    document["classes"].push_back({{"class", validation::class_text(each)},
                                   {"low_ratio", interval->low.value()},
                                   {"high_ratio", interval->high.value()},
                                   {"runs", interval->runs}});
  }
  document["figures"] = ordered_json::object();
  for (const auto& [part, counts] : figures_of(scenario)) {
    for (const Confidence confidence : enumerators<Confidence>())
      document["figures"][part][name_of(confidence)] = counts[confidence];
  }
  document["capabilities"] = ordered_json::object();
  for (const auto& [name, text] : capabilities(scenario.stack))
    document["capabilities"][name] = text;
  return document;
}

void add_validation(Page& page, const Scenario& scenario,
                    const validation::ValidatedGround& ground) {
  if (ground.kinds().empty()) {
    page.heading("Not validated");
    page.paragraph(fmt::format("There is no published run of {}.", ground.what()));
  } else {
    page.heading("Validated");
    page.paragraph(
        fmt::format("Published runs of {}. Plans of these kinds are inside validated ground, on up "
                    "to four times as many accelerators "
                    "and with sequences twice as long.",
                    ground.what()));
    page.table(run_table(ground));
  }
  page.heading("Expected errors");
  const auto classes = classes_of(scenario);
  if (classes.empty()) {
    page.paragraph("Unknown: no published run used this stack.");
  } else {
    page.table(expected_error_table(classes));
    page.paragraph(fmt::format("Memory is judged by {}.",
                               format_plural(validation::memory_runs(), "published peak")));
  }
}

void add_support(Page& page, const Scenario& scenario, const validation::ValidatedGround& ground,
                 const std::vector<std::string>& refusals) {
  page.heading(fmt::format("{} on {} ({}), {}", scenario.model.name,
                           scenario.cluster.accelerator.name, scenario.cluster.name,
                           scenario.stack.name));
  for (const std::string& refusal : refusals)
    page.paragraph(fmt::format("Unsupported: {}.", refusal));
  for (const std::string& part : scenario.model.not_simulated)
    page.paragraph(fmt::format("Unsupported: {} of the model is not simulated.", part));
  if (refusals.empty()) add_validation(page, scenario, ground);
  page.heading("Figures and where they come from");
  page.table(figure_table(scenario));
  page.heading("What the stack runs");
  page.facts(capabilities(scenario.stack));
}

ExitCode support(const SupportOptions& options) {
  check_destination("--json", options.common.json, options.common.force);
  const Scenario scenario = supported_scenario(options);
  const validation::ValidatedGround ground(scenario);
  Page page = new_page(options.common);
  const std::vector<std::string> refusals = refusals_of(scenario);
  add_support(page, scenario, ground, refusals);
  deliver(options.common, page, support_json(scenario, ground, refusals));
  return ExitCode::Ok;
}

}  // namespace

void add_support_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "support",
      "Say what is validated, estimated or unsupported for a model, a cluster and a stack");
  command->footer(
      "Example:\n  shardwright support --model mixtral-8x7b --cluster dgx-h100 \\\n"
      "      --stack megatron-core");
  const auto options = std::make_shared<SupportOptions>();
  add_option(*command, "--model", options->model, "NAME|FILE|FOLDER", kModelHelp, "Scenario");
  add_option(*command, "--cluster", options->cluster, "NAME|FILE|here", kClusterHelp, "Scenario");
  add_option(*command, "--stack", options->stack, "NAME|FILE",
             "A shipped software stack or a JSON file (default megatron-core)", "Scenario");
  add_option(*command, "--precision", options->precision, "NAME",
             "Number format of the GEMMs (default bf16)", "Scenario");
  add_common_options(*command, options->common);
  command->callback([options, &action] { action = [options] { return support(*options); }; });
}

}  // namespace shardwright::cli
