#include "sim/validation/stack_name.hpp"

#include <algorithm>
#include <array>
#include <regex>
#include <string_view>
#include <vector>

#include "core/base/letters_and_digits.hpp"
#include "core/spec/profile_library.hpp"
#include "sim/validation/framework_family.hpp"
#include "sim/validation/negation.hpp"
#include "sim/validation/row_notes.hpp"
#include "sim/validation/row_words.hpp"

namespace shardwright::sim {
namespace {

using Words = std::vector<std::string>;

// "0.5.1", "v2", "24.07", "r0.8.0"; a year names a generation of the software, not a release.
bool is_version(const std::string& word) {
  const bool marked = !word.empty() && std::string_view("vVrR").find(word[0]) != std::string::npos;
  const std::string number = marked ? word.substr(1) : word;
  if (number.empty() || !is_digit(number.front())) return false;
  constexpr std::size_t kYearDigits = 4;
  return number.size() != kYearDigits || number.find('.') != std::string::npos;
}

// "NeMo 24.07" without its release: "NeMo".
std::string without_version(const std::string& spelling) {
  const auto blank = spelling.find_last_of(" -_");
  if (blank == std::string::npos || !is_version(spelling.substr(blank + 1))) return spelling;
  return spelling.substr(0, blank);
}

std::string profile_named(const std::string& spelling) {
  std::string name = find_stack(spelling);
  return is_generic(name) ? "" : name;
}

// Of letters, digits and the stops between digits.
Words words_of(const std::string& text) {
  Words words(1);
  for (const char c : text) {
    if (is_letter_or_digit(c) || (c == '.' && !words.back().empty()))
      words.back() += c;
    else if (!words.back().empty())
      words.emplace_back();
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string joined(Words::const_iterator first, Words::const_iterator last) {
  std::string text;
  for (; first != last; ++first) text += (text.empty() ? "" : " ") + *first;
  return text;
}

// Parts of PyTorch that its trainers are made of, and whose name comes with theirs.
bool is_part_of_pytorch(const std::string& word) {
  constexpr std::array<std::string_view, 6> kParts = {"pytorch", "torch",         "torchao",
                                                      "fsdp",    "torch.compile", "fsdp2"};
  return std::find(kParts.begin(), kParts.end(), lower_case(word)) != kParts.end();
}

// AMD's launcher of Megatron and torchtitan, whose name is Megatron where no other stands beside.
bool is_launcher(const std::string& word) {
  return lower_case(word) == "primus";
}

// Whether words beside a profile's name leave it what it is.
bool fit_beside(const Words& rest, const std::string& profile) {
  const bool pytorch = load_stack(profile).family == "pytorch";
  Words others;
  for (const std::string& word : rest) {
    const bool same = profile_named(word) == profile;
    if (!same && !is_launcher(word) && !(pytorch && is_part_of_pytorch(word)))
      others.push_back(word);
  }
  return !framework_family(joined(others.begin(), others.end()));
}

bool is_of_its_authors(const std::string& word) {
  const std::string lower = lower_case(word);
  return lower == "our" || lower == "own" || lower == "custom" || lower == "internal";
}

// The longest run of words that names a profile.
std::string profile_in_words(const std::string& spelling) {
  const Words words = words_of(spelling);
  if (std::any_of(words.begin(), words.end(), is_of_its_authors)) return "";
  for (std::size_t length = words.size(); length > 0; --length) {
    for (std::size_t first = 0; first + length <= words.size(); ++first) {
      const auto begin = words.begin() + static_cast<std::ptrdiff_t>(first);
      const auto end = begin + static_cast<std::ptrdiff_t>(length);
      std::string profile = profile_named(joined(begin, end));
      if (profile.empty()) continue;
      Words rest(words.begin(), begin);
      rest.insert(rest.end(), end, words.end());
      if (fit_beside(rest, profile)) return profile;
    }
  }
  return "";
}

bool names_framework(const std::string& text) {
  return framework_family(text) || !own_profile(text).empty();
}

// Without the matches whose first group names a framework.
std::string without_frameworks(const std::regex& pattern, const std::string& text) {
  std::string rest = text, kept;
  std::smatch match;
  while (std::regex_search(rest, match, pattern)) {
    kept += match.prefix().str() + (names_framework(match[1]) ? " " : match.str());
    rest = match.suffix().str();
  }
  return kept + rest;
}

}  // namespace

std::string without_denied_frameworks(const std::string& stack) {
  static const std::array kDenials = {
      std::regex(
          R"([(,;]?\s*\b(?:not|no|non|without|w/o|instead of|rather than|unlike|replac(?:es|ing)|vs\.?|versus)[\s-]+(?:(?:with|by|using|on|the|from)\s+)?([^(),;]{1,80}?)(?=\s*(?:[),;]|\bbut\b|$))\)?)",
          std::regex::icase),
      std::regex(
          R"((?:[(,;]|\bwith\b)\s*([^(),;]{1,80}?)\s+(?:(?:is|was|are|were)\s+)?(?:not (?:used|enabled)|unused|disabled)\b\)?)",
          std::regex::icase)};
  std::string kept = stack.substr(0, kMostOfName);
  for (const std::regex& denial : kDenials) kept = without_frameworks(denial, kept);
  return names_framework(kept) ? kept : stack;
}

bool is_generic(const std::string& profile) {
  return profile.starts_with("generic");
}

std::string own_profile(const std::string& spelling) {
  for (const std::string& text : {spelling, without_version(spelling)})
    if (std::string name = profile_named(text); !name.empty()) return name;
  return profile_in_words(spelling);
}

}  // namespace shardwright::sim
