#include "sim/validation/network_spelling.hpp"

#include <regex>

namespace shardwright::sim {
namespace {

// "3200Gb", "25G": of bits, as networks have them; "GB" and "GbE" stay what they are.
std::string with_whole_units(const std::string& text) {
  static const std::regex kBare(R"((\d) ?([GT])(?:b|bit)?(?![A-Za-z/]))");
  return std::regex_replace(text, kBare, "$1 $2b/s");
}

// "4 HCA HDR 200Gb/s", "8 NICs of 400 Gb/s".
std::string with_counts_of_devices_first(const std::string& text) {
  static const std::regex kDevices(
      R"((\d) ?[x*]? ?(?:HCA|NIC|port|rail|adapter|adaptor)s?(?: of| at| with|,|:)? (?=(?:(?:EDR|HDR|NDR|XDR) ?)?\d+(?:\.\d+)? ?[GT]b))",
      std::regex::icase);
  return std::regex_replace(text, kDevices, "$1x ");
}

// "HDR InfiniBand 200 Gb/s x4".
std::string with_counts_behind_first(const std::string& text) {
  static const std::regex kBehind(
      R"((^|[^\dx*.] ?)(\d+(?:\.\d+)? ?[GT](?:b/s|bps|bit/s|bE)) ?[x*] ?(\d{1,2})(?![\d.]| ?[GT]b))",
      std::regex::icase);
  return std::regex_replace(text, kBehind, "$1$3x $2");
}

// "HDR100" alone; "4x HDR100" and "HDR100, 100 Gb/s" say more.
std::string with_rate_of_port(const std::string& text) {
  static const std::regex kFigure(R"(\d ?[GT]b|\d ?[x*] ?[EHNX]DR)", std::regex::icase);
  static const std::regex kPort(R"(\b([HNX]DR)(\d{3})\b)", std::regex::icase);
  if (std::regex_search(text, kFigure)) return text;
  return std::regex_replace(text, kPort, "$1 $2 Gb/s", std::regex_constants::format_first_only);
}

// "4 × 200 Gb/s" with the letter.
std::string with_plain_crosses(const std::string& text) {
  static const std::regex kCross("×");
  return std::regex_replace(text, kCross, "x");
}

bool has_count_first(const std::string& text) {
  static const std::regex kCounted(R"(\d ?[x*] ?(?:[EHNX]DR)? ?\d)", std::regex::icase);
  return std::regex_search(text, kCounted);
}

}  // namespace

std::string usual_network_spelling(const std::string& stated, bool names_network) {
  std::string text = with_plain_crosses(stated);
  if (names_network) text = with_rate_of_port(with_whole_units(text));
  return has_count_first(text) ? text
                               : with_counts_behind_first(with_counts_of_devices_first(text));
}

}  // namespace shardwright::sim
