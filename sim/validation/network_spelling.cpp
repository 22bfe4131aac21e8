#include "sim/validation/network_spelling.hpp"

#include <fmt/format.h>

#include <array>
#include <regex>

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

// What a port is called, and its rate.
struct Port {
  std::regex name;
  std::regex counted;  // "8x NDR", without a figure behind it
  std::string rate;
};

Port port(const std::string& name, int gigabits) {
  return {
      std::regex(fmt::format(R"(\b{}\b)", name), icase),
      std::regex(fmt::format(R"((\d ?[x*] ?){}\b(?!(?: infiniband| IB)? ?[\d(]))", name), icase),
      fmt::format("{} Gb/s", gigabits)};
}

// Generations of InfiniBand, by a port of four lanes.
const std::array<Port, 8>& generations() {
  static const std::array kPorts = {port("SDR", 10),  port("QDR", 40),  port("FDR10", 40),
                                    port("FDR", 56),  port("EDR", 100), port("HDR", 200),
                                    port("NDR", 400), port("XDR", 800)};
  return kPorts;
}

// Products, by the fastest port of each (vendors' datasheets).
const std::array<Port, 9>& products() {
  static const std::array kPorts = {
      port("(?:omni-? ?path|OPA)", 100), port("slingshot-? ?10", 100),
      port("slingshot(?:-? ?11)?", 200), port("(?:connectx|cx)-? ?[45]", 100),
      port("(?:connectx|cx)-? ?6", 200), port("(?:connectx|cx)-? ?7", 400),
      port("(?:connectx|cx)-? ?8", 800), port("bluefield-? ?2", 200),
      port("bluefield-? ?3", 400)};
  return kPorts;
}

bool has_rate(const std::string& text) {
  static const std::regex kRate(R"(\d ?[GT](?:b|i?B|\b))", icase);
  return std::regex_search(text, kRate);
}

// "4 × 200 Gb/s" with the letter.
std::string with_plain_crosses(const std::string& text) {
  static const std::regex kCross("×");
  return std::regex_replace(text, kCross, "x");
}

// "single NIC", "dual-rail", "per two GPUs"; "quad 200 Gb/s" is "4x 200 Gb/s".
std::string with_digits(std::string text) {
  struct Word {
    std::regex of_figure, name;
    std::string digit;
  };
  const auto word = [](const std::string& names, const char* digit) {
    return Word{
        std::regex(R"(\b(?:)" + names + R"()[- ](?=\d|[SQFEHNX]DR|connectx|cx-?\d))", icase),
        std::regex(R"(\b(?:)" + names + ")[- ]", icase), digit};
  };
  static const std::array kWords = {word("single|one", "1"), word("dual|two|pair of", "2"),
                                    word("quad|four", "4"), word("octo|eight", "8")};
  for (const Word& each : kWords) {
    text = std::regex_replace(text, each.of_figure, each.digit + "x ");
    text = std::regex_replace(text, each.name, each.digit + " ");
  }
  return text;
}

// "3200Gb", "25G": of bits, as networks have them; "GB" and "GbE" stay what they are.
std::string with_whole_units(const std::string& text) {
  static const std::regex kBare(R"((\d) ?([GT])(?:b|bit)?(?![A-Za-z/]))");
  return std::regex_replace(text, kBare, "$1 $2b/s");
}

// "800G per node", "400G NIC": of a network by what stands behind; "400G" alone.
std::string with_units_of_owned(const std::string& text) {
  static const std::regex kAlone(R"(^\s*\d+(?:\.\d+)? ?[GT]b?\s*$)");
  static const std::regex kOwned(
      R"((\d) ?([GT])(?:b|bit)?(?= ?\(?(?:(?:in )?total|aggregate|per\b|/ ?(?:node|GPU|NIC|port)|NIC|HCA|port|rail|link|network)))");
  if (std::regex_search(text, kAlone)) return with_whole_units(text);
  return std::regex_replace(text, kOwned, "$1 $2b/s");
}

// "HDR 200", "NDR200", "Omni-Path 100", "8x400 IB": numbers beside a name are its rate.
std::string with_units_beside_names(const std::string& text) {
  static const std::regex kBehind(
      R"(\b((?:[SQFEHNX]DR|infiniband|IB|omni-? ?path|OPA|roce(?: ?v2)?)[- ]?)(40|56|100|200|400|800)(?![\w.]|[ -]?(?:[GT]b|[GT]\b|x ?\d|[*:/]|nodes|gpus)))",
      icase);
  static const std::regex kBefore(
      R"((^|[^\d.])(40|56|100|200|400|800)(?= ?-?(?:[SQFEHNX]DR|infiniband|IB)\b))", icase);
  return std::regex_replace(std::regex_replace(text, kBehind, "$1 $2 Gb/s"), kBefore, "$1$2 Gb/s ");
}

// "8x NDR" whatever stands beside, "EDR" alone: elsewhere a figure says more than a name does.
std::string with_rates_of_generations(std::string text) {
  const bool rated = has_rate(text);
  for (const Port& port : generations()) {
    text = std::regex_replace(text, port.counted, "$01" + port.rate);
    if (!rated && !has_rate(text))
      text =
          std::regex_replace(text, port.name, port.rate, std::regex_constants::format_first_only);
  }
  return text;
}

std::string with_rate_of_product(std::string text) {
  for (const Port& port : products()) {
    if (has_rate(text)) return text;
    text = std::regex_replace(text, port.name, port.rate, std::regex_constants::format_first_only);
  }
  return text;
}

// Cards are NICs, and no name of a network stands between a count and its figure.
std::string without_names(const std::string& text) {
  static const std::regex kCard(
      R"(\b(?:connectx|cx|bluefield)-? ?\d(?: ?(?:dx|lx))?(?: (?:NIC|HCA|VPI|adapter)s?\b)?)",
      icase);
  static const std::regex kName(
      R"(\b(?:[SQFEHNX]DR\d*|infiniband|IB|roce(?: ?v\d)?|omni-? ?path|OPA|slingshot(?:-? ?1\d)?|EFA(?: ?v\d)?|ethernet|mellanox|nvidia|cornelis|broadcom|intel)\b ?)",
      icase);
  return std::regex_replace(std::regex_replace(text, kCard, "NIC"), kName, "");
}

// "4 HCA 200Gb/s", "8 NICs of 400 Gb/s", "1 400 Gb/s NIC", "4x NIC, 200 Gb/s"; terabits behind a
// count are of all of them.
std::string with_counts_of_devices_first(const std::string& text) {
  static const std::regex kDevices(
      R"((\d) ?[x*]? ?(?:HCA|NIC|port|rail|adapter|adaptor)s?(?: of| at| with|,|:)? (?=\d{1,3}(?:\.\d+)? ?Gb))",
      icase);
  static const std::regex kFigure(
      R"((^|[^\d.x*]) ?(\d{1,2}) (?=\d+(?:\.\d+)? ?[GT]b(?:/s|ps|it/s|E)? ?(?:HCA|NIC|port|rail|link|adapter|adaptor)))",
      icase);
  return std::regex_replace(std::regex_replace(text, kDevices, "$1x "), kFigure, "$1$2x ");
}

// "200 Gb/s x4".
std::string with_counts_behind_first(const std::string& text) {
  static const std::regex kBehind(
      R"((^|[^\dx*.] ?)(\d+(?:\.\d+)? ?[GT](?:b/s|bps|bit/s|bE)) ?[x*] ?(\d{1,2})(?![\d.]| ?[GT]b))",
      icase);
  return std::regex_replace(text, kBehind, "$1$3x $2");
}

bool has_count_first(const std::string& text) {
  static const std::regex kCounted(R"(\d ?[x*] ?\d)", icase);
  return std::regex_search(text, kCounted);
}

}  // namespace

NetworkSpelling usual_network_spelling(const std::string& stated, bool names_network) {
  const std::string plain = with_plain_crosses(stated);
  std::string text = with_units_of_owned(with_digits(plain));
  const bool in_words = text != with_units_of_owned(plain);
  text = with_units_beside_names(text);
  if (names_network) text = with_whole_units(text);
  const bool rated = has_rate(text);
  text = with_rate_of_product(with_rates_of_generations(text));
  text = without_names(text);
  if (!has_count_first(text)) text = with_counts_behind_first(with_counts_of_devices_first(text));
  return {text, in_words || (!rated && has_rate(text))};
}

}  // namespace shardwright::sim
