#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/base/json_lines.hpp"
#include "core/spec/spec_document.hpp"
#include "validation/timing_report.hpp"

namespace shardwright::validation {
namespace {

// Collectives and algorithms by the names that benchmarks of NCCL and of DeepEP use.
constexpr std::array<std::pair<const char*, OpKind>, 8> kCollectives = {
    {{"all_reduce", OpKind::AllReduce},
     {"all_gather", OpKind::AllGather},
     {"reduce_scatter", OpKind::ReduceScatter},
     {"alltoall", OpKind::AllToAll},
     {"broadcast", OpKind::Broadcast},
     {"sendrecv", OpKind::Send},
     {"ep_dispatch", OpKind::AllToAll},
     {"ep_combine", OpKind::AllToAll}}};
constexpr std::array<std::pair<const char*, sim::Algorithm>, 3> kAlgorithms = {
    {{"ring", sim::Algorithm::Ring},
     {"tree", sim::Algorithm::Tree},
     {"nvls_tree", sim::Algorithm::NvlsTree}}};

constexpr std::int64_t kMostMembers = 10'000'000, kMostTokens = 1'000'000'000;

template <class Value, std::size_t n>
Value choose(ObjectReader& row, const char* key,
             const std::array<std::pair<const char*, Value>, n>& named) {
  std::array<const char*, n> names{};
  std::transform(named.begin(), named.end(), names.begin(),
                 [](const auto& each) { return each.first; });
  return named[row.choose(key, names)].second;
}

void read_supported(ObjectReader& row, calibration::CollectiveTiming& timing) {
  timing.kind = choose(row, "collective", kCollectives);
  timing.cluster = read_given_cluster(row, "cluster");
  timing.bytes = Bytes(row.number("bytes"));
  timing.tokens = row.integer_or("tokens", 0, {1, kMostTokens});
  timing.copies = row.integer_or("copies", 1, {1, kMostMembers});
  if (row.has("stack")) timing.stack = read_given_stack(row, "stack");
  timing.measured = Seconds(row.number("measured_s"));
  if (timing.nodes > 0 && timing.members % timing.nodes != 0)
    row.problem_with("nodes", "a number of nodes over which the members spread evenly");
}

calibration::CollectiveTiming read_collective(ObjectReader& row) {
  calibration::CollectiveTiming timing;
  read_origin(row, timing);
  timing.system = row.text_or("system", "");
  timing.gpu = row.text_or("accelerator", "");
  timing.name = row.text_or("collective", "");
  timing.members = row.integer("members", {2, kMostMembers});
  timing.nodes = row.integer_or("nodes", 0, {1, timing.members});
  timing.groups = row.integer_or("groups", 1, {1, kMostMembers});
  if (row.has("algorithm")) timing.forced = choose(row, "algorithm", kAlgorithms);
  timing.call = Seconds(row.number_or("call_s", 0.0));
  if (timing.unsupported.empty()) {
    read_supported(row, timing);
  } else {
    timing.bytes = Bytes(row.number_or("bytes", 0.0));
    timing.measured = Seconds(row.number_or("measured_s", 0.0));
  }
  row.refuse_unknown_keys();
  return timing;
}

TimingComparison compare(const calibration::CollectiveTiming& timing) {
  TimingComparison row = described(timing);
  if (timing.gpu.empty()) row.device = timing.system;
  const bool supported = timing.unsupported.empty();
  if (supported) row.reason = calibration::gap_on(timing, *timing.cluster);
  const std::int64_t nodes = timing.nodes > 0 || !supported
                                 ? timing.nodes
                                 : calibration::placement_of(timing, *timing.cluster).span;
  row.op = fmt::format("{} {}", timing.name, nodes > 1 ? "across nodes" : "in a node");
  const sim::CollectiveCost cost =
      row.reason.empty() ? calibration::cost_of(timing, *timing.cluster) : sim::CollectiveCost{};
  if (row.reason.empty() && timing.forced && cost.algorithm != *timing.forced)
    row.reason = fmt::format("no model of the algorithm {} on this path", name_of(*timing.forced));
  row.skipped = !row.reason.empty();
  if (row.skipped) return row;
  if (timing.nodes == 0) row.filled_in.push_back(fmt::format("nodes: {}", nodes));
  row.profile = timing.cluster->name;
  row.bytes = timing.bytes;
  row.predicted = cost.time + timing.call;
  return row;
}

}  // namespace

std::vector<calibration::CollectiveTiming> read_collective_timings(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  return read_collective_timings(stream, file);
}

std::vector<calibration::CollectiveTiming> read_collective_timings(std::istream& stream,
                                                                   const std::string& source) {
  std::vector<calibration::CollectiveTiming> timings;
  read_typed_lines(stream, source,
                   [&](ObjectReader& row) { timings.push_back(read_collective(row)); });
  return timings;
}

TimingReport validate_collectives(const std::string& file) {
  std::vector<TimingComparison> rows;
  for (const calibration::CollectiveTiming& timing : read_collective_timings(file))
    rows.push_back(compare(timing));
  return report_on(std::move(rows));
}

}  // namespace shardwright::validation
