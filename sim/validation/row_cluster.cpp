#include "sim/validation/row_cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>
#include <tuple>

#include "core/spec/profile_library.hpp"
#include "sim/validation/accelerator_text.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/network_text.hpp"
#include "sim/validation/row_links.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/stated_bandwidth.hpp"

namespace shardwright::sim {
namespace {

BytesPerSecond per_node(const NodeSpec& node) {
  return node.nic.bandwidth * static_cast<double>(node.nic.per_node);
}

double network_distance(const ClusterSpec& cluster, const NetworkText& network) {
  if (is_said(network.per_node))
    return bandwidth_distance(per_node(cluster.node), network.per_node);
  if (!is_said(network.per_port)) return 0.0;
  return bandwidth_distance(cluster.node.nic.bandwidth, network.per_port);
}

// The shipped cluster that stands for an accelerator of which several are shipped, where the source
// says nothing of its network: the vendor's own systems, or what most are built like.
bool is_usual(const ClusterSpec& cluster) {
  constexpr std::array<std::string_view, 7> kUsual = {
      "dgx-1-v100", "hgx-a100-40gb", "dgx-a100", "dgx-h100", "dgx-h200", "h800-ib", "dgx-b200"};
  return std::find(kUsual.begin(), kUsual.end(), cluster.name) != kUsual.end();
}

// Whether what is said of the protocol is true of a cluster; RoCE runs on Ethernet.
bool agrees(const ClusterSpec& cluster, const NetworkText& network) {
  if (!network.protocol || *network.protocol == cluster.fabric.protocol) return true;
  return *network.protocol == FabricProtocol::Ethernet && !network.without_rdma &&
         cluster.fabric.protocol == FabricProtocol::RoCE;
}

// A torus is what its accelerators are made for, or what is asked for, whatever its bandwidth.
bool is_other_kind(const ClusterSpec& cluster, const NetworkText& network) {
  return cluster.fabric.kind == FabricKind::Torus && !network.torus;
}

// Smaller is nearer; the first of equals wins, in the order of names. A protocol sets latencies and
// what of the bandwidth messages reach, which the row's bandwidth does not replace.
std::tuple<bool, bool, double, bool, bool, bool, bool> distance(const ClusterSpec& cluster,
                                                                const ClusterSpec* named,
                                                                const NetworkText& network,
                                                                std::int64_t accelerators) {
  const bool other_protocol = network.protocol && *network.protocol != cluster.fabric.protocol;
  return {is_other_kind(cluster, network),
          !agrees(cluster, network),
          network_distance(cluster, network),
          other_protocol,
          &cluster != named,
          cluster.node.accelerators != accelerators,
          !is_usual(cluster)};
}

void set_accelerators_per_node(ClusterSpec& cluster, std::int64_t count) {
  if (cluster.node.scale_up.domain == cluster.node.accelerators)
    cluster.node.scale_up.domain = count;
  cluster.node.accelerators = count;
}

// What the row, or the machine that it names, says of its nodes.
void set_node_size(std::int64_t count, ClusterSpec& cluster, std::vector<std::string>& filled_in) {
  if (cluster.node.accelerators == count) return;
  if (cluster.fabric.kind == FabricKind::Torus) {
    filled_in.push_back(fmt::format("gpus_per_node: {} in place of {}, as hosts do not cut a torus",
                                    cluster.node.accelerators, count));
    return;
  }
  filled_in.push_back(fmt::format("cluster: {} with {} accelerators per node in place of {}",
                                  cluster.name, count, cluster.node.accelerators));
  set_accelerators_per_node(cluster, count);
}

// The shipped cluster with this accelerator that is nearest to what the row says; null without one.
const ClusterSpec* nearest_cluster(const std::string& accelerator, const ClusterSpec* named,
                                   const NetworkText& network, std::int64_t per_node) {
  const ClusterSpec* best = nullptr;
  for (const ClusterSpec& cluster : shipped_cluster_specs()) {
    if (cluster.accelerator.name != accelerator) continue;
    if (best == nullptr ||
        distance(cluster, named, network, per_node) < distance(*best, named, network, per_node))
      best = &cluster;
  }
  return best;
}

// What the cluster's network is, where the row says another or only a bandwidth.
void say_protocol(const std::string& text, const NetworkText& network, const ClusterSpec& cluster,
                  std::vector<std::string>& filled_in) {
  const char* const own = name_of(cluster.fabric.protocol);
  if (!agrees(cluster, network)) {
    filled_in.push_back(fmt::format("inter_node: {} of the shipped cluster {} in place of {}", own,
                                    cluster.name, name_of(*network.protocol)));
  } else if (!network.protocol && !is_usual(cluster) &&
             (is_said(network.per_node) || is_said(network.per_port))) {
    filled_in.push_back(fmt::format("inter_node: {}, as in the shipped cluster {}, for \"{}\"", own,
                                    cluster.name, text));
  }
}

// The ratio is that of a network's thinnest level, by which its bandwidth is set.
void set_oversubscription(const NetworkText& network, ClusterSpec& cluster,
                          std::vector<std::string>& filled_in) {
  if (!network.oversubscription) return;
  auto& levels = cluster.fabric.levels;
  if (levels.size() < 2) {
    filled_in.push_back(
        fmt::format("inter_node: oversubscription {:g}:1 is not taken, {} has no levels",
                    *network.oversubscription, cluster.name));
    return;
  }
  const auto thinnest = std::max_element(
      levels.begin(), levels.end() - 1,
      [](const auto& a, const auto& b) { return a.oversubscription < b.oversubscription; });
  if (thinnest->oversubscription == *network.oversubscription) return;
  thinnest->oversubscription = *network.oversubscription;
  filled_in.push_back(fmt::format("fabric: {:g}:1 above switches of {} nodes, as the row says",
                                  thinnest->oversubscription, thinnest->nodes));
}

void set_network(const TrainingRow& row, const NetworkText& network, ClusterSpec& cluster,
                 std::vector<std::string>& filled_in) {
  const std::string& text = row.cluster.inter_node;
  if (!is_said(network.per_node) && !is_said(network.per_port)) {
    if (row.cluster.gpus <= cluster.node.accelerators) return;  // none is used
    filled_in.push_back(fmt::format("inter_node: as in the shipped cluster {}{}", cluster.name,
                                    text.empty() ? "" : fmt::format(", for \"{}\"", text)));
  } else if (network_distance(cluster, network) > 0.0) {
    filled_in.push_back(
        fmt::format("cluster: {} with the row's bandwidth between nodes", cluster.name));
    cluster.node.nic.bandwidth =
        is_said(network.per_node)
            ? network.per_node / static_cast<double>(cluster.node.nic.per_node)
            : network.per_port;
  }
  if (is_said(network.per_port))
    filled_in.push_back(
        fmt::format("inter_node: {} ports per node of \"{}\"", cluster.node.nic.per_node, text));
  if (network.by_name)
    filled_in.push_back(fmt::format("inter_node: {:g} Gb/s per node, for \"{}\"",
                                    8.0 * per_node(cluster.node) / gigabytes_per_second(1.0),
                                    text));
  if (row.cluster.gpus > cluster.node.accelerators) say_protocol(text, network, cluster, filled_in);
  for (const std::string& part : network.left_out)
    filled_in.push_back(fmt::format("inter_node: \"{}\" is not taken", part));
  set_oversubscription(network, cluster, filled_in);
}

// The cluster of PCIe servers whose network stands in for that of workstations.
constexpr const char* kServersOnEthernet = "l40s-pcie-workstation";

// The first mention of more than one slice: "2 slices of v5e-256", "4x v5p-128", "two pods",
// "multislice", MaxText's "dcn_data_parallelism=2"; empty without one.
std::string several_slices_in(const std::string& text) {
  static const std::string kSeveral =
      R"(\b(?:[2-9]|[1-9]\d{1,4}|two|three|four|five|six|seven|eight|several|multiple) ?(?:x ?)?)";
  static const std::string kType = R"((?:tpu[- ]?)?v\d[a-z]{0,2})";
  static const std::regex kSlices(
      kSeveral + "(?:tpu |" + kType + R"((?:-\d+)? )?(?:slices|pods)\b|)" + kSeveral + kType +
          R"(-\d+\b|\bmulti-?slice\b)" +
          R"(|\b(?:num_slices|dcn_[a-z]+_parallelism) ?[=:] ?(?:[2-9]|[1-9]\d+)\b)",
      std::regex::icase);
  return affirmed_match(text, kSlices);
}

// Slices of a torus are joined by their hosts' network, for which a cluster has no place: they are
// taken for one torus that goes on along its first axis, so that each is a part of it.
void join_slices(const TrainingRow& row, std::int64_t nodes, ClusterSpec& cluster,
                 std::vector<std::string>& filled_in) {
  FabricSpec& fabric = cluster.fabric;
  const std::int64_t places = fabric.torus_places();
  std::string slices = several_slices_in(row.notes);
  if (nodes > places) {
    const std::int64_t toruses = (nodes + places - 1) / places;
    fabric.torus.front() *= toruses;
    filled_in.push_back(fmt::format("fabric: {} of {} as one torus of {} nodes", toruses,
                                    fabric.name, fmt::join(fabric.torus, " x ")));
    if (slices.empty()) slices = fmt::format("{} nodes", nodes);
  }
  if (slices.empty()) return;
  filled_in.push_back(fmt::format(
      "fabric: the network between slices (\"{}\") is taken to be as fast as the torus", slices));
}

// A row that ran needs no proof that its network joins its nodes.
void join_all_nodes(const TrainingRow& row, ClusterSpec& cluster,
                    std::vector<std::string>& filled_in) {
  const std::int64_t node = cluster.accelerators_per_node();
  const std::int64_t nodes = (row.cluster.gpus + node - 1) / node;
  if (cluster.fabric.kind == FabricKind::Torus) return join_slices(row, nodes, cluster, filled_in);
  if (row.cluster.gpus <= cluster.most_accelerators().value_or(row.cluster.gpus)) return;
  if (cluster.fabric.kind == FabricKind::None) {
    const ClusterSpec servers = load_cluster(kServersOnEthernet);
    if (cluster.node.nic.per_node == 0) cluster.node.nic = servers.node.nic;
    cluster.fabric = servers.fabric;
    filled_in.push_back(fmt::format("fabric: as in the shipped cluster {}, for {} has none",
                                    servers.name, cluster.name));
  }
  if (cluster.fabric.levels.empty() || cluster.fabric.levels.back().nodes >= nodes) return;
  cluster.fabric.levels.back().nodes = nodes;
  filled_in.push_back(
      fmt::format("fabric: the highest level of {} joins {} nodes", cluster.fabric.name, nodes));
}

}  // namespace

const ClusterSpec* named_cluster(const std::string& text) {
  const ClusterSpec* best = nullptr;
  std::size_t longest = 0;
  for (const ClusterSpec& cluster : shipped_cluster_specs()) {
    for (const std::string& alias : cluster.aliases) {
      if (alias.size() <= longest || !says(text, lower_case(alias))) continue;
      longest = alias.size();
      best = &cluster;
    }
  }
  return best;
}

std::optional<ClusterSpec> cluster_of_row(const TrainingRow& row,
                                          std::vector<std::string>& filled_in,
                                          std::string& reason) {
  if (row.cluster.gpu.empty()) {
    reason = "the source does not say the accelerator";
    return std::nullopt;
  }
  const AcceleratorText accelerator =
      read_accelerator_text(row.cluster.gpu, row.cluster.gpus_per_node);
  const auto stated = row.cluster.gpus_per_node ? row.cluster.gpus_per_node : accelerator.per_node;
  const std::int64_t count = stated.value_or(8);
  const NetworkText network = read_network(row.cluster.inter_node, count);
  const ClusterSpec* named = named_cluster(row.cluster.gpu + ' ' + row.cluster.inter_node);
  const ClusterSpec* nearest =
      accelerator.profile ? nearest_cluster(*accelerator.profile, named, network, count) : nullptr;
  if (nearest == nullptr) {
    reason = fmt::format("no shipped cluster has the accelerator \"{}\"", row.cluster.gpu);
    return std::nullopt;
  }
  ClusterSpec cluster = *nearest;
  cluster.nodes = 0;
  filled_in.insert(filled_in.end(), accelerator.filled_in.begin(), accelerator.filled_in.end());
  if (accelerator.memory > Bytes(0)) {
    cluster.accelerator.memory = accelerator.memory;
    filled_in.push_back(fmt::format("accelerator: {} with the memory of \"{}\"",
                                    cluster.accelerator.name, row.cluster.gpu));
  }
  if (!row.cluster.gpus_per_node)
    filled_in.push_back(
        fmt::format("gpus_per_node: {}", stated.value_or(cluster.node.accelerators)));
  if (stated) set_node_size(*stated, cluster, filled_in);
  set_links(row, cluster, filled_in);
  join_all_nodes(row, cluster, filled_in);
  set_network(row, network, cluster, filled_in);
  return cluster;
}

}  // namespace shardwright::sim
