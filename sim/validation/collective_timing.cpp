#include "sim/validation/collective_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "core/base/letters_and_digits.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/validation/json_lines.hpp"
#include "sim/validation/row_cluster.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

// A bandwidth of fewer digits is no measurement of the time.
constexpr double kLeastBusGigabytes = 0.1;

// What a call through a framework takes beyond NCCL's own, fitted on timings of H100, H200 and B200
// nodes: PyTorch's dispatch between two events, XLA's launch.
constexpr Seconds kTorchCall = microseconds(24.0);
constexpr Seconds kXlaCall = microseconds(7.0);

Seconds call_of(const std::string& notes) {
  if (says(notes, "torch all_reduce_bench")) return kTorchCall;
  return says(notes, "xla launch") ? kXlaCall : Seconds(0);
}

const std::map<std::string, OpKind>& kinds() {
  static const std::map<std::string, OpKind> kKinds = {
      {"all_reduce", OpKind::AllReduce},         {"all_gather", OpKind::AllGather},
      {"reduce_scatter", OpKind::ReduceScatter}, {"alltoall", OpKind::AllToAll},
      {"broadcast", OpKind::Broadcast},          {"sendrecv", OpKind::Send}};
  return kKinds;
}

std::optional<Algorithm> forced_by(const std::string& text) {
  if (text.rfind("Ring", 0) == 0) return Algorithm::Ring;
  if (says(text, "nvlstree")) return Algorithm::NvlsTree;
  return std::nullopt;
}

// "AllReduce", "all-reduce", "all_reduce_perf", "p2p" under the names of `kinds`; others as they
// are.
std::string canonical_name(const std::string& stated) {
  static const std::map<std::string, std::string> kNames = {
      {"allreduce", "all_reduce"}, {"allgather", "all_gather"}, {"reducescatter", "reduce_scatter"},
      {"alltoall", "alltoall"},    {"broadcast", "broadcast"},  {"bcast", "broadcast"},
      {"sendrecv", "sendrecv"},    {"p2p", "sendrecv"}};
  std::string name = letters_and_digits(stated);
  constexpr std::string_view kBenchmark = "perf";  // of nccl-tests
  if (name.ends_with(kBenchmark)) name.resize(name.size() - kBenchmark.size());
  const auto found = kNames.find(name);
  return found == kNames.end() ? stated : found->second;
}

Seconds measured_time(ObjectReader& row, const CollectiveTiming& timing) {
  if (const double time = row.number_or("time_us", 0.0); time > 0.0) return microseconds(time);
  const double bus = row.number_or("busbw_gbs", 0.0);
  if (bus < kLeastBusGigabytes) return {};
  return timing.bytes * bus_factor(timing.kind, timing.members) / gigabytes_per_second(bus);
}

std::string gap_of(const CollectiveTiming& timing) {
  if (!timing.for_fitting) return "no full printed table (\"fit\": false)";
  if (timing.name.empty()) return "the source does not name the collective";
  if (!kinds().contains(timing.name)) return fmt::format("no model of \"{}\"", timing.name);
  if (timing.bytes <= Bytes(0)) return "the source does not give the size";
  if (timing.measured <= Seconds(0)) return "neither a time nor a bandwidth with enough digits";
  return "";
}

CollectiveTiming read_timing(ObjectReader& row) {
  CollectiveTiming timing;
  timing.id = row.text_or("id", "");
  timing.source = source_of(row);
  timing.system = row.text_or("system", "");
  timing.gpu = row.text_or("gpu", "");
  timing.name = canonical_name(row.text_or("collective", ""));
  timing.members = row.integer("gpus", {2, 10'000'000});
  timing.nodes = row.integer_or("nodes", 1, {1, timing.members});
  timing.groups = row.integer_or("groups", 1, {1, 10'000'000});
  timing.bytes = Bytes(row.number_or("size_bytes", 0.0));
  timing.forced = forced_by(row.text_or("algo", ""));
  timing.for_fitting = row.boolean_or("fit", true);
  if (const auto kind = kinds().find(timing.name); kind != kinds().end())
    timing.kind = kind->second;
  timing.notes = row.text_or("notes", "");
  timing.call = call_of(timing.notes);
  timing.measured = measured_time(row, timing);
  timing.unsupported = gap_of(timing);
  return timing;
}

// What a row of a training step would say of this system.
TrainingRow as_training_row(const CollectiveTiming& timing) {
  TrainingRow row;
  row.cluster.gpu = timing.gpu;
  row.cluster.gpus = timing.members;
  if (timing.nodes > 1) row.cluster.gpus_per_node = timing.members / timing.nodes;
  row.cluster.inter_node = timing.system;
  return row;
}

const ClusterSpec* named_cluster(const std::string& system) {
  const ClusterSpec* best = nullptr;
  std::size_t longest = 0;
  for (const ClusterSpec& cluster : shipped_cluster_specs()) {
    for (const std::string& alias : cluster.aliases) {
      if (alias.size() <= longest || !says(system, lower_case(alias))) continue;
      longest = alias.size();
      best = &cluster;
    }
  }
  return best;
}

TimingComparison compare(const CollectiveTiming& timing) {
  TimingComparison row;
  row.id = timing.id;
  row.source = timing.source;
  row.device = timing.gpu.empty() ? timing.system : timing.gpu;
  row.op = fmt::format("{} {}", timing.name, timing.nodes > 1 ? "across nodes" : "in a node");
  row.reason = timing.unsupported;
  row.filled_in = timing.filled_in;
  std::optional<ClusterSpec> cluster;
  if (row.reason.empty()) {
    cluster = cluster_of(timing);
    if (!cluster)
      row.reason = timing.gpu.empty()
                       ? "the source does not say the accelerator"
                       : fmt::format("no shipped cluster has the accelerator \"{}\"", timing.gpu);
  }
  row.skipped = !cluster;
  if (row.skipped) return row;
  row.profile = cluster->name;
  row.measured = timing.measured;
  row.predicted = predict(timing, *cluster);
  return row;
}

}  // namespace

std::vector<CollectiveTiming> read_collective_timings(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  return read_collective_timings(stream, file);
}

std::vector<CollectiveTiming> read_collective_timings(std::istream& stream,
                                                      const std::string& source) {
  return read_rows<CollectiveTiming>(stream, source,
                                     {read_timing, &CollectiveTiming::unsupported,
                                      "timings of collectives (docs/formats/timing_rows.md)"});
}

std::optional<ClusterSpec> cluster_of(const CollectiveTiming& timing) {
  if (const ClusterSpec* named =
          named_cluster(timing.system + " " + timing.gpu + " " + timing.notes))
    return *named;
  std::vector<std::string> filled_in;
  std::string reason;
  return cluster_of_row(as_training_row(timing), filled_in, reason);
}

GroupPlacement placement_of(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  const std::int64_t domain = domain_size(cluster);
  const std::int64_t nodes = (timing.members + domain - 1) / domain;
  const std::int64_t per_node = (timing.members + nodes - 1) / nodes;
  const bool pairs = timing.kind == OpKind::Send;
  const bool remote = nodes > 1;
  return {.size = pairs ? 2 : timing.members,
          .per_node = pairs ? (remote ? 1 : 2) : per_node,
          .nodes = pairs && remote ? 2 : nodes,
          .groups_per_node = pairs && remote ? per_node : 1,
          .span = nodes};
}

Seconds predict(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  return collective_cost(timing.kind, timing.bytes, placement_of(timing, cluster), cluster,
                         StackSpec{}, timing.forced)
             .time +
         timing.call;
}

TimingReport validate_collectives(const std::string& file) {
  std::vector<TimingComparison> rows;
  for (const CollectiveTiming& timing : read_collective_timings(file))
    rows.push_back(compare(timing));
  return report_on(std::move(rows));
}

}  // namespace shardwright::sim
