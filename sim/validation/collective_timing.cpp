#include "sim/validation/collective_timing.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "core/base/letters_and_digits.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/validation/json_lines.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_cluster.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

// A bandwidth of fewer digits is no measurement of the time.
constexpr double kLeastBandwidth = 0.1;  // GB/s

// What a call through a framework takes beyond NCCL's own, fitted on timings of H100, H200 and B200
// nodes: PyTorch's dispatch between two events, XLA's launch.
constexpr Seconds kTorchCall = microseconds(24.0);
constexpr Seconds kXlaCall = microseconds(7.0);

Seconds call_of(const std::string& notes) {
  if (says(notes, "torch all_reduce_bench")) return kTorchCall;
  return says(notes, "xla launch") ? kXlaCall : Seconds(0);
}

const EnumNames<OpKind>::value_type* kind_named(const std::string& name) {
  for (const auto& each : collective_names())
    if (each.first == name) return &each;
  return nullptr;
}

std::optional<Algorithm> forced_by(const std::string& text) {
  if (text.rfind("Ring", 0) == 0) return Algorithm::Ring;
  if (says(text, "nvlstree")) return Algorithm::NvlsTree;
  if (lower_case(text).rfind("tree", 0) == 0) return Algorithm::Tree;
  return std::nullopt;
}

// What of the algorithm's words is not taken: a protocol, and an algorithm that is left to NCCL.
void list_algorithm(const std::string& text, CollectiveTiming& timing) {
  if (text.empty() || lower_case(text).rfind("auto", 0) == 0) return;
  if (!timing.forced) {
    timing.filled_in.push_back(fmt::format("algo: as NCCL chooses, for \"{}\"", text));
  } else if (affirms_any(text, {"ll", "ll128", "simple"})) {
    timing.filled_in.push_back(fmt::format("protocol: the fastest, for \"{}\"", text));
  }
}

// "AllReduce", "all-reduce", "all_reduce_perf", "ncclAllReduce", "dist.all_reduce", "p2p" under the
// names of `collective_names`; others as they are.
std::string canonical_name(const std::string& stated) {
  static const std::map<std::string, std::string> kNames = {
      {"allreduce", "all_reduce"},
      {"allgather", "all_gather"},
      {"allgatherintotensor", "all_gather"},
      {"reducescatter", "reduce_scatter"},
      {"reducescattertensor", "reduce_scatter"},
      {"alltoall", "alltoall"},
      {"alltoallv", "alltoall"},
      {"alltoallsingle", "alltoall"},
      {"broadcast", "broadcast"},
      {"bcast", "broadcast"},
      {"sendrecv", "sendrecv"},
      {"sendreceive", "sendrecv"},
      {"p2p", "sendrecv"}};
  std::string name = letters_and_digits(stated);
  constexpr std::string_view kBenchmark = "perf";  // of nccl-tests
  if (name.ends_with(kBenchmark)) name.resize(name.size() - kBenchmark.size());
  for (const std::string_view library : {"torchdistributed", "torchdist", "dist", "nccl", "rccl"})
    if (name.starts_with(library)) name.erase(0, library.size());
  const auto found = kNames.find(name);
  return found == kNames.end() ? stated : found->second;
}

// The time, or what a bandwidth of the buses or of the algorithm makes of the size; zero without
// any, and where a bandwidth has too few digits.
Seconds measured_time(ObjectReader& row, CollectiveTiming& timing) {
  if (const Seconds time = time_of(row); time > Seconds(0)) return time;
  const double factor = bus_factor(timing.kind, timing.members);
  const double bus = row.number_or("busbw_gbs", 0.0);
  const double algorithm = row.number_or("algbw_gbs", 0.0, kNonNegative);
  if (bus < kLeastBandwidth) {
    if (algorithm < kLeastBandwidth) return {};
    return timing.bytes / gigabytes_per_second(algorithm);
  }
  constexpr double kRounding = 0.1;
  if (kind_named(timing.name) != nullptr && algorithm >= kLeastBandwidth &&
      std::abs(algorithm * factor / bus - 1.0) > kRounding)
    timing.filled_in.push_back(
        fmt::format("time: by busbw_gbs {}, which algbw_gbs {} contradicts", bus, algorithm));
  return timing.bytes * factor / gigabytes_per_second(bus);
}

// Rates of both directions at once, which a message of one is not.
bool counts_both_directions(const CollectiveTiming& timing, const std::string& stated) {
  if (timing.kind != OpKind::Send) return false;
  const std::string text = stated + "; " + timing.notes;
  return affirms_any(text, {"bidirectional", "bi-directional", "bidir"}) &&
         !says_any(text, {"unidirectional", "uni-directional"});
}

std::string gap_of(const CollectiveTiming& timing) {
  if (!timing.for_fitting) return "no full printed table (\"fit\": false)";
  if (timing.name.empty()) return "the source does not name the collective";
  if (kind_named(timing.name) == nullptr) return fmt::format("no model of \"{}\"", timing.name);
  if (timing.bytes <= Bytes(0)) return "the source does not give the size";
  if (timing.measured <= Seconds(0)) return "neither a time nor a bandwidth with enough digits";
  if (timing.nodes > 0 && timing.members % timing.nodes != 0)
    return fmt::format("{} accelerators do not spread evenly over {} nodes", timing.members,
                       timing.nodes);
  return "";
}

CollectiveTiming read_timing(ObjectReader& row) {
  CollectiveTiming timing;
  timing.id = row.text_or("id", "");
  timing.source = source_of(row);
  timing.system = row.text_or("system", "");
  timing.gpu = row.text_or("gpu", "");
  const std::string stated = row.text_or("collective", "");
  timing.name = canonical_name(stated);
  timing.members = row.integer("gpus", {2, 10'000'000});
  timing.nodes = row.integer_or("nodes", 0, {1, timing.members});
  timing.groups = row.integer_or("groups", 1, {1, 10'000'000});
  timing.bytes = Bytes(row.number_or("size_bytes", 0.0));
  const std::string algorithm = row.text_or("algo", "");
  timing.forced = forced_by(algorithm);
  list_algorithm(algorithm, timing);
  timing.for_fitting = row.boolean_or("fit", true);
  if (const auto* kind = kind_named(timing.name)) timing.kind = kind->second;
  if (letters_and_digits(stated).ends_with("alltoallv"))
    timing.filled_in.emplace_back("collective: alltoall of even shares");
  timing.notes = row.text_or("notes", "");
  timing.call = call_of(timing.notes);
  timing.measured = measured_time(row, timing);
  timing.unsupported = gap_of(timing);
  if (timing.unsupported.empty() && counts_both_directions(timing, stated))
    timing.unsupported = "a rate of both directions at once";
  if (timing.unsupported.empty() && says_any(algorithm, {"msccl"}))
    timing.unsupported = fmt::format("no model of the library \"{}\"", algorithm);
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

CollectiveCost cost_of(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  return collective_cost(timing.kind, timing.bytes, placement_of(timing, cluster), cluster,
                         StackSpec{}, timing.forced);
}

// Nodes that a group needs, or more where the source says so of single nodes; where several are one
// domain they do not count.
std::int64_t nodes_of(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  const std::int64_t domain = domain_size(cluster);
  const std::int64_t needed = (timing.members + domain - 1) / domain;
  return domain == cluster.node.accelerators ? std::max(needed, timing.nodes) : needed;
}

std::string why_no_cluster(const CollectiveTiming& timing,
                           const std::optional<ClusterSpec>& cluster) {
  if (cluster) return "";
  return timing.gpu.empty()
             ? "the source does not say the accelerator"
             : fmt::format("no shipped cluster has the accelerator \"{}\"", timing.gpu);
}

TimingComparison compare(const CollectiveTiming& timing) {
  TimingComparison row;
  row.id = timing.id;
  row.source = timing.source;
  row.device = timing.gpu.empty() ? timing.system : timing.gpu;
  row.reason = timing.unsupported;
  row.filled_in = timing.filled_in;
  std::optional<ClusterSpec> cluster;
  if (row.reason.empty()) {
    cluster = cluster_of(timing);
    row.reason = why_no_cluster(timing, cluster);
    if (cluster) row.reason = gap_on(timing, *cluster);
  }
  const std::int64_t nodes =
      timing.nodes > 0 || !cluster ? timing.nodes : placement_of(timing, *cluster).span;
  row.op = fmt::format("{} {}", timing.name, nodes > 1 ? "across nodes" : "in a node");
  const CollectiveCost cost = row.reason.empty() ? cost_of(timing, *cluster) : CollectiveCost{};
  if (row.reason.empty() && timing.forced && cost.algorithm != *timing.forced)
    row.reason = fmt::format("no model of the algorithm {} on this path", name_of(*timing.forced));
  row.skipped = !row.reason.empty();
  if (row.skipped) return row;
  if (timing.nodes == 0) row.filled_in.push_back(fmt::format("nodes: {}", nodes));
  row.profile = cluster->name;
  row.measured = timing.measured;
  row.predicted = cost.time + timing.call;
  return row;
}

}  // namespace

std::vector<CollectiveTiming> read_collective_timings(const std::string& file) {
  std::ifstream stream = open_json_lines(file);
  return is_typed(stream) ? read_typed_collectives(stream, file)
                          : read_collective_timings(stream, file);
}

const EnumNames<OpKind>& collective_names() {
  static const EnumNames<OpKind> kNames = {
      {"all_reduce", OpKind::AllReduce},         {"all_gather", OpKind::AllGather},
      {"reduce_scatter", OpKind::ReduceScatter}, {"alltoall", OpKind::AllToAll},
      {"broadcast", OpKind::Broadcast},          {"sendrecv", OpKind::Send}};
  return kNames;
}

std::vector<CollectiveTiming> read_collective_timings(std::istream& stream,
                                                      const std::string& source) {
  return read_rows<CollectiveTiming>(stream, source,
                                     {read_timing, &CollectiveTiming::unsupported,
                                      "timings of collectives (docs/formats/timing_rows.md)"});
}

std::optional<ClusterSpec> cluster_of(const CollectiveTiming& timing) {
  if (timing.cluster) return timing.cluster;
  if (const ClusterSpec* named =
          named_cluster(timing.system + " " + timing.gpu + " " + timing.notes))
    return *named;
  std::vector<std::string> filled_in;
  std::string reason;
  return cluster_of_row(as_training_row(timing), filled_in, reason);
}

std::string why_not_comparable(const CollectiveTiming& timing) {
  return why_no_cluster(timing, cluster_of(timing));
}

std::string gap_on(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  if (timing.nodes > 0 && nodes_of(timing, cluster) > timing.nodes)
    return fmt::format("{} accelerators do not fit {} of {} ({})", timing.members,
                       timing.nodes == 1 ? "a node" : fmt::format("{} nodes", timing.nodes),
                       domain_size(cluster), cluster.name);
  // Reductions in the switch pass what a ring's links would carry, but not twice.
  const BytesPerSecond bus =
      timing.bytes * bus_factor(timing.kind, timing.members) / timing.measured;
  const BytesPerSecond links = cluster.node.scale_up.bandwidth;
  if (links <= BytesPerSecond(0) || bus <= 2.0 * links) return "";
  return fmt::format("{:.0f} GB/s are more than twice the {:.0f} of the accelerator's links",
                     bus / gigabytes_per_second(1.0), links / gigabytes_per_second(1.0));
}

GroupPlacement placement_of(const CollectiveTiming& timing, const ClusterSpec& cluster) {
  const std::int64_t nodes = nodes_of(timing, cluster);
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
  return cost_of(timing, cluster).time + timing.call;
}

TimingReport validate_collectives(const std::string& file) {
  std::vector<TimingComparison> rows;
  for (const CollectiveTiming& timing : read_collective_timings(file))
    rows.push_back(compare(timing));
  return report_on(std::move(rows));
}

}  // namespace shardwright::sim
