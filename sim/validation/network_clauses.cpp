#include "sim/validation/network_clauses.hpp"

#include <algorithm>
#include <regex>

#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

struct Clause {
  std::string text;
  std::string separator;     // in front of it
  bool in_labelled = false;  // of a sentence that begins with "Storage:"
  bool left_out = false;
};

bool has_figure(const std::string& text) {
  static const std::regex kFigure(
      R"(\d ?[GT](?:b|i?B|\b)|\d ?[x*] ?\d|\b(?:SDR|QDR|FDR|EDR|HDR|NDR|XDR)\d*\b)",
      std::regex::icase);
  return std::regex_search(text, kFigure);
}

bool is_of_another_network(const std::string& text) {
  return affirms_any(text,
                     {"storage",      "management",  "mgmt",        "front-end",    "front end",
                      "frontend",     "north-south", "north/south", "north south",  "host network",
                      "host traffic", "in-band",     "out-of-band", "bmc",          "ipmi",
                      "nfs",          "lustre",      "gpfs",        "filesystem",   "file system",
                      "data loading", "login",       "internet",    "host ethernet"}) &&
         !says_any(text, {"compute", "east-west", "shared", "converged", "same"});
}

bool names_compute(const std::string& text) {
  return affirms_any(text, {"compute", "east-west", "gpu", "accelerator", "back-end", "backend"});
}

// "used for storage" speaks of what stands before it.
bool speaks_of_previous(const Clause& clause) {
  static const std::regex kFor(R"(^\W*(?:(?:used|only|dedicated|reserved) )*(?:for|to)\b)",
                               std::regex::icase);
  return !has_figure(clause.text) &&
         (clause.separator == "(" || std::regex_search(clause.text, kFor));
}

// "Storage: 2x 100 GbE and 25 GbE".
bool is_label_of_another(const std::string& clause) {
  const auto colon = clause.find(':');
  return colon != std::string::npos && is_of_another_network(clause.substr(0, colon));
}

std::vector<Clause> clauses_of(const std::string& text) {
  static const std::regex kSeparator(
      R"([;|\n()]|\.(?= |$)|,(?!\d)| / |[+&]| (?:and|plus|with|while|but|whereas) )",
      std::regex::icase);
  std::vector<Clause> clauses;
  std::string separator;
  bool labelled = false;
  const auto add = [&](const std::string& part) {
    if (separator == ";" || separator == "." || separator == "\n") labelled = false;
    labelled = labelled || is_label_of_another(part);
    clauses.push_back({part, separator, labelled, false});
  };
  std::string rest = text;
  std::smatch match;
  while (std::regex_search(rest, match, kSeparator)) {
    add(match.prefix());
    separator = match.str();
    rest = match.suffix().str();
  }
  add(rest);
  return clauses;
}

void leave_out_other_purposes(std::vector<Clause>& clauses) {
  for (std::size_t i = 0; i < clauses.size(); ++i) {
    Clause& clause = clauses[i];
    const bool carried =
        clause.in_labelled && !names_compute(clause.text) &&
        protocol_in(clause.text).value_or(FabricProtocol::Ethernet) == FabricProtocol::Ethernet;
    clause.left_out = carried || is_of_another_network(clause.text);
    if (clause.left_out && i > 0 && speaks_of_previous(clause)) clauses[i - 1].left_out = true;
  }
}

// Hosts have Ethernet beside InfiniBand, which is no Ethernet, and beside what is faster.
void leave_out_ethernet_beside(std::vector<Clause>& clauses) {
  const auto is_faster = [](const Clause& clause) {
    const auto protocol = protocol_in(clause.text);
    return !clause.left_out && protocol && *protocol != FabricProtocol::Ethernet &&
           (*protocol == FabricProtocol::InfiniBand || has_figure(clause.text));
  };
  if (std::none_of(clauses.begin(), clauses.end(), is_faster)) return;
  for (Clause& clause : clauses)
    if (has_figure(clause.text) && protocol_in(clause.text) == FabricProtocol::Ethernet)
      clause.left_out = true;
}

std::string without_blanks_around(const std::string& text) {
  const auto first = text.find_first_not_of(" :");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

}  // namespace

std::optional<FabricProtocol> protocol_in(const std::string& text) {
  static const std::regex kInfiniBand(
      R"(infiniband|\b(?:(?:SDR|QDR|FDR|EDR|HDR|NDR|XDR)\d*|IB)\b|\bomni-?\s?path\b|\bOPA\b)",
      std::regex::icase);
  if (std::regex_search(text, kInfiniBand)) return FabricProtocol::InfiniBand;
  // "process" holds the letters, too.
  static const std::regex kRoce(R"(\broce)", std::regex::icase);
  if (std::regex_search(text, kRoce)) return FabricProtocol::RoCE;
  if (says(text, "efa")) return FabricProtocol::Efa;
  static const std::regex kEthernet(R"(ethernet|gbe|slingshot|\btcp)", std::regex::icase);
  if (std::regex_search(text, kEthernet)) return FabricProtocol::Ethernet;
  return std::nullopt;
}

ComputeNetwork compute_network(const std::string& stated) {
  std::vector<Clause> clauses = clauses_of(stated);
  leave_out_other_purposes(clauses);
  leave_out_ethernet_beside(clauses);
  ComputeNetwork network;
  for (const Clause& clause : clauses) {
    network.text += clause.separator;
    if (!clause.left_out)
      network.text += clause.text;
    else if (has_figure(clause.text))
      network.left_out.push_back(without_blanks_around(clause.text));
  }
  return network;
}

}  // namespace shardwright::sim
