#include "cli/options/scenario_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/options/common_options.hpp"
#include "cli/options/option_values.hpp"
#include "cli/options/scenario_parts.hpp"
#include "cli/options/settings.hpp"
#include "core/base/json_reader.hpp"
#include "core/base/printable_text.hpp"
#include "core/base/standard_streams.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/stack_json.hpp"
#include "planner/request_check.hpp"
#include "sim/cost/measured_kernels.hpp"
#include "validation/validation.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;

// The plan fields that have their own options; all others are set by --set.
struct FieldOption {
  const char* option;
  const char* key;
  const char* type;
  const char* help;
};
constexpr std::array kFieldOptions = {
    FieldOption{"--dp", "dp", "N", "Data-parallel replicas (default: uses all of --gpus)"},
    FieldOption{"--tp", "tp", "N", "Tensor-parallel ranks"},
    FieldOption{"--pp", "pp", "N", "Pipeline stages"},
    FieldOption{"--cp", "cp", "N", "Context-parallel ranks"},
    FieldOption{"--ep", "ep", "N", "Expert-parallel ranks"},
    FieldOption{"--vpp", "vpp", "N", "Model chunks per pipeline stage"},
    FieldOption{"--zero", "zero_stage", "0..3",
                "ZeRO stage: 1 shards optimizer states, 2 gradients too, 3 parameters too"},
    FieldOption{"--micro-batch", "micro_batch", "N", "Sequences per microbatch (default 1)"},
    FieldOption{"--global-batch", "global_batch", "N", "Sequences per step"},
    FieldOption{"--seq-len", "seq_len", "N", "Tokens per sequence, as in 8192 or 8k (k = 1,024)"},
    FieldOption{"--schedule", "schedule", "NAME", "Pipeline schedule: 1f1b, interleaved, zb-h1, …"},
    FieldOption{"--recompute", "recompute", "NAME", "none, selective, per-op or full"},
    FieldOption{"--precision", "precision", "NAME", "Number format of the GEMMs: bf16, fp8, …"},
    FieldOption{"--lora", kLoraField, "rank=N,...", kLoraHelp},
};

void apply_fields(const ScenarioOptions& options, json& plan, ProblemList& problems) {
  const json settings = plan_settings(options.settings, problems);
  for (const auto& [option, key, type, help] : kFieldOptions) {
    const auto given = options.fields.find(key);
    if (given == options.fields.end() || given->second.empty()) continue;
    if (settings.contains(key))
      problems.add(option, "also --set " + std::string(key), "one of the two");
    plan[key] = std::string_view(key) == kLoraField ? lora_value(given->second)
                                                    : parsed_value(given->second);
  }
  plan.merge_patch(settings);
}

// Returns the option for a field: "--tp" for "/tp", "--lora rank" for "/lora/rank".
std::string option_of(const std::string& pointer) {
  for (const FieldOption& field : kFieldOptions) {
    const std::string of_field = std::string("/") + field.key;
    if (pointer == of_field) return field.option;
    if (pointer.starts_with(of_field + "/"))
      return std::string(field.option) + ' ' + pointer.substr(of_field.size() + 1);
  }
  return pointer.empty() ? "" : "--set " + pointer.substr(1);
}

std::int64_t degree(const json& plan, const char* key) {
  const auto found = plan.find(key);
  const bool sane =
      found != plan.end() && found->is_number_integer() && *found > 0 && *found <= kMaxDegree;
  return sane ? found->get<std::int64_t>() : 1;
}

// Fills in a data-parallel degree that uses all accelerators.
void fill_data_parallel(json& plan, std::int64_t gpus) {
  if (plan.contains("dp") || gpus == 0) return;
  const std::int64_t replica = degree(plan, "tp") * degree(plan, "pp") * degree(plan, "cp");
  plan["dp"] = std::max<std::int64_t>(1, gpus / replica);
}

// `scenario` has its model, cluster and stack already.
Plan read_command_line_plan(const ScenarioOptions& options, std::int64_t gpus,
                            const Scenario& scenario, std::vector<std::string>& filled_in,
                            ProblemList& problems) {
  json document = json::object();
  document["precision"] = name_of(planner::usual_precision(scenario.cluster));
  apply_fields(options, document, problems);
  fill_data_parallel(document, gpus);
  for (const char* key : {"dp", "tp", "pp", "micro_batch"}) {
    if (!document.contains(key)) document[key] = 1;
  }
  const std::vector<ContextParallelKind>& kinds = scenario.stack.capabilities.context_parallel;
  if (degree(document, "cp") > 1 && !kinds.empty() && !document.contains("context_parallel")) {
    document["context_parallel"] = name_of(kinds.front());
    filled_in.push_back(fmt::format("context parallelism by {}, as the stack \"{}\" runs it",
                                    name_of(kinds.front()), scenario.stack.name));
  }
  ProblemList plan_problems("");
  ObjectReader reader(document, "", plan_problems);
  Plan plan = read_plan_of(reader, scenario.model, scenario.stack);
  if (plan.head_counts_as_layer && !document.contains("head_counts_as_layer")) {
    filled_in.push_back(fmt::format("embedding and head count as layers: {} chunks for {} layers",
                                    plan.chunks(), scenario.model.layers));
  }
  try {
    plan_problems.throw_if_any();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems())
      problems.add(option_of(problem.where),
                   problem.found == "no such key" ? "nothing" : problem.found, problem.expected);
  }
  return plan;
}

std::int64_t read_gpus(const ScenarioOptions& options, ProblemList& problems) {
  return options.gpus.empty() ? 0 : read_count("--gpus", options.gpus, kMaxWorld, problems);
}

ChosenScenario with_class(Scenario scenario, std::vector<std::string> filled_in) {
  const auto prediction_class = validation::class_of(scenario);
  return {std::move(scenario), prediction_class, std::move(filled_in), {}};
}

// Checks all options but the cluster.
void check_before_probe(const ScenarioOptions& options, const std::string& command) {
  ProblemList problems(command);
  Scenario scenario;
  scenario.model = read_model_option(options.model, problems);
  // A stack that was measured on this machine has the name of a shipped one.
  scenario.stack = read_stack_option(options.stack, {}, problems);
  apply_settings(options.settings, scenario.model, problems);
  apply_settings(options.settings, scenario.stack, problems);
  std::vector<std::string> unused;
  read_command_line_plan(options, read_gpus(options, problems), scenario, unused, problems);
  problems.throw_if_any();
}

ChosenScenario from_command_line(const ScenarioOptions& options, const std::string& command) {
  if (needs_probe(options.cluster)) check_before_probe(options, command);
  ProblemList problems(command);
  Scenario scenario;
  scenario.model = read_model_option(options.model, problems);
  scenario.cluster = read_cluster_option(options.cluster, problems);
  scenario.stack = read_stack_option(options.stack, scenario.cluster, problems);
  apply_settings(options.settings, scenario.model, problems);
  apply_settings(options.settings, scenario.cluster, problems);
  apply_settings(options.settings, scenario.stack, problems);
  const std::int64_t gpus = read_gpus(options, problems);
  std::vector<std::string> filled_in;
  scenario.plan = read_command_line_plan(options, gpus, scenario, filled_in, problems);
  problems.throw_if_any();
  for (const BrokenRule& broken :
       broken_rules(scenario.model, &scenario.cluster, scenario.plan, gpus)) {
    problems.add(option_of(broken.problem.where), broken.problem.found, broken.problem.expected);
  }
  problems.throw_if_any();
  const auto by_parts = filled_in_by(scenario.model, scenario.cluster, scenario.stack);
  filled_in.insert(filled_in.end(), by_parts.begin(), by_parts.end());
  return with_class(std::move(scenario), std::move(filled_in));
}

bool gives(const ScenarioOptions& options, const std::string& key) {
  const auto field = options.fields.find(key);
  return (field != options.fields.end() && !field->second.empty()) ||
         std::any_of(options.settings.begin(), options.settings.end(),
                     [&](const std::string& setting) { return setting.starts_with(key + "="); });
}

std::string degrees_text(const json& plan) {
  return fmt::format("tp {} x pp {} x cp {}", degree(plan, "tp"), degree(plan, "pp"),
                     degree(plan, "cp"));
}

// The ranks of one replica; 0 if the degrees are out of range, which the check of the plan reports.
std::int64_t replica_ranks(const json& plan) {
  const double ranks = static_cast<double>(degree(plan, "tp")) *
                       static_cast<double>(degree(plan, "pp")) *
                       static_cast<double>(degree(plan, "cp"));
  return ranks > static_cast<double>(kMaxWorld) ? 0 : static_cast<std::int64_t>(ranks);
}

// Keeps the plan on the accelerators of its file, or on those of --gpus, by adapting the
// data-parallel degree, unless that is given too.
void fit_data_parallel(const ScenarioOptions& options, const json& before, json& plan,
                       std::vector<std::string>& filled_in, ProblemList& problems) {
  const std::int64_t old_replica = replica_ranks(before), replica = replica_ranks(plan);
  const std::int64_t in_file = degree(before, "dp") * old_replica;
  const std::int64_t wanted =
      options.gpus.empty() ? in_file : read_count("--gpus", options.gpus, kMaxWorld, problems);
  if (replica == 0 || old_replica == 0) return;
  if (gives(options, "dp")) {
    const std::int64_t world = degree(plan, "dp") * replica;
    if (world == wanted) return;
    if (!options.gpus.empty()) {
      problems.add("--gpus", fmt::format("{}", wanted),
                   fmt::format("dp {} x {} = {}", degree(plan, "dp"), degrees_text(plan), world));
    }
    filled_in.push_back(fmt::format("{} accelerators from the given degrees; the plan file has {}",
                                    world, in_file));
    return;
  }
  if (wanted % replica != 0) {
    problems.add("plan", fmt::format("{} = {} ranks", degrees_text(plan), replica),
                 fmt::format("a divisor of {} accelerators (or another --gpus or --dp)", wanted));
    return;
  }
  const std::int64_t dp = wanted / replica;
  if (dp == degree(plan, "dp")) return;
  plan["dp"] = dp;
  filled_in.push_back(
      fmt::format("dp {}, to use {} accelerators with {}", dp, wanted, degrees_text(plan)));
}

bool names_stack(const json& document, const std::string& name) {
  const auto stack = document.find("stack");
  return stack != document.end() &&
         (*stack == json(name) ||
          (stack->is_object() && stack->value("name", json()) == json(name)));
}

void change_spec(SpecKind kind, const std::vector<std::string>& settings, json& document,
                 ProblemList& problems) {
  const json patch = spec_settings(kind, settings);
  if (patch.empty()) return;
  json& given = document[name_of(kind)];
  given = read_part("--set", problems, [&] { return whole_document(kind, given, name_of(kind)); });
  given.merge_patch(patch);
}

// Replaces the parts of a plan file that options give, values in them, and fields of its plan.
void replace_parts(const ScenarioOptions& options, json& document,
                   std::vector<std::string>& filled_in, ProblemList& problems) {
  if (!options.model.empty())
    document["model"] = json(to_json(read_model_option(options.model, problems)));
  if (!options.cluster.empty()) {
    const ClusterSpec cluster = read_cluster_option(options.cluster, problems);
    document["cluster"] = json(to_json(cluster));
    if (cluster.stack && names_stack(document, cluster.stack->name))
      document["stack"] = json(to_json(*cluster.stack));
  }
  if (!options.stack.empty())
    document["stack"] = json(to_json(read_stack_option(options.stack, {}, problems)));
  for (const SpecKind kind : kPlanFileParts)
    change_spec(kind, options.settings, document, problems);
  if (!document.contains("plan") || !document["plan"].is_object()) return;
  json& plan = document["plan"];
  const json before = plan;
  apply_fields(options, plan, problems);
  fit_data_parallel(options, before, plan, filled_in, problems);
}

// Names the file and the options that replace parts of it, because either may be wrong.
std::string source_text(const std::string& file, const ScenarioOptions& options) {
  std::string given;
  const auto add = [&given](const std::string& option, const std::string& value) {
    if (!value.empty()) given += fmt::format(" {} {}", option, value);
  };
  add("--model", options.model);
  add("--cluster", options.cluster);
  add("--stack", options.stack);
  add("--gpus", options.gpus);
  for (const std::string& option : stated_plan_options(options)) given += ' ' + option;
  return given.empty() ? file : file + " with" + given;
}

// Checks the file with all options but --cluster, on its own cluster.
void check_before_probe(json document, ScenarioOptions options, const std::string& command) {
  options.cluster.clear();
  ProblemList problems(command);
  std::vector<std::string> unused;
  if (document.is_object()) replace_parts(options, document, unused, problems);
  problems.throw_if_any();
}

ChosenScenario from_document(json document, const std::string& source,
                             const ScenarioOptions& options, const std::string& command) {
  if (needs_probe(options.cluster)) check_before_probe(document, options, command);
  ProblemList problems(command);
  std::vector<std::string> filled_in;
  if (document.is_object()) replace_parts(options, document, filled_in, problems);
  problems.throw_if_any();
  return with_class(read_scenario(document, source_text(source, options)), std::move(filled_in));
}

ChosenScenario from_row(const ScenarioOptions& options, const std::string& command) {
  const validation::Measurement row = read_row_option(options.row);
  ChosenScenario chosen =
      from_document(json(to_json(*row.scenario)), options.row, options, command);
  chosen.filled_in.insert(chosen.filled_in.begin(), row.assumed.begin(), row.assumed.end());
  // A plan on several pools has no class, although the row has one of its grade.
  if (!names_pools(chosen.scenario.plan))
    chosen.prediction_class = validation::class_of(row, chosen.scenario);
  return chosen;
}

ChosenScenario choose_formulas(const ScenarioOptions& options, const std::string& command) {
  if (!options.plan_file.empty() && !options.row.empty()) {
    throw InputError(command, {{"--row", "also --plan", "one of the two"}});
  }
  if (!options.plan_file.empty()) {
    return from_document(read_json_argument(options.plan_file), argument_source(options.plan_file),
                         options, command);
  }
  return options.row.empty() ? from_command_line(options, command) : from_row(options, command);
}

}  // namespace

void add_scenario_options(CLI::App& command, ScenarioOptions& options) {
  const auto add = [&](const char* name, std::string& value, const std::string& help,
                       const char* type) {
    add_option(command, name, value, type, help, "Scenario");
  };
  add("--plan", options.plan_file, "A plan file; other options replace parts of it", "FILE|-");
  add("--model", options.model, kModelHelp, "NAME|FILE|FOLDER");
  add("--cluster", options.cluster, kClusterHelp, "NAME|FILE|here");
  add("--stack", options.stack,
      fmt::format("A shipped software stack or a JSON file (default {})", kDefaultStack),
      "NAME|FILE");
  add("--row", options.row, "Take the scenario of a published measurement instead of a plan file",
      "FILE:ID");
  add("--gpus", options.gpus, "Number of accelerators; replaces that of a plan file", "N");
  add("--kernels", options.kernels,
      "CSV of measured kernels, which take precedence over the formulas", "FILE");
  for (const FieldOption& field : kFieldOptions)
    add_option(command, field.option, options.fields[field.key], field.type, field.help, "Plan");
  add_option(command, "--set", options.settings, "FIELD=VALUE",
             "Set any other field of a plan file, as in overlap.p2p=false, "
             "stack.host.cuda_graphs=true or cluster.accelerator.memory.capacity_bytes=96GB "
             "(repeatable)",
             "Plan")
      ->take_all()
      ->expected(1);
}

std::vector<std::string> stated_plan_options(const ScenarioOptions& options) {
  std::vector<std::string> stated;
  const auto add = [&stated](const std::string& option, const std::string& value) {
    if (!value.empty()) stated.push_back(option + ' ' + value);
  };
  for (const FieldOption& field : kFieldOptions) {
    const auto value = options.fields.find(field.key);
    if (value != options.fields.end()) add(field.option, value->second);
  }
  for (const std::string& setting : options.settings) add("--set", setting);
  add("--kernels", options.kernels);
  return stated;
}

ChosenScenario choose_scenario(const ScenarioOptions& options, const std::string& command) {
  // The table comes first, because the cluster may have to be probed for minutes.
  std::vector<MeasuredKernel> kernels;
  if (!options.kernels.empty()) kernels = sim::read_kernel_table(options.kernels);
  ChosenScenario chosen = choose_formulas(options, command);
  if (!options.kernels.empty())
    chosen.scenario.cluster.accelerator.measured_kernels = std::move(kernels);
  const Scenario& scenario = chosen.scenario;
  if (!options.takes_pools) refuse_pools(scenario.plan, command);
  chosen.notes = unsupported_by(scenario.stack, scenario.model, scenario.plan);
  return chosen;
}

void print_notes(const std::string& command, const std::vector<std::string>& notes) {
  for (const std::string& note : notes)
    print_message(fmt::format("{}: note: {}", command, printable(note)));
}

}  // namespace shardwright::cli
