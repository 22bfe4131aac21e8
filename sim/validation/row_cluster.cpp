#include "sim/validation/row_cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <regex>
#include <string_view>
#include <tuple>

#include "core/spec/profile_library.hpp"
#include "sim/validation/accelerator_text.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// Bandwidths that differ by less than this are the same (800 Gb/s, 4 x 200 Gb/s, 100 GB/s).
constexpr double kSameBandwidth = 0.02;

// No single port is this fast.
constexpr double kLeastNodeGigabits = 1000.0;
// No domain of 72 accelerators with a port of 800 Gb/s each has as much.
constexpr double kMostNodeGigabits = 1e5;
// Ports of machines for training are this fast; what is slower is all that a server has.
constexpr double kLeastPortGigabits = 200.0;

BytesPerSecond per_node(const NodeSpec& node) {
  return node.nic.bandwidth * static_cast<double>(node.nic.per_node);
}

BytesPerSecond gigabits(double count) {
  return gigabytes_per_second(count / 8.0);
}

std::optional<FabricProtocol> protocol_in(const std::string& text) {
  static const std::regex kInfiniBand(R"(infiniband|\b(?:(?:EDR|HDR|NDR|XDR)\d*|IB)\b)",
                                      std::regex::icase);
  if (std::regex_search(text, kInfiniBand)) return FabricProtocol::InfiniBand;
  // "process" holds the letters, too.
  static const std::regex kRoce(R"(\broce)", std::regex::icase);
  if (std::regex_search(text, kRoce)) return FabricProtocol::RoCE;
  if (says(text, "efa")) return FabricProtocol::Efa;
  if (says_any(text, {"ethernet", "gbe"})) return FabricProtocol::Ethernet;
  return std::nullopt;
}

bool is_said(BytesPerSecond bandwidth) {
  return bandwidth.value() > 0.0;
}

double bandwidth_distance(const ClusterSpec& cluster, const NetworkText& network) {
  if (!is_said(network.per_node) && !is_said(network.per_port)) return 0.0;
  const double ratio = is_said(network.per_node) ? per_node(cluster.node) / network.per_node
                                                 : cluster.node.nic.bandwidth / network.per_port;
  const double distance = std::abs(std::log(ratio));
  return distance < kSameBandwidth ? 0.0 : distance;
}

// The shipped cluster that stands for an accelerator of which several are shipped, where the source
// says nothing of its network: the vendor's own systems, or what most are built like.
bool is_usual(const ClusterSpec& cluster) {
  constexpr std::array<std::string_view, 7> kUsual = {
      "dgx-1-v100", "hgx-a100-40gb", "dgx-a100", "dgx-h100", "dgx-h200", "h800-ib", "dgx-b200"};
  return std::find(kUsual.begin(), kUsual.end(), cluster.name) != kUsual.end();
}

// Smaller is nearer; the first of equals wins, in the order of names.
std::tuple<double, bool, bool, bool> distance(const ClusterSpec& cluster,
                                              const NetworkText& network,
                                              std::int64_t accelerators) {
  const bool other_protocol = network.protocol && *network.protocol != cluster.fabric.protocol;
  return {bandwidth_distance(cluster, network), other_protocol,
          cluster.node.accelerators != accelerators, !is_usual(cluster)};
}

void set_accelerators_per_node(ClusterSpec& cluster, std::int64_t count) {
  if (cluster.node.scale_up.domain == cluster.node.accelerators)
    cluster.node.scale_up.domain = count;
  cluster.node.accelerators = count;
}

// "PCIe Gen3", "PCIe 3.0 x16", "PCIe4", "Gen 4".
std::optional<int> pcie_generation_in(const std::string& text) {
  static const std::regex kGeneration(
      R"(\b(?:pci-?e|pci express)[\s-]*(?:gen(?:eration)?\.?|v)?[\s-]*([3-6])(?:\.0)?\b|\bgen\.?[\s-]*([3-6])\b|\b([3-6])\.0\b)",
      std::regex::icase);
  std::smatch match;
  if (!std::regex_search(text, match, kGeneration)) return std::nullopt;
  for (std::size_t group = 1; group < match.size(); ++group) {
    if (match[group].matched) return std::stoi(match[group]);
  }
  return std::nullopt;
}

// What accelerators of an architecture have (vendors' datasheets).
int usual_pcie_generation(const std::string& architecture) {
  if (architecture == "volta") return 3;
  return architecture == "ampere" || architecture == "ada" || architecture == "cdna2" ? 4 : 5;
}

// Each generation is twice as fast as the one before it.
void set_pcie_generation(ScaleUpSpec& links, int shipped, int wanted) {
  if (shipped == wanted) return;
  links.bandwidth = links.bandwidth * std::exp2(wanted - shipped);
  links.name = fmt::format("PCIe {} x16", wanted);
}

// The servers whose PCIe links stand for those of accelerators that are shipped with NVLink only.
ScaleUpSpec pcie_links(int generation) {
  const bool fifth = generation >= 5;
  ScaleUpSpec links = load_cluster(fifth ? "h100-pcie-server" : "a100-pcie-server").node.scale_up;
  set_pcie_generation(links, fifth ? 5 : 4, generation);
  return links;
}

void replace_by_pcie(ClusterSpec& cluster, const std::string& text,
                     std::vector<std::string>& filled_in) {
  ScaleUpSpec& links = cluster.node.scale_up;
  const std::int64_t domain = links.domain;
  const auto stated = pcie_generation_in(text);
  links = pcie_links(stated.value_or(usual_pcie_generation(cluster.accelerator.architecture)));
  links.domain = domain;
  filled_in.push_back(fmt::format("intra_node: {}{} in place of the links of {}", links.name,
                                  stated ? "" : ", the usual one,", cluster.name));
}

// A shipped cluster with PCIe links, where the row says another generation or further links.
void refine_pcie(const std::string& text, ClusterSpec& cluster,
                 std::vector<std::string>& filled_in) {
  ScaleUpSpec& links = cluster.node.scale_up;
  if (affirms_any(text, {"nvlink", "nvswitch"}))
    filled_in.push_back(fmt::format("intra_node: {} alone, for \"{}\"", links.name, text));
  const auto stated = pcie_generation_in(text);
  const auto shipped = pcie_generation_in(links.name);
  if (!stated || !shipped || *stated == *shipped) return;
  set_pcie_generation(links, *shipped, *stated);
  filled_in.push_back(
      fmt::format("intra_node: {} in place of the links of {}", links.name, cluster.name));
}

bool says_nvlink(const std::string& links) {
  return affirms_any(links, {"nvlink"});
}

// "PCIe", "no NVLink", "none", "Ethernet": what is left is the slots.
bool says_pcie_alone(const std::string& links) {
  static const std::regex kNone(R"(^\s*(?:none|no)\s*$|\bethernet\b|pci)", std::regex::icase);
  const bool without = denies_any(links, {"nvlink"}) || std::regex_search(links, kNone);
  return without && !affirms_any(links, {"nvlink", "nvswitch", "xgmi", "infinity"});
}

bool names_links(const std::string& links) {
  return says_any(links, {"nvlink", "nvswitch", "nvl", "pci", "xgmi", "infinity", "ethernet"}) ||
         says_pcie_alone(links);
}

// Products that fit into a PCIe slot and of which no profile tells: "H100 NVL", "A100 PCIe" …
bool is_card(const std::string& gpu) {
  static const std::regex kCard(R"(\bNVL\b|pcie)", std::regex::icase);
  return std::regex_search(gpu, kCard);
}

// Datasheets count both directions of NVLink; zero: nothing is said, or of a part of the links.
BytesPerSecond nvlink_in(const std::string& links) {
  static const std::regex kBandwidth(R"((\d+(?:\.\d+)?)\s*(G|T)B/s)", std::regex::icase);
  std::smatch match;
  if (!says_nvlink(links) || says_any(links, {"per pair", "per link"}) ||
      !std::regex_search(links, match, kBandwidth))
    return BytesPerSecond(0.0);
  const double scale = lower_case(match[2].str()) == "t" ? 1e3 : 1.0;
  return gigabytes_per_second(std::stod(match[1]) * scale / 2.0);
}

bool is_same(BytesPerSecond a, BytesPerSecond b) {
  return std::abs(std::log(a / b)) < kSameBandwidth;
}

// What joins cards by NVLink.
struct Bridge {
  std::int64_t cards;        // that it joins
  BytesPerSecond bandwidth;  // of a card, per direction
};

// 600 GB/s in both directions between two H100 NVL (NVIDIA, H100 NVL product brief, "NVLink bridge
// support"); 900 GB/s between two or four H200 NVL (NVIDIA, H200 NVL product brief).
Bridge bridge_of(const std::string& gpu) {
  return says(gpu, "h200") ? Bridge{4, gigabytes_per_second(450)}
                           : Bridge{2, gigabytes_per_second(300)};
}

// Whether one bridge holds all the cards of a node, or of the run.
bool one_bridge_holds(const TrainingRow& row, const ClusterSpec& cluster) {
  return std::min(row.cluster.gpus, cluster.node.accelerators) <= bridge_of(row.cluster.gpu).cards;
}

// The links of a module without its switch.
void set_bridge(const TrainingRow& row, ClusterSpec& cluster, std::vector<std::string>& filled_in) {
  ScaleUpSpec& links = cluster.node.scale_up;
  if (links.kind == ScaleUpKind::Pcie) {
    const std::int64_t domain = links.domain;
    links = load_cluster("dgx-h100").node.scale_up;
    links.domain = domain;
  }
  const BytesPerSecond stated = nvlink_in(row.cluster.intra_node);
  links.bandwidth = is_said(stated) ? stated : bridge_of(row.cluster.gpu).bandwidth;
  links.in_network_reduction = false;
  filled_in.push_back(fmt::format("intra_node: {} of a bridge, without a switch", links.name));
}

void say_what_bridges_join(const TrainingRow& row, std::vector<std::string>& filled_in) {
  filled_in.push_back(fmt::format("intra_node: \"{}\" joins {} cards at the most, not the node's",
                                  row.cluster.intra_node, bridge_of(row.cluster.gpu).cards));
}

// Gives cards that are shipped as modules only their links; false if the row says no others than a
// module has. NVLink joins them only where one bridge holds all of a node's: beyond it the slots of
// PCIe do.
bool set_card_links(const TrainingRow& row, ClusterSpec& cluster,
                    std::vector<std::string>& filled_in) {
  const std::string& text = row.cluster.intra_node;
  const bool bridged = says_nvlink(text);
  if (!text.empty() && !bridged) return false;
  if (bridged && one_bridge_holds(row, cluster)) {
    set_bridge(row, cluster, filled_in);
    return true;
  }
  replace_by_pcie(cluster, text + ' ' + row.cluster.gpu, filled_in);
  if (bridged) say_what_bridges_join(row, filled_in);
  return true;
}

// Of cards whose server is shipped with PCIe links.
void set_slot_links(const TrainingRow& row, ClusterSpec& cluster,
                    std::vector<std::string>& filled_in) {
  const std::string& text = row.cluster.intra_node;
  const bool bridges = says(cluster.accelerator.name, "nvl") && says_nvlink(text);
  if (bridges && one_bridge_holds(row, cluster)) {
    set_bridge(row, cluster, filled_in);
    return;
  }
  refine_pcie(text + ' ' + row.cluster.gpu, cluster, filled_in);
  if (bridges) say_what_bridges_join(row, filled_in);
}

// The links inside of a node, where the row says others than those of the shipped cluster.
void set_links(const TrainingRow& row, ClusterSpec& cluster, std::vector<std::string>& filled_in) {
  ScaleUpSpec& links = cluster.node.scale_up;
  const std::string& text = row.cluster.intra_node;
  const bool card =
      is_card(row.cluster.gpu) && !says_any(cluster.accelerator.name, {"pcie", "nvl"});
  if (card)
    filled_in.push_back(fmt::format("accelerator: {} for \"{}\", which has no profile of its own",
                                    cluster.accelerator.name, row.cluster.gpu));
  if (!text.empty() && !names_links(text))
    filled_in.push_back(
        fmt::format("intra_node: as in the shipped cluster {}, for \"{}\"", cluster.name, text));
  const std::string stated_slots = text + ' ' + row.cluster.gpu;
  if (links.kind == ScaleUpKind::Pcie) {
    set_slot_links(row, cluster, filled_in);
    return;
  }
  if (says_pcie_alone(text)) {
    replace_by_pcie(cluster, stated_slots, filled_in);
    return;
  }
  if (card && set_card_links(row, cluster, filled_in)) return;
  const BytesPerSecond stated = nvlink_in(text);
  if (!is_said(stated) || is_same(links.bandwidth, stated) ||
      is_same(links.bandwidth, stated * 2.0))
    return;
  links.bandwidth = stated;
  filled_in.push_back(fmt::format("intra_node: {} with the row's bandwidth", links.name));
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
  if (!is_said(network.per_node) && !is_said(network.per_port)) {
    if (row.cluster.gpus <= cluster.node.accelerators) return;
    filled_in.push_back(fmt::format("inter_node: as in the shipped cluster {}{}", cluster.name,
                                    text.empty() ? "" : fmt::format(", for \"{}\"", text)));
  } else if (bandwidth_distance(cluster, network) > 0.0) {
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

namespace {

// Of "Gb/s", "GB/s", "Gbit" or "GbE" what stands behind the G: only its case tells bytes from bits.
bool is_bytes(const std::string& unit) {
  const std::string lower = lower_case(unit);
  return unit.starts_with('B') && !lower.starts_with("bit") && lower != "be";
}

// Infinite where it is too large for a number.
double number_in(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
}

// "4x HDR": gigabits per second of one port of four lanes; "4x HDR100" says its own.
double infiniband_gigabits(const std::string& generation, const std::string& stated) {
  if (!stated.empty()) return number_in(stated);
  const std::string name = lower_case(generation);
  if (name == "edr") return 100.0;
  if (name == "hdr") return 200.0;
  return name == "ndr" ? 400.0 : 800.0;
}

// A single figure is that of a port where it can be one, or else all that a node has; Amazon gives
// EFA's as that of the instance.
void take_single_figure(double gigabits_per_second, NetworkText& network) {
  const bool whole = gigabits_per_second >= kLeastNodeGigabits ||
                     gigabits_per_second < kLeastPortGigabits ||
                     network.protocol == FabricProtocol::Efa;
  (whole ? network.per_node : network.per_port) = gigabits(gigabits_per_second);
}

// "3,200 Gbps" as "3200 Gbps".
std::string without_separators(const std::string& text) {
  static const std::regex kThousand(R"((^|[^\d.,])(\d{1,3}(?:,\d{3})+)(?![\d,]))");
  std::string plain, rest = text;
  std::smatch match;
  while (std::regex_search(rest, match, kThousand)) {
    std::string number = match[2];
    std::erase(number, ',');
    plain += match.prefix().str() + match[1].str() + number;
    rest = match.suffix().str();
  }
  return plain + rest;
}

// A sign, which no dash between words is: "-5 Gb/s", "2x -100 GbE".
bool has_negative(const std::string& text) {
  static const std::regex kNegative(R"((?:^|[\s(,;:])-\.?\d)");
  return std::regex_search(text, kNegative);
}

// Whose a figure is by what stands behind it: "per GPU", "RoCE per node", "/ GPU".
std::string owner_in(const std::string& behind) {
  static const std::regex kOwner(
      R"(^[^\d(,;]*?(?:\bper\s*|/\s*|\beach\s+)(node|GPU|accelerator)\b)", std::regex::icase);
  std::smatch match;
  if (!std::regex_search(behind, match, kOwner)) return {};
  return lower_case(match[1].str()) == "node" ? "node" : "gpu";
}

double scale_of(const std::string& prefix) {
  return lower_case(prefix) == "t" ? 1e3 : 1.0;
}

}  // namespace

NetworkText read_network(const std::string& stated, std::int64_t gpus_per_node) {
  static const std::regex kSeveral(
      R"((\d+)\s*[x*]\s*(?:EDR|HDR|NDR|XDR)?\s*(\d+(?:\.\d+)?(?:e\+?\d+)?)\s*(?:(G|T)(bE|bit|b|\b)|IB))",
      std::regex::icase);
  static const std::regex kSeveralPorts(R"((\d+)\s*[x*]\s*(EDR|HDR|NDR|XDR)(\d{3})?\b)",
                                        std::regex::icase);
  static const std::regex kOne(
      R"((\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:(G|T)(b/s|bps|bit(?:/s|ps)?)|(GbE)))",
      std::regex::icase);
  NetworkText network;
  network.protocol = protocol_in(stated);
  const std::string text = without_separators(stated);
  if (has_negative(text)) return network;
  const double gpus = static_cast<double>(gpus_per_node);
  std::smatch match;
  const auto each = [&] { return owner_in(match.suffix().str()) == "gpu" ? gpus : 1.0; };
  const auto rate = [&](std::size_t number, std::size_t prefix) {
    const double bits = is_bytes(match[prefix + 1]) ? 8.0 : 1.0;
    return number_in(match[number]) * scale_of(match[prefix]) * bits;
  };
  double node = 0.0, single = 0.0;
  if (std::regex_search(text, match, kSeveral)) {
    node = number_in(match[1]) * rate(2, 3) * each();
  } else if (std::regex_search(text, match, kSeveralPorts)) {
    node = number_in(match[1]) * infiniband_gigabits(match[2], match[3]) * each();
  } else if (std::regex_search(text, match, kOne)) {
    const bool whole = !owner_in(match.suffix().str()).empty();
    (whole ? node : single) = rate(1, 2) * each();
  }
  if (std::max(node, single) > kMostNodeGigabits) return network;
  if (node > 0.0) network.per_node = gigabits(node);
  if (single > 0.0) take_single_figure(single, network);
  return network;
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
  filled_in.insert(filled_in.end(), accelerator.filled_in.begin(), accelerator.filled_in.end());
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
  set_links(row, cluster, filled_in);
  join_all_nodes(row, cluster, filled_in);
  set_network(row, network, cluster, filled_in);
  return cluster;
}

}  // namespace shardwright::sim
