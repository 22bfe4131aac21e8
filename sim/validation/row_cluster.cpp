#include "sim/validation/row_cluster.hpp"

#include <fmt/format.h>

#include <cmath>
#include <regex>
#include <tuple>

#include "core/spec/profile_library.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// Bandwidths that differ by less than this are the same (800 Gb/s, 4 x 200 Gb/s, 100 GB/s).
constexpr double kSameBandwidth = 0.02;

constexpr double kLeastNodeGigabits = 1000.0;

BytesPerSecond per_node(const NodeSpec& node) {
  return node.nic.bandwidth * static_cast<double>(node.nic.per_node);
}

BytesPerSecond gigabits(double count) {
  return gigabytes_per_second(count / 8.0);
}

std::optional<FabricProtocol> protocol_in(const std::string& text) {
  if (says(text, "infiniband")) return FabricProtocol::InfiniBand;
  // "process" holds the letters, too.
  static const std::regex kRoce(R"(\broce)", std::regex::icase);
  if (std::regex_search(text, kRoce)) return FabricProtocol::RoCE;
  if (says(text, "efa")) return FabricProtocol::Efa;
  if (says(text, "ethernet")) return FabricProtocol::Ethernet;
  return std::nullopt;
}

double bandwidth_distance(const ClusterSpec& cluster, const NetworkText& network) {
  if (network.per_node.value() <= 0.0) return 0.0;
  const double distance = std::abs(std::log(per_node(cluster.node) / network.per_node));
  return distance < kSameBandwidth ? 0.0 : distance;
}

// Smaller is nearer; the first of equals wins, in the order of names.
std::tuple<double, bool, bool, bool> distance(const ClusterSpec& cluster,
                                              const NetworkText& network,
                                              std::int64_t accelerators) {
  const bool other_protocol = network.protocol && *network.protocol != cluster.fabric.protocol;
  return {bandwidth_distance(cluster, network), other_protocol,
          cluster.node.accelerators != accelerators, !cluster.name.starts_with("dgx")};
}

void set_accelerators_per_node(ClusterSpec& cluster, std::int64_t count) {
  if (cluster.node.scale_up.domain == cluster.node.accelerators)
    cluster.node.scale_up.domain = count;
  cluster.node.accelerators = count;
}

// A product by its name and, where no profile has the memory that the name states, with that
// memory.
struct AcceleratorText {
  std::optional<std::string> profile;
  Bytes memory;  // in place of the profile's; zero: the profile's holds
};

AcceleratorText read_accelerator_text(const std::string& text) {
  AcceleratorText read{find_accelerator(text), Bytes(0)};
  static const std::regex kMemory(R"((\d{1,4})\s*G(?:i?B)?\b)", std::regex::icase);
  std::smatch match;
  if (read.profile || !std::regex_search(text, match, kMemory)) return read;
  read.profile = find_accelerator(match.prefix().str() + ' ' + match.suffix().str());
  read.memory = gigabytes(std::stod(match[1]));
  return read;
}

// The shipped cluster with this accelerator that is nearest to what the row says; null without one.
const ClusterSpec* nearest_cluster(const std::string& accelerator, const NetworkText& network,
                                   std::int64_t per_node) {
  const ClusterSpec* best = nullptr;
  for (const ClusterSpec& cluster : cluster_library()) {
    if (cluster.accelerator.name != accelerator) continue;
    if (best == nullptr ||
        distance(cluster, network, per_node) < distance(*best, network, per_node))
      best = &cluster;
  }
  return best;
}

void set_network(const TrainingRow& row, const NetworkText& network, ClusterSpec& cluster,
                 std::vector<std::string>& filled_in) {
  const std::string& text = row.cluster.inter_node;
  if (network.per_node.value() <= 0.0) {
    if (row.cluster.gpus <= cluster.node.accelerators) return;
    filled_in.push_back(fmt::format("inter_node: as in the shipped cluster {}{}", cluster.name,
                                    text.empty() ? "" : fmt::format(", for \"{}\"", text)));
  } else if (bandwidth_distance(cluster, network) > 0.0) {
    filled_in.push_back(
        fmt::format("cluster: {} with the row's bandwidth between nodes", cluster.name));
    cluster.node.nic.bandwidth = network.per_node / static_cast<double>(cluster.node.nic.per_node);
  }
}

// The cluster of PCIe servers whose network stands in for that of workstations.
constexpr const char* kServersOnEthernet = "l40s-pcie-workstation";

// A row that ran needs no proof that its network joins its nodes.
void join_all_nodes(const TrainingRow& row, ClusterSpec& cluster,
                    std::vector<std::string>& filled_in) {
  if (row.cluster.gpus <= cluster.most_accelerators().value_or(row.cluster.gpus)) return;
  if (cluster.fabric.kind == FabricKind::None) {
    const ClusterSpec servers = load_cluster(kServersOnEthernet);
    if (cluster.node.nic.per_node == 0) cluster.node.nic = servers.node.nic;
    cluster.fabric = servers.fabric;
    filled_in.push_back(fmt::format("fabric: as in the shipped cluster {}, for {} has none",
                                    servers.name, cluster.name));
  }
  const std::int64_t node = cluster.accelerators_per_node();
  const std::int64_t nodes = (row.cluster.gpus + node - 1) / node;
  if (cluster.fabric.levels.empty() || cluster.fabric.levels.back().nodes >= nodes) return;
  cluster.fabric.levels.back().nodes = nodes;
  filled_in.push_back(
      fmt::format("fabric: the highest level of {} joins {} nodes", cluster.fabric.name, nodes));
}

}  // namespace

const std::vector<ClusterSpec>& cluster_library() {
  static const std::vector<ClusterSpec> kClusters = [] {
    std::vector<ClusterSpec> clusters;
    for (const std::string& name : shipped_clusters()) clusters.push_back(load_cluster(name));
    return clusters;
  }();
  return kClusters;
}

NetworkText read_network(const std::string& text, std::int64_t gpus_per_node) {
  static const std::regex kSeveral(R"((\d+)\s*[x*]\s*(?:NDR|HDR)?\s*(\d+)\s*(?:GbE|Gb|G\b|IB))",
                                   std::regex::icase);
  static const std::regex kOne(
      R"((\d+(?:\.\d+)?)\s*(G|T)(?:b/s|bps|bit/s)(?:\s*(?:per|/)\s*(node|GPU))?)",
      std::regex::icase);
  NetworkText network;
  network.protocol = protocol_in(text);
  std::smatch match;
  if (std::regex_search(text, match, kSeveral)) {
    network.per_node = gigabits(std::stod(match[1]) * std::stod(match[2]));
  } else if (std::regex_search(text, match, kOne)) {
    const double count = std::stod(match[1]) * (lower_case(match[2].str()) == "t" ? 1e3 : 1.0);
    const std::string whose = lower_case(match[3].str());
    const bool each = whose == "gpu";
    // No single port is this fast.
    if (whose.empty() && count < kLeastNodeGigabits) return network;
    network.per_node = gigabits(count * (each ? static_cast<double>(gpus_per_node) : 1.0));
  }
  return network;
}

std::optional<ClusterSpec> cluster_of_row(const TrainingRow& row,
                                          std::vector<std::string>& filled_in,
                                          std::string& reason) {
  if (row.cluster.gpu.empty()) {
    reason = "the source does not say the accelerator";
    return std::nullopt;
  }
  const AcceleratorText accelerator = read_accelerator_text(row.cluster.gpu);
  const std::int64_t count = row.cluster.gpus_per_node.value_or(8);
  const NetworkText network = read_network(row.cluster.inter_node, count);
  const ClusterSpec* nearest =
      accelerator.profile ? nearest_cluster(*accelerator.profile, network, count) : nullptr;
  if (nearest == nullptr) {
    reason = fmt::format("no shipped cluster has the accelerator \"{}\"", row.cluster.gpu);
    return std::nullopt;
  }
  ClusterSpec cluster = *nearest;
  cluster.nodes = 0;
  if (accelerator.memory > Bytes(0)) {
    cluster.accelerator.memory = accelerator.memory;
    filled_in.push_back(fmt::format("accelerator: {} with the memory of \"{}\"",
                                    cluster.accelerator.name, row.cluster.gpu));
  }
  if (!row.cluster.gpus_per_node) {
    filled_in.push_back(fmt::format("gpus_per_node: {}", cluster.node.accelerators));
  } else if (cluster.node.accelerators != count) {
    filled_in.push_back(fmt::format("cluster: {} with {} accelerators per node in place of {}",
                                    cluster.name, count, cluster.node.accelerators));
    set_accelerators_per_node(cluster, count);
  }
  join_all_nodes(row, cluster, filled_in);
  set_network(row, network, cluster, filled_in);
  return cluster;
}

}  // namespace shardwright::sim
