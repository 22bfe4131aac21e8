#include "sim/validation/network_text.hpp"

#include <algorithm>
#include <cstdlib>
#include <regex>

#include "sim/validation/network_spelling.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

// No single port is this fast.
constexpr double kLeastNodeGigabits = 1000.0;
// No domain of 72 accelerators with a port of 800 Gb/s each has as much.
constexpr double kMostNodeGigabits = 1e5;
// Ports of machines for training are this fast; what is slower is all that a server has.
constexpr double kLeastPortGigabits = 200.0;

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
  const std::string text =
      usual_network_spelling(without_separators(stated), network.protocol.has_value());
  if (has_negative(text)) return network;
  const auto gpus = static_cast<double>(gpus_per_node);
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

}  // namespace shardwright::sim
