#include "cli/options/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/options/option_values.hpp"
#include "cli/options/scenario_parts.hpp"
#include "core/base/quantity_reading.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/run_json.hpp"
#include "core/spec/stack_json.hpp"
#include "planner/constraints.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;

constexpr std::string_view kPlan = "plan.";

bool is_of(SpecKind kind, const std::string& setting) {
  return setting.starts_with(std::string(name_of(kind)) + '.');
}

bool is_of_a_spec(const std::string& setting) {
  return std::ranges::any_of(kPlanFileParts, [&](SpecKind kind) { return is_of(kind, setting); });
}

// {"node": {"nic": {"per_node": 4}}} for "node.nic.per_node=4".
json as_patch(std::string_view setting) {
  const auto equals = setting.find('=');
  return patch_at(setting.substr(0, equals), parsed_value(std::string(setting.substr(equals + 1))));
}

void refuse_shapeless(const std::string& setting, ProblemList& problems) {
  const auto equals = setting.find('=');
  if (equals != std::string::npos && equals != 0) return;
  problems.add("--set", fmt::format("\"{}\"", setting), "FIELD=VALUE, as in tp=8");
}

template <class Spec>
void apply(SpecKind kind, const std::vector<std::string>& settings, Spec& spec,
           Spec (*read)(const json&, const std::string&), ProblemList& problems) {
  const json patch = spec_settings(kind, settings);
  if (patch.empty()) return;
  json document = to_json(spec);
  document.merge_patch(patch);
  spec = read_part("--set", problems, [&] { return read(document, name_of(kind)); });
}

}  // namespace

json parsed_value(const std::string& text) {
  json value = json::parse(text, nullptr, false);
  if (!value.is_discarded()) return value;
  if (const auto count = parse_count(text)) return *count;
  if (const auto quantity = parse_quantity(text)) return *quantity;
  return text;
}

json lora_value(const std::string& text) {
  json lora = json::object();
  for (const std::string& setting : planner::split_at(text, ',')) {
    // A list of a file of options has commas between its items.
    if (setting.find('=') == std::string::npos && lora.contains("targets")) {
      lora["targets"].push_back(setting);
      continue;
    }
    json value = as_patch(setting);
    if (value.contains("targets"))
      value["targets"] = planner::split_at(setting.substr(setting.find('=') + 1), '+');
    lora.update(value);
  }
  return lora;
}

json plan_settings(const std::vector<std::string>& settings, ProblemList& problems) {
  json patch = json::object();
  for (const std::string& setting : settings) {
    const std::size_t before = problems.size();
    refuse_shapeless(setting, problems);
    if (setting.starts_with(kPlan)) {
      problems.add(
          "--set", fmt::format("\"{}\"", setting),
          fmt::format("a field of the plan by itself, as in {}", setting.substr(kPlan.size())));
    }
    if (problems.size() == before && !is_of_a_spec(setting)) patch.merge_patch(as_patch(setting));
  }
  return patch;
}

json spec_settings(SpecKind kind, const std::vector<std::string>& settings) {
  json patch = json::object();
  const std::size_t prefix = std::string_view(name_of(kind)).size() + 1;
  for (const std::string& setting : settings) {
    if (is_of(kind, setting) && setting.find('=') != std::string::npos)
      patch.merge_patch(as_patch(std::string_view(setting).substr(prefix)));
  }
  return patch;
}

void refuse_plan_settings(const std::vector<std::string>& settings, ProblemList& problems) {
  for (const std::string& setting : settings) {
    if (is_of_a_spec(setting)) {
      refuse_shapeless(setting, problems);
    } else {
      problems.add("--set", fmt::format("\"{}\"", setting),
                   "model.…, cluster.… or stack.…; use --fix for fields of the plan");
    }
  }
}

void apply_settings(const std::vector<std::string>& settings, ModelSpec& model,
                    ProblemList& problems) {
  apply(SpecKind::Model, settings, model, read_given_model, problems);
}

void apply_settings(const std::vector<std::string>& settings, ClusterSpec& cluster,
                    ProblemList& problems) {
  apply(SpecKind::Cluster, settings, cluster, read_given_cluster, problems);
}

void apply_settings(const std::vector<std::string>& settings, StackSpec& stack,
                    ProblemList& problems) {
  apply(SpecKind::Stack, settings, stack, read_given_stack, problems);
}

void apply_settings(const std::vector<std::string>& settings, RunSpec& run, ProblemList& problems) {
  for (const std::string& setting : settings) refuse_shapeless(setting, problems);
  apply(SpecKind::Run, settings, run, read_given_run, problems);
}

std::vector<std::string> take_run_settings(std::vector<std::string>& settings) {
  const auto [first, last] = std::ranges::stable_partition(
      settings, [](const std::string& setting) { return !is_of(SpecKind::Run, setting); });
  std::vector<std::string> taken(first, last);
  settings.erase(first, last);
  return taken;
}

}  // namespace shardwright::cli
