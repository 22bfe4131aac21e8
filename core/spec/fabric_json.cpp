// Reading and writing fabric profiles.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr NumberRange kFabricLatency{0.0, 1.0, false};

const EnumNames<FabricKind>& kind_names() {
  static const EnumNames<FabricKind> kNames = {{"leaf-spine", FabricKind::LeafSpine},
                                               {"rail-optimised", FabricKind::RailOptimised},
                                               {"torus", FabricKind::Torus},
                                               {"none", FabricKind::None}};
  return kNames;
}

const EnumNames<FabricProtocol>& protocol_names() {
  static const EnumNames<FabricProtocol> kNames = {{"infiniband", FabricProtocol::InfiniBand},
                                                   {"roce", FabricProtocol::RoCE},
                                                   {"efa", FabricProtocol::Efa},
                                                   {"ethernet", FabricProtocol::Ethernet},
                                                   {"optical", FabricProtocol::Optical}};
  return kNames;
}

bool has_switches(FabricKind kind) {
  return kind == FabricKind::LeafSpine || kind == FabricKind::RailOptimised;
}

FabricLevel read_level(ObjectReader object, FillIn& fill) {
  FabricLevel level;
  level.nodes = object.integer("nodes", {1, 1'000'000'000});
  level.oversubscription = fill.number(object, "oversubscription_ratio", level.oversubscription,
                                       {1.0, 1e6, false}, "full bisection");
  level.latency = Seconds(fill.number(object, "latency_s", level.latency.value(), kFabricLatency,
                                      "typical of a data-centre switch"));
  object.refuse_unknown_keys();
  return level;
}

std::vector<FabricLevel> read_levels(ObjectReader& object, FillIn& fill) {
  std::vector<FabricLevel> levels;
  for (ObjectReader& level : object.objects("levels")) {
    const std::size_t known_problems = level.problems().size();
    levels.push_back(read_level(level, fill));
    const std::size_t count = levels.size();
    const bool is_read = level.problems().size() == known_problems;
    if (is_read && count > 1 && levels[count - 1].nodes <= levels[count - 2].nodes) {
      level.problem(
          "nodes", fmt::format("{}", levels[count - 1].nodes),
          fmt::format("more than the {} nodes of the level below", levels[count - 2].nodes));
    }
  }
  if (levels.empty()) object.problem("levels", "no levels", "at least one level of switches");
  return levels;
}

void read_torus(ObjectReader& object, FabricSpec& spec) {
  const std::size_t known_problems = object.problems().size();
  const auto is_read = [&] { return object.problems().size() == known_problems; };
  spec.torus = object.integers("torus", {1, 1'000'000});
  if (is_read() && spec.torus.empty())
    object.problem("torus", "no axes", "the nodes along each axis");
  if (spec.torus.size() > 6)
    object.problem("torus", fmt::format("{} axes", spec.torus.size()), "at most 6 axes");
  if (!object.has("torus_block")) return;
  spec.torus_block = object.integers("torus_block", {1, 1'000'000});
  if (!is_read()) return;
  if (spec.torus_block.size() != spec.torus.size()) {
    object.problem("torus_block", fmt::format("{} axes", spec.torus_block.size()),
                   fmt::format("{}, as the torus has", spec.torus.size()));
    return;
  }
  for (std::size_t axis = 0; axis < spec.torus.size(); ++axis) {
    if (spec.torus[axis] % spec.torus_block[axis] == 0) continue;
    object.problem("torus_block",
                   fmt::format("{} nodes along axis {}", spec.torus_block[axis], axis),
                   fmt::format("a divisor of the {} of the torus", spec.torus[axis]));
  }
}

// Each kind has its own shape: levels of switches or the axes of a torus.
void read_shape(ObjectReader& object, FillIn& fill, FabricSpec& spec) {
  if (has_switches(spec.kind)) spec.levels = read_levels(object, fill);
  if (!has_switches(spec.kind) && object.has("levels"))
    object.problem("levels", "levels of switches",
                   fmt::format("none, for the fabric's kind is {}", name_of(spec.kind)));
  if (spec.kind == FabricKind::Torus) return read_torus(object, spec);
  for (const char* key : {"torus", "torus_block"}) {
    if (!object.has(key)) continue;
    object.problem(key, "the axes of a torus",
                   fmt::format("none, for the fabric's kind is {}", name_of(spec.kind)));
  }
}

ordered_json level_json(const FabricLevel& level) {
  return {{"nodes", level.nodes},
          {"oversubscription_ratio", level.oversubscription},
          {"latency_s", level.latency.value()}};
}

}  // namespace

FabricSpec read_fabric(const json& document, const std::string& pointer, ProblemList& problems,
                       std::vector<std::string>& filled_in) {
  FabricSpec spec;
  const json plain = separate_figures(document, pointer, problems, spec.sources);
  ObjectReader object(plain, pointer, problems);
  FillIn fill(pointer, spec.sources, filled_in);
  object.allow("sources");
  check_schema(object, "shardwright/fabric");
  spec.name = object.name("name");
  const std::size_t before_kind = problems.size();
  spec.kind = object.choice("kind", kind_names());
  const bool knows_kind = problems.size() == before_kind;
  if (spec.kind != FabricKind::None) {
    spec.protocol = object.choice("protocol", protocol_names());
    spec.base_latency = Seconds(fill.number(object, "base_latency_s", spec.base_latency.value(),
                                            kFabricLatency, "typical of RDMA"));
    spec.in_network_reduction = object.boolean_or("in_network_reduction", false);
  }
  if (knows_kind) {
    read_shape(object, fill, spec);
  } else {
    for (const char* key : {"levels", "torus", "torus_block"}) object.allow(key);
  }
  spec.notes = object.text_or("notes", "");
  object.refuse_unknown_keys();
  return spec;
}

FabricSpec read_fabric(const json& document, const std::string& source) {
  ProblemList problems(source);
  std::vector<std::string> filled_in;
  FabricSpec spec = read_fabric(document, "", problems, filled_in);
  problems.throw_if_any();
  return spec;
}

ordered_json to_json(const FabricSpec& spec) {
  ordered_json document = {{"schema", "shardwright/fabric"},
                           {"version", 1},
                           {"name", spec.name},
                           {"kind", name_of(spec.kind)}};
  if (spec.kind != FabricKind::None) {
    document["protocol"] = name_of(spec.protocol);
    document["base_latency_s"] = spec.base_latency.value();
    document["in_network_reduction"] = spec.in_network_reduction;
  }
  if (has_switches(spec.kind)) {
    document["levels"] = ordered_json::array();
    for (const FabricLevel& level : spec.levels) document["levels"].push_back(level_json(level));
  }
  if (spec.kind == FabricKind::Torus) document["torus"] = spec.torus;
  if (!spec.torus_block.empty()) document["torus_block"] = spec.torus_block;
  if (!spec.notes.empty()) document["notes"] = spec.notes;
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
