#include "core/spec/cluster_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/nearest_name.hpp"
#include "core/spec/cost_curve_fields.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/figures.hpp"
#include "core/spec/stack_json.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

// Reads the three parts of one cluster, each inline or by name.
class PartReader {
 public:
  PartReader(ObjectReader& cluster, const PartLibrary& library, std::vector<std::string>& filled_in)
      : cluster_(&cluster), library_(&library), filled_in_(&filled_in) {}

  template <class Part>
  Part read(const std::string& key, const std::string& folder,
            Part (*read_part)(const json&, const std::string&, ProblemList&,
                              std::vector<std::string>&)) {
    const json& given = cluster_->raw(key);
    if (given.is_object())
      return read_part(given, cluster_->pointer() + "/" + key, cluster_->problems(), *filled_in_);
    if (!given.is_string()) {
      cluster_->problem_with(key, "the name of a profile or an object");
      return {};
    }
    return read_named<Part>(key, folder, given.get<std::string>(), read_part);
  }

 private:
  template <class Part>
  Part read_named(const std::string& key, const std::string& folder, const std::string& name,
                  Part (*read_part)(const json&, const std::string&, ProblemList&,
                                    std::vector<std::string>&)) {
    const std::vector<std::string> names = library_->names(folder);
    const bool is_file = name.ends_with(".json");
    if (!is_file && names.empty()) {
      cluster_->problem(
          key, fmt::format("\"{}\"", name),
          fmt::format("an object: the {0}, or fields to change in that of the base. Its "
                      "name alone stands only in a file of hardware_profiles/clusters",
                      key));
      return {};
    }
    if (!is_file && std::ranges::find(names, name) == names.end()) {
      cluster_->problem(key, fmt::format("\"{}\"", name), one_of(name, names));
      return {};
    }
    // A named part is a file of its own, and its problems are that file's.
    const std::string file = is_file ? name : fmt::format("{}/{}.json", folder, name);
    try {
      const json document = library_->read(folder, name);
      ProblemList problems(file);
      std::vector<std::string> lines;
      Part part = read_part(document, "", problems, lines);
      problems.throw_if_any();
      for (const std::string& line : lines) filled_in_->push_back(fmt::format("{} {}", name, line));
      return part;
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) {
        const std::string place =
            problem.where.empty() ? file : fmt::format("{} {}", file, problem.where);
        cluster_->problem(key, fmt::format("{}: {}", place, problem.found), problem.expected);
      }
    }
    return {};
  }

  ObjectReader* cluster_;
  const PartLibrary* library_;
  std::vector<std::string>* filled_in_;
};

// A node count of 0 stands for as many as are asked for, which a fabric without switches cannot
// grow to.
void bound_nodes(ClusterSpec& cluster, std::vector<std::string>& lines) {
  const FabricKind kind = cluster.fabric.kind;
  if (cluster.nodes > 0 || (kind != FabricKind::None && kind != FabricKind::Torus)) return;
  cluster.nodes = cluster.reachable_nodes().value_or(0);
  cluster.sources["/nodes"] = {kFilledIn, Confidence::Assumed};
  lines.push_back(fmt::format("/nodes: {} filled in (all that the fabric joins)", cluster.nodes));
}

void check_network(ObjectReader& object, const ClusterSpec& cluster) {
  const std::int64_t reachable = cluster.reachable_nodes().value_or(0);
  if (reachable > 0 && cluster.nodes > reachable) {
    object.problem(
        "nodes", fmt::format("{} nodes on a cut network", cluster.nodes),
        fmt::format(
            "at most the {} nodes that {} \"{}\" joins", reachable,
            cluster.fabric.kind == FabricKind::None ? "the scale-up domain of" : "the fabric",
            cluster.fabric.kind == FabricKind::None ? cluster.node.name : cluster.fabric.name));
  }
  if (cluster.fabric.kind == FabricKind::Torus && cluster.nodes < reachable) {
    object.problem("nodes", fmt::format("{}", cluster.nodes),
                   fmt::format("the product {} of the torus axes", reachable));
  }
  if (cluster.fabric.kind == FabricKind::Torus &&
      cluster.node.scale_up.domain > cluster.node.accelerators) {
    object.problem("node",
                   fmt::format("a scale-up domain of {} accelerators on a torus",
                               cluster.node.scale_up.domain),
                   fmt::format("that of the {} of a node, for a torus joins single nodes",
                               cluster.node.accelerators));
  }
  if (cluster.fabric.kind != FabricKind::None && cluster.node.nic.per_node == 0) {
    object.problem("node", "a cut network: a node without NICs",
                   "a node with NICs, or a fabric of kind none");
  }
}

void describe_pools(ClusterSpec& cluster, FieldVisitor& fields) {
  fields.list("pools", cluster.pools, kOmissible,
              "further pools of a mixed cluster; the first pool is the rest of this document and "
              "has the cluster's name",
              [&](PoolSpec& pool) {
                fields.text("name", pool.name, kRequired, "name by which plans place stages on it");
                fields.document("accelerator", "accelerator", kRequired, "its accelerators");
                fields.document("node", "node", kRequired, "one of its nodes");
                fields.document("fabric", "fabric", kRequired, "the network between its nodes");
                fields.integer("nodes", pool.nodes, {0, 1'000'000'000}, kOmissible,
                               "nodes that exist; 0: as many as are asked for");
                describe_price(pool.price, fields);
              });
  std::optional<PoolNetwork> network;
  if (cluster.between_pools != PoolNetwork()) network = cluster.between_pools;
  fields.optional_section(
      "between_pools", network,
      "the network between pools, where it is slower than those of the pools",
      [&](PoolNetwork& between) {
        fields.number("bandwidth_bytes_per_s", between.bandwidth, kNonNegative, kOmissible,
                      "what a node reaches to nodes of other pools, per direction; 0: what its "
                      "NICs reach");
        fields.number("latency_s", between.latency, {0.0, 10.0, false}, kOmissible,
                      "latency of a message; 0: that of the fabrics");
      });
  cluster.between_pools = network.value_or(PoolNetwork());
}

// The parts of the pools; their other fields are read with those of the cluster.
void read_pool_parts(ObjectReader& object, const PartLibrary& library, ClusterSpec& cluster,
                     std::vector<std::string>& lines) {
  if (!object.has("pools")) return;
  for (ObjectReader& given : object.objects("pools")) {
    PoolSpec& pool = cluster.pools.emplace_back();
    PartReader parts(given, library, lines);
    pool.accelerator =
        parts.read<AcceleratorSpec>("accelerator", "accelerators", &read_accelerator);
    pool.node = parts.read<NodeSpec>("node", "nodes", &read_node);
    pool.fabric = parts.read<FabricSpec>("fabric", "fabrics", &read_fabric);
  }
}

bool joins_pools(const FabricSpec& fabric) {
  return fabric.kind != FabricKind::None && fabric.kind != FabricKind::Torus;
}

// Messages go between the fabrics of pools.
void check_pools(ObjectReader& object, const ClusterSpec& cluster) {
  if (cluster.pools.empty()) return;
  const auto check_fabric = [](ObjectReader& pool, const FabricSpec& fabric) {
    if (!joins_pools(fabric))
      pool.problem("fabric", fmt::format("a fabric of kind {}", name_of(fabric.kind)),
                   "one of switches, which other pools can join");
  };
  check_fabric(object, cluster.fabric);
  std::vector<std::string> names = {cluster.name};
  std::vector<ObjectReader> readers = object.objects("pools");
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    const PoolSpec& pool = cluster.pools[i];
    if (std::ranges::find(names, pool.name) != names.end())
      readers[i].problem("name", fmt::format("\"{}\" twice", pool.name),
                         "a name for each pool, other than the cluster's");
    names.push_back(pool.name);
    check_fabric(readers[i], pool.fabric);
    if (pool.node.nic.per_node == 0)
      readers[i].problem("node", "a node without NICs", "a node with NICs");
  }
}

// A document of its own, with problems of its own.
std::optional<StackSpec> read_own_stack(ObjectReader& cluster) {
  if (!cluster.has("stack")) return std::nullopt;
  try {
    return read_stack(cluster.raw("stack"), "");
  } catch (const InputError& error) {
    cluster.problems().add_all(cluster.pointer() + "/stack", error);
  }
  return std::nullopt;
}

}  // namespace

void describe(ClusterSpec& cluster, FieldVisitor& fields) {
  fields.header("shardwright/cluster", true);
  fields.text("name", cluster.name, kRequired, "name of the profile");
  fields.document("accelerator", "accelerator", kRequired, "the accelerators of its nodes");
  fields.document("node", "node", kRequired, "one of its nodes");
  fields.document("fabric", "fabric", kRequired, "the network between nodes");
  fields.texts("aliases", cluster.aliases, kOmissible,
               "how published measurements name systems like it");
  fields.integer("nodes", cluster.nodes, {0, 1'000'000'000}, kOmissible,
                 "nodes that exist; 0: as many as are asked for");
  fields.number("power_usage_effectiveness_ratio", cluster.power_usage_effectiveness,
                {1.0, 10.0, false}, reported("typical of a liquid-cooled data centre"),
                "power of the data centre over that of its computers");
  fields.list("exchange_curves", cluster.exchange_curves, kOmissible,
              "times of collectives and messages, which go before the formulas; `shardwright "
              "probe` and `calibrate` write them",
              [&](ExchangeCurve& curve) { describe(curve, fields); });
  fields.document("stack", "stack", kOmissible,
                  "the stack as it was measured here, for use where none is named");
  describe_price(cluster.price, fields);
  describe_pools(cluster, fields);
  fields.texts("filled_in", cluster.filled_in, kOmissible,
               "lines about fields that a profile left out, as Shardwright writes them");
  fields.text("notes", cluster.notes, kOmissible, "what a reader of the profile should know");
}

ClusterSpec read_cluster(const json& document, const std::string& source,
                         const PartLibrary& library) {
  ProblemList problems(source);
  ClusterSpec cluster;
  std::vector<std::string> lines;
  const json plain = separate_figures(document, "", problems, cluster.sources);
  ObjectReader object(plain, "", problems);
  PartReader parts(object, library, lines);
  cluster.accelerator =
      parts.read<AcceleratorSpec>("accelerator", "accelerators", &read_accelerator);
  const std::size_t before_network = problems.size();
  cluster.node = parts.read<NodeSpec>("node", "nodes", &read_node);
  cluster.fabric = parts.read<FabricSpec>("fabric", "fabrics", &read_fabric);
  read_pool_parts(object, library, cluster, lines);
  FillInReport report{"", &cluster.sources, &lines};
  read_fields(
      object, [&](FieldVisitor& fields) { describe(cluster, fields); }, &report);
  // Parts that were refused would only give problems that follow from the first ones.
  if (problems.size() == before_network) {
    bound_nodes(cluster, lines);
    check_network(object, cluster);
    check_pools(object, cluster);
  }
  cluster.stack = read_own_stack(object);
  problems.throw_if_any();
  cluster.filled_in.insert(cluster.filled_in.end(), lines.begin(), lines.end());
  return cluster;
}

ordered_json to_json(const ClusterSpec& cluster) {
  ordered_json document = write_spec(cluster, cluster.sources);
  document["accelerator"] = to_json(cluster.accelerator);
  document["node"] = to_json(cluster.node);
  document["fabric"] = to_json(cluster.fabric);
  for (std::size_t i = 0; i < cluster.pools.size(); ++i) {
    document["pools"][i]["accelerator"] = to_json(cluster.pools[i].accelerator);
    document["pools"][i]["node"] = to_json(cluster.pools[i].node);
    document["pools"][i]["fabric"] = to_json(cluster.pools[i].fabric);
  }
  if (cluster.stack) {
    document["stack"] = to_json(*cluster.stack);
  } else {
    document.erase("stack");
  }
  attach_sources(document, cluster.sources);
  return document;
}

}  // namespace shardwright
