// Cluster profiles as JSON: accelerators, nodes, fabrics and the clusters that are composed of
// them.
//
// Each is a document with a schema name ("shardwright/accelerator", "shardwright/node",
// "shardwright/fabric", "shardwright/cluster") and version 1. Figures carry their source as
// core/spec/figures.hpp describes. The readers throw InputError with all problems of the document;
// the writers' output reads back to an equal value.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/json_reader.hpp"
#include "core/spec/cluster_spec.hpp"

namespace shardwright {

// `source` names the document in errors.
AcceleratorSpec read_accelerator(const nlohmann::json& document, const std::string& source);
NodeSpec read_node(const nlohmann::json& document, const std::string& source);
FabricSpec read_fabric(const nlohmann::json& document, const std::string& source);

// The same for a document at `pointer` within a file whose problems are collected; `filled_in`
// receives a line for each figure that was left out.
AcceleratorSpec read_accelerator(const nlohmann::json& document, const std::string& pointer,
                                 ProblemList& problems, std::vector<std::string>& filled_in);
NodeSpec read_node(const nlohmann::json& document, const std::string& pointer,
                   ProblemList& problems, std::vector<std::string>& filled_in);
FabricSpec read_fabric(const nlohmann::json& document, const std::string& pointer,
                       ProblemList& problems, std::vector<std::string>& filled_in);

// Finds the parts that a cluster gives by name rather than inline.
struct PartLibrary {
  // Names in a folder ("accelerators", "nodes" or "fabrics").
  std::function<std::vector<std::string>(const std::string& folder)> names;
  // The document of a name that `names` lists, or of a name that ends in ".json": a file beside the
  // cluster's own. Throws InputError.
  std::function<nlohmann::json(const std::string& folder, const std::string& name)> read;
};

// Checks the parts against each other too: a cluster whose network is cut is refused.
ClusterSpec read_cluster(const nlohmann::json& document, const std::string& source,
                         const PartLibrary& library);

nlohmann::ordered_json to_json(const AcceleratorSpec& spec);
nlohmann::ordered_json to_json(const NodeSpec& spec);
nlohmann::ordered_json to_json(const FabricSpec& spec);
// Self-contained: its parts are written inline.
nlohmann::ordered_json to_json(const ClusterSpec& cluster);

}  // namespace shardwright
