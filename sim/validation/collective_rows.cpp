// Typed rows of collectives: reading and writing.
#include <nlohmann/json.hpp>

#include "core/spec/spec_document.hpp"
#include "sim/validation/collective_timing.hpp"
#include "sim/validation/json_lines.hpp"
#include "sim/validation/measurement_json.hpp"

namespace shardwright::sim {
namespace {

using nlohmann::ordered_json;

constexpr std::int64_t kMostMembers = 10'000'000;

const EnumNames<Algorithm>& algorithm_names() {
  static const EnumNames<Algorithm> kNames = {
      {"ring", Algorithm::Ring}, {"tree", Algorithm::Tree}, {"nvls_tree", Algorithm::NvlsTree}};
  return kNames;
}

void read_cluster_of(ObjectReader& row, CollectiveTiming& timing) {
  const nlohmann::json& given = row.raw("cluster");
  if (!given.is_string() && !given.is_object()) {
    row.problem_with("cluster", "a cluster, the name of a shipped one, or a patch");
    return;
  }
  try {
    timing.cluster = read_given_cluster(given, row.problems().source());
  } catch (const InputError& error) {
    for (const Problem& problem : error.problems())
      row.problems().add(row.pointer() + "/cluster" + problem.where, problem.found,
                         problem.expected);
  }
}

void read_supported(ObjectReader& row, CollectiveTiming& timing) {
  row.choice("collective", collective_names());
  read_cluster_of(row, timing);
  timing.bytes = Bytes(row.number("bytes"));
  timing.measured = Seconds(row.number("measured_s"));
  if (timing.nodes > 0 && timing.members % timing.nodes != 0)
    row.problem_with("nodes", "a number of nodes over which the members spread evenly");
}

CollectiveTiming read_collective(ObjectReader& row) {
  CollectiveTiming timing;
  timing.id = row.name("id");
  timing.source = read_published_source(row.object("source")).title;
  row.boolean_or("verified", false);
  timing.system = row.text_or("system", "");
  timing.gpu = row.text_or("accelerator", "");
  timing.name = row.text_or("collective", "");
  timing.unsupported = row.text_or("unsupported", "");
  timing.members = row.integer("members", {2, kMostMembers});
  timing.nodes = row.integer_or("nodes", 0, {1, timing.members});
  timing.groups = row.integer_or("groups", 1, {1, kMostMembers});
  for (const auto& [name, kind] : collective_names())
    if (name == timing.name) timing.kind = kind;
  if (row.has("algorithm")) timing.forced = row.choice("algorithm", algorithm_names());
  timing.call = Seconds(row.number_or("call_s", 0.0));
  if (row.has("assumed")) timing.filled_in = row.texts("assumed");
  timing.notes = row.text_or("notes", "");
  if (timing.unsupported.empty()) {
    read_supported(row, timing);
  } else {
    timing.bytes = Bytes(row.number_or("bytes", 0.0));
    timing.measured = Seconds(row.number_or("measured_s", 0.0));
  }
  row.refuse_unknown_keys();
  return timing;
}

}  // namespace

std::vector<CollectiveTiming> read_typed_collectives(std::istream& stream,
                                                     const std::string& source) {
  std::vector<CollectiveTiming> timings;
  read_typed_lines(stream, source,
                   [&](ObjectReader& row) { timings.push_back(read_collective(row)); });
  return timings;
}

ordered_json to_json(const CollectiveTiming& timing, const PublishedSource& source, bool verified) {
  ordered_json row = {{"id", timing.id}, {"source", to_json(source)}, {"verified", verified}};
  const auto add = [&row](const char* key, const auto& value) {
    if (!value.empty()) row[key] = value;
  };
  add("system", timing.system);
  add("accelerator", timing.gpu);
  if (timing.unsupported.empty()) row["cluster"] = shortest_form(*timing.cluster);
  add("collective", timing.name);
  row["members"] = timing.members;
  if (timing.nodes > 0) row["nodes"] = timing.nodes;
  if (timing.groups > 1) row["groups"] = timing.groups;
  if (timing.bytes > Bytes(0)) row["bytes"] = timing.bytes.value();
  if (timing.forced) {
    for (const auto& [name, algorithm] : algorithm_names())
      if (algorithm == *timing.forced) row["algorithm"] = name;
  }
  if (timing.call > Seconds(0)) row["call_s"] = timing.call.value();
  if (timing.measured > Seconds(0)) row["measured_s"] = timing.measured.value();
  add("assumed", timing.filled_in);
  add("notes", timing.notes);
  add("unsupported", timing.unsupported);
  return row;
}

}  // namespace shardwright::sim
