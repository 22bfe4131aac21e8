#include "sim/validation/row_links.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <regex>

#include "core/spec/profile_library.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/stated_bandwidth.hpp"

namespace shardwright::sim {
namespace {

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
  static const std::regex kBandwidth(R"((?:^|[^\d.])(\d{1,6}(?:\.\d{1,6})?)\s*(G|T)B/s)",
                                     std::regex::icase);
  std::smatch match;
  if (!says_nvlink(links) || says_any(links, {"per pair", "per link"}) ||
      !std::regex_search(links, match, kBandwidth))
    return BytesPerSecond(0.0);
  const double scale = lower_case(match[2].str()) == "t" ? 1e3 : 1.0;
  return gigabytes_per_second(std::stod(match[1]) * scale / 2.0);
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

}  // namespace

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

}  // namespace shardwright::sim
