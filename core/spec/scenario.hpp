// A plan file: everything that one simulated training step rests on.
//
//   {"schema": "shardwright/plan", "version": 1, "model": …, "cluster": …, "stack": …, "plan": {…}}
//
// Model, cluster and stack are documents of their own formats, the names of shipped ones, or
// patches on these (core/spec/spec_document.hpp). What Shardwright writes is self-contained, so
// that a file means the same wherever and whenever it is read.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/plan.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

class ObjectReader;

inline constexpr const char* kPlanSchema = "shardwright/plan";

struct Scenario {
  ModelSpec model;
  ClusterSpec cluster;
  StackSpec stack;
  Plan plan;

  bool operator==(const Scenario&) const = default;
};

// Throws InputError with every problem of the file: those of its parts, or else the rules of
// plan_check.hpp that the plan breaks for this model and cluster. `source` names the file.
Scenario read_scenario(const nlohmann::json& document, const std::string& source);

// The same from a file, or from standard input if the name is "-".
Scenario load_scenario(const std::string& file_or_dash);

// The same for commands that take all stages to lie on the cluster's first pool: a plan with stages
// on pools is a problem.
Scenario load_scenario_of_one_pool(const std::string& file_or_dash);

// Model, cluster and stack alone, from an object that holds them as a plan file does. Problems join
// those of the object.
void read_parts(ObjectReader& object, Scenario& scenario);

// The values of fields that a document leaves out: what model and stack usually have
// (read_plan_of), or the defaults of `Plan`, for a document that states all that its source does.
enum class LeftOut : std::uint8_t { AsUsual, AsDefault };

// Model, cluster, stack and plan of an object that holds nothing else that was not read before.
// Problems, among them the rules that the plan breaks, join those of the object.
Scenario read_members(ObjectReader& object, LeftOut left_out);

// The same for a plan that may break rules, because some of its fields are still to be chosen.
Scenario read_unchecked_members(ObjectReader& object, LeftOut left_out);

// Self-contained. `read_scenario` gives back an equal scenario.
nlohmann::ordered_json to_json(const Scenario& scenario);

// Sixteen hexadecimal digits of a plan file's document, equal for those that lower to the same
// program: their model, stack and plan are the same. The cluster, which only says what the program
// costs, does not count. No secret: text_hash of the JSON text, with members in the order of
// their names.
std::string program_fingerprint(nlohmann::json plan_document);

}  // namespace shardwright
