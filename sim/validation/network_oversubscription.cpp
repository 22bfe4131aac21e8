#include "sim/validation/network_oversubscription.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <regex>

namespace shardwright::sim {
namespace {

using std::regex_constants::icase;

// No network for training is as thin.
constexpr double kMostRatio = 64.0;

double number_in(const std::ssub_match& text) {
  return text.matched ? std::strtod(text.str().c_str(), nullptr) : 1.0;
}

// Sources write "2:1" and "1:2" for the same.
double ratio_of(const std::smatch& match) {
  const double a = number_in(match[1]), b = number_in(match[2]);
  return std::min(a, b) > 0.0 ? std::max(a, b) / std::min(a, b) : 0.0;
}

}  // namespace

Oversubscription read_oversubscription(const std::string& text) {
  static const std::array kRatios = {
      std::regex(
          R"((\d+(?:\.\d+)?) ?(?::|-?to-?| to ) ?(\d+(?:\.\d+)?)[ -](?:[a-z-]+ ){0,2}?(?:over-?subscri\w*|blocking|taper\w*))",
          icase),
      std::regex(
          R"((?:over-?subscri\w*|\bblocking|taper\w*)(?: (?:factor|ratio|rate))?(?: of| by)?[ :=(]{0,3}(\d+(?:\.\d+)?) ?(?::|-?to-?| to ) ?(\d+(?:\.\d+)?))",
          icase),
      std::regex(R"((\d+(?:\.\d+)?)() ?[x-]? ?(?:fold )?over-?subscri\w*)", icase),
      std::regex(
          R"(over-?subscri\w*(?: (?:factor|ratio|rate))?(?: of| by)?[ :=(]{0,3}(\d+(?:\.\d+)?)()(?: ?x\b(?! ?\d)|(?![\d.])(?! ?(?:[GTx*:]|NIC|HCA|port))))",
          icase),
  };
  static const std::regex kNone(
      R"(\bnon-? ?blocking\b|\bfull[- ]bisection\b|\b(?:no|without|not) over-?subscri\w*)", icase);
  static const std::regex kWords(R"([^,;(]*(?:over-?subscri|\bblocking\b|\btaper)[^,;)]*)", icase);
  Oversubscription found;
  found.rest = text;
  std::smatch match;
  for (const std::regex& ratio : kRatios) {
    if (!std::regex_search(text, match, ratio)) continue;
    const double value = match[2].length() == 0 ? number_in(match[1]) : ratio_of(match);
    found.rest = match.prefix().str() + ' ' + match.suffix().str();
    if (value >= 1.0 && value <= kMostRatio)
      found.ratio = value;
    else
      found.not_taken = match.str();
    return found;
  }
  if (std::regex_search(text, kNone)) {
    found.ratio = 1.0;
  } else if (std::regex_search(text, match, kWords)) {
    const std::string words = match.str();
    found.not_taken = words.substr(std::min(words.find_first_not_of(' '), words.size()));
  }
  return found;
}

}  // namespace shardwright::sim
