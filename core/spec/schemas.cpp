#include "core/spec/schemas.hpp"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/base/nearest_name.hpp"
#include "core/spec/batch_spec.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/jobs_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/run_spec.hpp"
#include "core/spec/scenario.hpp"

namespace shardwright {
namespace {

template <class Spec>
FieldWalk fields_of() {
  return [](FieldVisitor& fields) {
    Spec defaults;
    describe(defaults, fields);
  };
}

const std::map<std::string, FieldWalk>& spec_walks() {
  static const std::map<std::string, FieldWalk> kWalks = {
      {"accelerator", fields_of<AcceleratorSpec>()},
      {"batch", fields_of<BatchSpec>()},
      {"cluster", fields_of<ClusterSpec>()},
      {"fabric", fields_of<FabricSpec>()},
      {"jobs", fields_of<JobsSpec>()},
      {"model", fields_of<ModelSpec>()},
      {"node", fields_of<NodeSpec>()},
      {"plan", fields_of<Scenario>()},
      {"run", fields_of<RunSpec>()},
      {"stack", fields_of<StackSpec>()}};
  return kWalks;
}

}  // namespace

std::vector<std::string> schema_names() {
  std::vector<std::string> names;
  for (const auto& [name, walk] : spec_walks()) names.push_back(name);
  return names;
}

nlohmann::ordered_json schema_of(const std::string& name) {
  const auto found = spec_walks().find(name);
  if (found == spec_walks().end())
    throw InputError(name, {{"", "no schema of this name", one_of(name, schema_names())}});
  return json_schema(found->second);
}

}  // namespace shardwright
