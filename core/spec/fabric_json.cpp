// The fields of fabric profiles.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/spec/cluster_json.hpp"
#include "core/spec/field_json.hpp"
#include "core/spec/figures.hpp"

namespace shardwright {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr NumberRange kFabricTime{0.0, 1.0, false};

bool has_switches(FabricKind kind) {
  return kind == FabricKind::LeafSpine || kind == FabricKind::RailOptimised;
}

void describe_level(FabricLevel& level, FieldVisitor& fields) {
  fields.integer("nodes", level.nodes, {1, 1'000'000'000}, kRequired,
                 "servers, or trays of a rack, below one switch group of the level");
  fields.number("oversubscription_ratio", level.oversubscription, {1.0, 1e6, false},
                reported("full bisection"),
                "bandwidth that enters the level from below over what leaves it upwards");
  fields.number("latency_s", level.latency, kFabricTime,
                reported("typical of a data-centre switch"), "latency of passing the level once");
}

void check_levels(const FabricSpec& fabric, const std::string& pointer, ProblemList& problems) {
  if (fabric.levels.empty())
    problems.add(pointer + "/levels", "no levels", "at least one level of switches");
  for (std::size_t i = 1; i < fabric.levels.size(); ++i) {
    if (fabric.levels[i].nodes > fabric.levels[i - 1].nodes) continue;
    problems.add(
        fmt::format("{}/levels/{}/nodes", pointer, i), fmt::format("{}", fabric.levels[i].nodes),
        fmt::format("more than the {} nodes of the level below", fabric.levels[i - 1].nodes));
  }
}

void check_torus(const FabricSpec& fabric, const std::string& pointer, ProblemList& problems) {
  const std::vector<std::int64_t>&torus = fabric.torus, &block = fabric.torus_block;
  if (torus.empty()) problems.add(pointer + "/torus", "no axes", "the nodes along each axis");
  if (torus.size() > 6)
    problems.add(pointer + "/torus", fmt::format("{} axes", torus.size()), "at most 6 axes");
  if (block.empty()) return;
  if (block.size() != torus.size()) {
    problems.add(pointer + "/torus_block", fmt::format("{} axes", block.size()),
                 fmt::format("{}, as the torus has", torus.size()));
    return;
  }
  for (std::size_t axis = 0; axis < torus.size(); ++axis) {
    if (torus[axis] % block[axis] == 0) continue;
    problems.add(pointer + "/torus_block", fmt::format("{} nodes along axis {}", block[axis], axis),
                 fmt::format("a divisor of the {} of the torus", torus[axis]));
  }
}

}  // namespace

void describe(FabricSpec& fabric, FieldVisitor& fields) {
  using enum FabricKind;
  fields.header("shardwright/fabric", true);
  fields.text("name", fabric.name, kRequired, "name of the profile");
  fields.choice("kind", fabric.kind, kRequired, "how nodes are joined; none: they are not");
  fields.except_where("kind", fabric.kind, {None}, [&] {
    fields.choice("protocol", fabric.protocol, kRequired, "protocol of the network");
    fields.number("base_latency_s", fabric.base_latency, kFabricTime, reported("typical of RDMA"),
                  "latency from NIC to NIC below one leaf");
    fields.boolean("in_network_reduction", fabric.in_network_reduction, kOptional,
                   "the switches reduce (SHARP)");
    fields.integer("reduction_jobs_per_switch", fabric.reduction_jobs_per_switch, {0, 1'000'000},
                   kOmissible,
                   "jobs for which one switch reduces large messages at the same time; 0: no limit "
                   "is known ([reductions](../models/jobs.md#reductions-in-switches))");
  });
  fields.only_where("kind", fabric.kind, {LeafSpine, RailOptimised}, [&] {
    fields.list("levels", fabric.levels, kRequired, "levels of switches, from the leaf up",
                [&](FabricLevel& level) { describe_level(level, fields); });
  });
  fields.only_where("kind", fabric.kind, {Torus}, [&] {
    fields.integers("torus", fabric.torus, {1, 1'000'000}, kRequired, "nodes along each axis");
    fields.integers("torus_block", fabric.torus_block, {1, 1'000'000}, kOmissible,
                    "nodes along each axis of the blocks that optical switches join to slices; "
                    "they divide those of the torus "
                    "([slices](../models/topology.md#slices-of-a-torus))");
  });
  fields.text("notes", fabric.notes, kOmissible, "what a reader of the profile should know");
}

FabricSpec read_fabric(const json& document, const std::string& pointer, ProblemList& problems,
                       std::vector<std::string>& filled_in) {
  FabricSpec spec;
  const std::size_t known_problems = problems.size();
  read_figures(document, pointer, problems, spec.sources, filled_in,
               [&](FieldVisitor& fields) { describe(spec, fields); });
  if (problems.size() > known_problems) return spec;
  if (has_switches(spec.kind)) check_levels(spec, pointer, problems);
  if (spec.kind == FabricKind::Torus) check_torus(spec, pointer, problems);
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
  ordered_json document = write_spec(spec, spec.sources);
  attach_sources(document, spec.sources);
  return document;
}

}  // namespace shardwright
