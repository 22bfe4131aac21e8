#include "sim/validation/network_text.hpp"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <regex>
#include <utility>

#include "sim/validation/negation.hpp"
#include "sim/validation/network_clauses.hpp"
#include "sim/validation/network_oversubscription.hpp"
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

// Of "Gb/s", "GB/s", "Gbit" or "GbE" what stands behind the G: only its case tells bytes from bits.
bool is_bytes(const std::string& unit) {
  const std::string lower = lower_case(unit);
  return unit.starts_with('B') && !lower.starts_with("bit") && lower != "be";
}

// Infinite where it is too large for a number.
double number_in(const std::string& text) {
  return std::strtod(text.c_str(), nullptr);
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

// Whose a figure is: of how many accelerators, or of a node (0). Nothing: it is not said.
using Owner = std::optional<double>;

Owner owner_of(const std::smatch& match) {
  if (!match[2].matched) return 0.0;
  return match[1].matched ? std::max(1.0, number_in(match[1])) : 1.0;
}

// "per GPU", "RoCE per node", "/ GPU", "per 2 GPUs", "(total per node)", "in total".
Owner owner_behind(const std::string& behind) {
  static const std::regex kOwner(
      R"(^[^\d(,;]{0,40}?(?:\(?(?:in )?(?:total|aggregate)\b[^\d(,;]{0,20}?)?(?:\bper\s*|/\s*|\beach\s+)(?:(\d)\s*)?(?:node|server|host|machine|instance|(GPU|accelerator|chip|card))s?\b)",
      std::regex::icase);
  static const std::regex kTotal(R"(^[^\d(,;]{0,20}?[ (](?:in )?(?:total|aggregate)\b)",
                                 std::regex::icase);
  std::smatch match;
  if (std::regex_search(behind, match, kOwner)) return owner_of(match);
  return std::regex_search(behind, kTotal) ? Owner(0.0) : std::nullopt;
}

// "Per node: 800 Gb/s", "each GPU has", "total bandwidth".
Owner owner_before(const std::string& before) {
  static const std::regex kOwner(
      R"(\b(?:per[ -]?|each )(?:(\d) )?(?:node|server|host|machine|instance|(GPU|accelerator|chip|card))s?\b[^\d,;]{0,24}$)",
      std::regex::icase);
  static const std::regex kTotal(R"(\b(?:total|aggregate)\b[^\d,;]{0,24}$)", std::regex::icase);
  std::smatch match;
  if (std::regex_search(before, match, kOwner)) return owner_of(match);
  return std::regex_search(before, kTotal) ? Owner(0.0) : std::nullopt;
}

Owner owner_around(const std::smatch& figure) {
  const Owner behind = owner_behind(figure.suffix().str());
  return behind ? behind : owner_before(figure.prefix().str());
}

// Ports per node of "1 NIC per GPU", "1 per 2 GPUs", "(8x NIC)", "1 HCA"; 0 without.
double ports_in(const std::string& text, double gpus) {
  static const std::regex kPer(
      R"((?:^|[^\d.x*])(\d{1,2}) ?x? ?(?:(?:NIC|HCA|port|rail|link|adapter|adaptor|card)s? ?)?(?:per|for|/) ?(?:each |every )?(?:(\d) ?)?(?:node|server|host|machine|(GPU|accelerator|chip))s?\b)",
      std::regex::icase);
  static const std::regex kCount(
      R"((?:^|[^\d.x*])(\d{1,2}) ?x? ?(?:NIC|HCA|port|rail|adapter|adaptor)s?\b)",
      std::regex::icase);
  std::smatch match;
  if (std::regex_search(text, match, kPer)) {
    const double share = match[2].matched ? std::max(1.0, number_in(match[2])) : 1.0;
    return number_in(match[1]) * (match[3].matched ? gpus / share : 1.0);
  }
  return std::regex_search(text, match, kCount) ? number_in(match[1]) : 0.0;
}

double scale_of(const std::string& prefix) {
  return lower_case(prefix) == "t" ? 1e3 : 1.0;
}

// Gb/s of a match whose groups from `number` on are a number, a prefix and what stands behind it.
double rate_in(const std::smatch& match, std::size_t number) {
  const double bits = is_bytes(match[number + 2]) ? 8.0 : 1.0;
  return number_in(match[number]) * scale_of(match[number + 1]) * bits;
}

// What the first figure of a text makes, in gigabits per second: of a node, or a single figure.
struct Figure {
  double node = 0.0, single = 0.0;
  bool by_count = false;  // of ports elsewhere in the text
};

// "8x 400 Gb/s", "1x 200 GbE per GPU", "8x (400 Gb/s each)", "8x (3.2 Tb/s total)".
std::optional<Figure> several_in(const std::string& text, double gpus) {
  static const std::regex kSeveral(
      R"((\d+)\s*[x*]\s*(\()?(\d+(?:\.\d+)?(?:e\+?\d+)?)\s*(G|T)(bE|bit|b|\b))", std::regex::icase);
  std::smatch match;
  if (!std::regex_search(text, match, kSeveral)) return std::nullopt;
  const double rate = rate_in(match, 3);
  const Owner owner = owner_around(match);
  if (match[2].matched && owner == Owner(0.0)) return Figure{rate};
  const double count = number_in(match[1]);
  // As many as there are accelerators are theirs already.
  const bool of_each = owner.value_or(0.0) > 0.0 && (count < gpus || gpus < 2.0);
  return Figure{count * rate * (of_each ? gpus / *owner : 1.0)};
}

Figure figure_in(const std::string& text, double gpus) {
  static const std::regex kOne(
      R"((\d+(?:\.\d+)?(?:e[+-]?\d+)?)\s*(?:(G|T)(b/s|bps|bit(?:/s|ps)?)|(GbE)))",
      std::regex::icase);
  if (const auto several = several_in(text, gpus)) return *several;
  std::smatch match;
  if (!std::regex_search(text, match, kOne)) return {};
  const double rate = rate_in(match, 1);
  if (const Owner owner = owner_around(match)) return {*owner > 0.0 ? rate * gpus / *owner : rate};
  const double ports = ports_in(text, gpus);
  // "8 HCAs, 1.6 Tb/s" is of the node.
  return ports > 0.0 && rate < kLeastNodeGigabits ? Figure{rate * ports, 0.0, true}
                                                  : Figure{0.0, rate};
}

}  // namespace

NetworkText read_network(const std::string& stated, std::int64_t gpus_per_node) {
  ComputeNetwork compute = compute_network(without_separators(stated.substr(0, kMostOfName)));
  NetworkText network;
  network.left_out = std::move(compute.left_out);
  network.protocol = protocol_in(compute.text);
  static const std::regex kTcp(R"(\btcp|\b(?:no|without) rdma\b)", std::regex::icase);
  network.without_rdma = std::regex_search(compute.text, kTcp);
  network.torus = affirms_any(compute.text, {"torus", "optical circuit", "ocs"});
  Oversubscription above_leaves = read_oversubscription(compute.text);
  network.oversubscription = above_leaves.ratio;
  if (!above_leaves.not_taken.empty()) network.left_out.push_back(above_leaves.not_taken);
  const NetworkSpelling spelling =
      usual_network_spelling(above_leaves.rest, network.protocol.has_value());
  if (has_negative(spelling.text)) return network;
  const Figure figure = figure_in(spelling.text, static_cast<double>(gpus_per_node));
  if (std::max(figure.node, figure.single) > kMostNodeGigabits) return network;
  network.by_name = spelling.by_name || figure.by_count;
  if (figure.node > 0.0) network.per_node = gigabits(figure.node);
  if (figure.single > 0.0) take_single_figure(figure.single, network);
  return network;
}

}  // namespace shardwright::sim
