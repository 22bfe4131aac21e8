#include "core/spec/scenario.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string_view>

#include "core/base/json_reader.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/fields.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright {
namespace {

// The libraries also take paths, which would tie a plan file to the place where it is read.
bool may_be_path(std::string_view name) {
  return name.empty() || name == "-" || name.find('/') != std::string_view::npos ||
         name.find(".json") != std::string_view::npos;
}

// Reads a part that is either a document or a shipped name. The part's readers throw problems of
// their own; they are collected here, at the part's place in the file.
template <class Spec>
Spec read_part(ObjectReader& object, const std::string& key, Spec (*load)(const std::string&),
               Spec (*read)(const nlohmann::json&, const std::string&)) {
  const nlohmann::json& part = object.raw(key);
  const std::string pointer = "/" + key;
  if (!part.is_object() && (!part.is_string() || may_be_path(part.get_ref<const std::string&>()))) {
    object.problem_with(key, fmt::format("a {} or the name of a shipped one", key));
    return {};
  }
  try {
    return part.is_object() ? read(part, object.problems().source())
                            : load(part.get_ref<const std::string&>());
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems()) {
      object.problems().add(pointer + problem.where, problem.found, problem.expected);
    }
    return {};
  }
}

// A cluster inside a plan file brings its parts along.
ClusterSpec read_whole_cluster(const nlohmann::json& document, const std::string& source) {
  const PartLibrary no_names = {[](const std::string&) { return std::vector<std::string>{}; },
                                [](const std::string&, const std::string& name) -> nlohmann::json {
                                  throw InputError(
                                      name, {{"", fmt::format("the name \"{}\"", name),
                                              "the part itself: a plan file is self-contained"}});
                                }};
  return read_cluster(document, source, no_names);
}

}  // namespace

void read_parts(ObjectReader& object, Scenario& scenario) {
  scenario.model = read_part<ModelSpec>(object, "model", load_model, read_model);
  scenario.cluster = read_part<ClusterSpec>(object, "cluster", load_cluster, read_whole_cluster);
  scenario.stack = read_part<StackSpec>(object, "stack", load_stack, read_stack);
}

void describe(Scenario& scenario, FieldVisitor& fields) {
  fields.header(kPlanSchema, false);
  fields.document("model", "model", kRequired, "the model, or the name of a shipped one");
  fields.document("cluster", "cluster", kRequired, "the cluster, or the name of a shipped one");
  fields.document("stack", "stack", kRequired, "the stack, or the name of a shipped one");
  fields.section("plan", kRequired, "the plan", [&] { describe(scenario.plan, fields); });
}

Scenario read_scenario(const nlohmann::json& document, const std::string& source) {
  ProblemList problems(source);
  ObjectReader object(document, "", problems);
  check_schema(object, kPlanSchema);
  Scenario scenario;
  read_parts(object, scenario);
  ObjectReader plan = object.object("plan");
  scenario.plan = read_plan(plan);
  object.refuse_unknown_keys();
  problems.throw_if_any();

  for (const BrokenRule& broken :
       broken_rules(scenario.model, &scenario.cluster, scenario.plan, 0, "/plan")) {
    problems.add(broken.problem.where, broken.problem.found, broken.problem.expected);
  }
  problems.throw_if_any();
  return scenario;
}

Scenario load_scenario(const std::string& file_or_dash) {
  return read_scenario(read_json_argument(file_or_dash), argument_source(file_or_dash));
}

nlohmann::ordered_json to_json(const Scenario& scenario) {
  return {{"schema", kPlanSchema},
          {"version", 1},
          {"model", to_json(scenario.model)},
          {"cluster", to_json(scenario.cluster)},
          {"stack", to_json(scenario.stack)},
          {"plan", to_json(scenario.plan)}};
}

}  // namespace shardwright
