#include "core/spec/scenario.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/base/json_reader.hpp"
#include "core/base/text_hash.hpp"
#include "core/spec/cluster_json.hpp"
#include "core/spec/fields.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/model_json.hpp"
#include "core/spec/plan_check.hpp"
#include "core/spec/plan_json.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/spec_document.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright {

void read_parts(ObjectReader& object, Scenario& scenario) {
  scenario.model = read_given_model(object, "model");
  scenario.cluster = read_given_cluster(object, "cluster");
  scenario.stack = read_given_stack(object, "stack");
}

Scenario read_unchecked_members(ObjectReader& object, LeftOut left_out) {
  Scenario scenario;
  read_parts(object, scenario);
  ObjectReader plan = object.object("plan");
  scenario.plan = left_out == LeftOut::AsUsual ? read_plan_of(plan, scenario.model, scenario.stack)
                                               : read_plan(plan);
  object.refuse_unknown_keys();
  return scenario;
}

Scenario read_members(ObjectReader& object, LeftOut left_out) {
  const std::size_t before = object.problems().size();
  Scenario scenario = read_unchecked_members(object, left_out);
  if (object.problems().size() > before) return scenario;
  for (const BrokenRule& broken : broken_rules(scenario.model, &scenario.cluster, scenario.plan, 0,
                                               object.pointer() + "/plan"))
    object.problems().add(broken.problem.where, broken.problem.found, broken.problem.expected);
  return scenario;
}

void describe(Scenario& scenario, FieldVisitor& fields) {
  fields.header(kPlanSchema, false);
  fields.document("model", "model", kRequired,
                  "a model: its document, its name, or a [patch](plan.md#patches)");
  fields.document("cluster", "cluster", kRequired, "a cluster, as for `model`");
  fields.document("stack", "stack", kRequired, "a stack, as for `model`");
  fields.section("plan", kRequired, "the plan", [&] { describe(scenario.plan, fields); });
}

Scenario read_scenario(const nlohmann::json& document, const std::string& source) {
  ProblemList problems(source);
  ObjectReader object(document, "", problems);
  check_schema(object, kPlanSchema);
  Scenario scenario = read_members(object, LeftOut::AsUsual);
  problems.throw_if_any();
  return scenario;
}

Scenario load_scenario(const std::string& file_or_dash) {
  return read_scenario(read_json_argument(file_or_dash), argument_source(file_or_dash));
}

Scenario load_scenario_of_one_pool(const std::string& file_or_dash) {
  Scenario scenario = load_scenario(file_or_dash);
  refuse_pools(scenario.plan, argument_source(file_or_dash));
  return scenario;
}

nlohmann::ordered_json to_json(const Scenario& scenario) {
  return {{"schema", kPlanSchema},
          {"version", 1},
          {"model", to_json(scenario.model)},
          {"cluster", to_json(scenario.cluster)},
          {"stack", to_json(scenario.stack)},
          {"plan", to_json(scenario.plan)}};
}

std::string program_fingerprint(nlohmann::json plan_document) {
  if (plan_document.is_object()) plan_document.erase("cluster");
  return fmt::format("{:016x}", text_hash(plan_document.dump()));
}

}  // namespace shardwright
