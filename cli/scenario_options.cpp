#include "cli/scenario_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/option_values.hpp"
#include "core/base/json_reader.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;

constexpr const char* kDefaultStack = "megatron-core";

// The fields of a plan that have an option of their own; all others are set by --set.
struct FieldOption {
  const char* option;
  const char* key;
  const char* type;
  const char* help;
};
constexpr std::array kFieldOptions = {
    FieldOption{"--dp", "dp", "N", "Data-parallel replicas (default: what --gpus leaves)"},
    FieldOption{"--tp", "tp", "N", "Tensor-parallel ranks"},
    FieldOption{"--pp", "pp", "N", "Pipeline stages"},
    FieldOption{"--cp", "cp", "N", "Context-parallel ranks"},
    FieldOption{"--ep", "ep", "N", "Expert-parallel ranks"},
    FieldOption{"--vpp", "vpp", "N", "Model chunks per pipeline stage"},
    FieldOption{"--zero", "zero_stage", "0..3", "What data-parallel ranks shard"},
    FieldOption{"--micro-batch", "micro_batch", "N", "Sequences per microbatch (default 1)"},
    FieldOption{"--global-batch", "global_batch", "N", "Sequences per step"},
    FieldOption{"--seq-len", "seq_len", "N", "Tokens per sequence"},
    FieldOption{"--schedule", "schedule", "NAME", "Pipeline schedule: 1f1b, interleaved, zb-h1, …"},
    FieldOption{"--recompute", "recompute", "NAME", "none, selective or full"},
    FieldOption{"--precision", "precision", "NAME", "Number format of the GEMMs: bf16, fp8, …"},
};

// Numbers, switches and lists are written as in JSON; everything else is a name.
json parsed_value(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(text) : value;
}

void apply_setting(const std::string& setting, json& plan, ProblemList& problems) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos || equals == 0) {
    problems.add("--set", fmt::format("\"{}\"", setting), "FIELD=VALUE, as in tp=8");
    return;
  }
  json* place = &plan;
  std::string key = setting.substr(0, equals);
  for (auto dot = key.find('.'); dot != std::string::npos; dot = key.find('.')) {
    place = &(*place)[key.substr(0, dot)];
    if (!place->is_object()) *place = json::object();
    key.erase(0, dot + 1);
  }
  (*place)[key] = parsed_value(setting.substr(equals + 1));
}

void apply_fields(const ScenarioOptions& options, json& plan, ProblemList& problems) {
  for (const auto& [key, text] : options.fields) {
    if (!text.empty()) plan[key] = parsed_value(text);
  }
  for (const std::string& setting : options.settings) apply_setting(setting, plan, problems);
}

// "/tp" of a plan that the command line gives is "--tp" there.
std::string option_of(const std::string& pointer) {
  for (const FieldOption& field : kFieldOptions) {
    if (pointer == std::string("/") + field.key) return field.option;
  }
  return pointer.empty() ? "" : "--set " + pointer.substr(1);
}

void add_problems(const InputError& error, const std::string& option, ProblemList& problems) {
  for (const Problem& problem : error.problems()) {
    problems.add(fmt::format("{} {}{}{}", option, error.source(), problem.where.empty() ? "" : ": ",
                             problem.where),
                 problem.found, problem.expected);
  }
}

// Loads a part; what is wrong with it joins the other problems of the command line.
template <class Spec>
Spec load_part(Spec (*load)(const std::string&), const std::string& name, const char* option,
               ProblemList& problems) {
  if (name.empty()) {
    problems.add(option, "nothing", "a name or a file");
    return {};
  }
  try {
    return load(name);
  } catch (const InputError& error) {
    add_problems(error, option, problems);
    return {};
  }
}

std::int64_t degree(const json& plan, const char* key) {
  const auto found = plan.find(key);
  const bool sane =
      found != plan.end() && found->is_number_integer() && *found > 0 && *found <= kMaxDegree;
  return sane ? found->get<std::int64_t>() : 1;
}

// Data parallelism takes the accelerators that the other axes leave.
void fill_data_parallel(json& plan, std::int64_t gpus) {
  if (plan.contains("dp") || gpus == 0) return;
  const std::int64_t replica = degree(plan, "tp") * degree(plan, "pp") * degree(plan, "cp");
  plan["dp"] = std::max<std::int64_t>(1, gpus / replica);
}

Plan read_command_line_plan(const ScenarioOptions& options, std::int64_t gpus,
                            ProblemList& problems) {
  json document = json::object();
  apply_fields(options, document, problems);
  fill_data_parallel(document, gpus);
  for (const char* key : {"dp", "tp", "pp", "micro_batch"}) {
    if (!document.contains(key)) document[key] = 1;
  }
  ProblemList plan_problems("");
  ObjectReader reader(document, "", plan_problems);
  const Plan plan = read_plan(reader);
  try {
    plan_problems.throw_if_any();
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems())
      problems.add(option_of(problem.where), problem.found, problem.expected);
  }
  return plan;
}

void append(std::vector<std::string>& lines, const std::string& part,
            const std::vector<std::string>& more) {
  for (const std::string& line : more) lines.push_back(part + " " + line);
}

ChosenScenario from_command_line(const ScenarioOptions& options, const std::string& command) {
  ProblemList problems(command);
  Scenario scenario;
  scenario.model = load_part(load_model, options.model, "--model", problems);
  scenario.cluster = load_part(load_cluster, options.cluster, "--cluster", problems);
  scenario.stack = load_part(load_stack, options.stack.empty() ? kDefaultStack : options.stack,
                             "--stack", problems);
  const std::int64_t gpus =
      options.gpus.empty() ? 0 : read_count("--gpus", options.gpus, kMaxWorld, problems);
  scenario.plan = read_command_line_plan(options, gpus, problems);
  problems.throw_if_any();
  for (const BrokenRule& broken :
       broken_rules(scenario.model, &scenario.cluster, scenario.plan, gpus)) {
    problems.add(option_of(broken.problem.where), broken.problem.found, broken.problem.expected);
  }
  problems.throw_if_any();
  ChosenScenario chosen{std::move(scenario), {}};
  append(chosen.filled_in, "cluster", chosen.scenario.cluster.filled_in);
  append(chosen.filled_in, "stack", chosen.scenario.stack.filled_in);
  return chosen;
}

// A plan file in which the given options replace what the file says.
ChosenScenario from_file(const ScenarioOptions& options, const std::string& command) {
  json document = read_json_argument(options.plan_file);
  ProblemList problems(command);
  const auto replace = [&](const char* key, const std::string& name, auto load) {
    if (!name.empty() && document.is_object())
      document[key] =
          json(to_json(load_part(load, name, fmt::format("--{}", key).c_str(), problems)));
  };
  replace("model", options.model, load_model);
  replace("cluster", options.cluster, load_cluster);
  replace("stack", options.stack, load_stack);
  if (document.is_object() && document.contains("plan") && document["plan"].is_object())
    apply_fields(options, document["plan"], problems);
  problems.throw_if_any();
  return {read_scenario(document, options.plan_file), {}};
}

}  // namespace

void add_scenario_options(CLI::App& command, ScenarioOptions& options) {
  constexpr const char* kGroup = "What to simulate";
  command.add_option("--plan", options.plan_file, "A plan file; other options replace parts of it")
      ->type_name("FILE|-")
      ->group(kGroup);
  command.add_option("--model", options.model, "A shipped model, a JSON file or a folder")
      ->type_name("NAME|FILE|FOLDER")
      ->group(kGroup);
  command.add_option("--cluster", options.cluster, "A shipped cluster or a JSON file")
      ->type_name("NAME|FILE")
      ->group(kGroup);
  command
      .add_option(
          "--stack", options.stack,
          fmt::format("A shipped software stack or a JSON file (default {})", kDefaultStack))
      ->type_name("NAME|FILE")
      ->group(kGroup);
  command.add_option("--gpus", options.gpus, "Accelerators")->type_name("N")->group(kGroup);
  for (const FieldOption& field : kFieldOptions) {
    command.add_option(field.option, options.fields[field.key], field.help)
        ->type_name(field.type)
        ->group("Plan");
  }
  command
      .add_option("--set", options.settings,
                  "Any other field of a plan file, as in overlap.p2p=false (repeatable)")
      ->type_name("FIELD=VALUE")
      ->take_all()
      ->expected(1)
      ->group("Plan");
}

ChosenScenario choose_scenario(const ScenarioOptions& options, const std::string& command) {
  return options.plan_file.empty() ? from_command_line(options, command)
                                   : from_file(options, command);
}

}  // namespace shardwright::cli
