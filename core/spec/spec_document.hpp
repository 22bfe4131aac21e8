// Models, clusters, stacks, run profiles and batch profiles as plan files, measurements and the
// command line give them.
//
// Each of them may be the name of a shipped one, a whole document, or a patch: an object whose
// "base" names a shipped document, with a JSON merge patch (RFC 7396) on it as its other members:
//   {"base": "dgx-h100", "node": {"nic": {"per_node": 4}}}
// A cluster's document holds its accelerator, node and fabric, so that one patch reaches them all.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/base/enum_names.hpp"
#include "core/spec/batch_spec.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/model_spec.hpp"
#include "core/spec/run_spec.hpp"
#include "core/spec/stack_spec.hpp"

namespace shardwright {

class ObjectReader;

// Model, cluster and stack are parts of a plan file; profiles of runs and of batches are none.
enum class SpecKind : std::uint8_t { Model, Cluster, Stack, Run, Batch };
constexpr auto enum_names(SpecKind) {
  return std::array{"model", "cluster", "stack", "run", "batch"};
}

// {"node": {"nic": {"per_node": 4}}} for "node.nic.per_node" and 4.
nlohmann::json patch_at(std::string_view path, nlohmann::json value);

// True for objects with a "base".
bool is_patch(const nlohmann::json& given);

// The self-contained document of a shipped model, cluster, stack or run profile. Throws InputError,
// with the nearest name, if none has this name.
const nlohmann::json& shipped_document(SpecKind kind, const std::string& name);

// The whole document that a name, a patch or a document stands for; anything else stays as it is,
// for the readers to refuse. Throws InputError, which says that `source` is wrong, if there is no
// such name.
nlohmann::json whole_document(SpecKind kind, const nlohmann::json& given,
                              const std::string& source);

// Read what is given in any of the three ways. `source` names the file in errors, whose pointers
// are relative to what is given.
ModelSpec read_given_model(const nlohmann::json& given, const std::string& source);
ClusterSpec read_given_cluster(const nlohmann::json& given, const std::string& source);
StackSpec read_given_stack(const nlohmann::json& given, const std::string& source);
RunSpec read_given_run(const nlohmann::json& given, const std::string& source);
BatchSpec read_given_batch(const nlohmann::json& given, const std::string& source);

// The same of the member `key` of a file's object, where a path is refused. Problems join those of
// the object.
ModelSpec read_given_model(ObjectReader& object, const std::string& key);
ClusterSpec read_given_cluster(ObjectReader& object, const std::string& key);
StackSpec read_given_stack(ObjectReader& object, const std::string& key);
RunSpec read_given_run(ObjectReader& object, const std::string& key);

}  // namespace shardwright
