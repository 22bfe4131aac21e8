#include "sim/validation/negation.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "core/base/letters_and_digits.hpp"
#include "sim/validation/row_notes.hpp"

namespace shardwright::sim {
namespace {

using namespace std::string_view_literals;

using Words = std::vector<std::string_view>;

constexpr std::size_t kWordsBefore = 3;  // that a denial reaches over
constexpr std::size_t kWordsBehind = 3;

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "isn't", "cannot".
bool is_not(std::string_view word) {
  return word == "not" || word == "never" || word == "cannot" || word.ends_with("n't");
}

bool denies_what_follows(std::string_view word) {
  constexpr std::array kDenials = {"no"sv,      "non"sv,      "without"sv,   "w/o"sv,
                                   "neither"sv, "nor"sv,      "disable"sv,   "disables"sv,
                                   "lacks"sv,   "disabled"sv, "disabling"sv, "instead"sv};
  return is_not(word) || is_one_of(word, kDenials);
}

bool denies_what_precedes(std::string_view word) {
  constexpr std::array kDenials = {"off"sv,    "false"sv,       "disabled"sv,
                                   "unused"sv, "deactivated"sv, "absent"sv};
  return is_one_of(word, kDenials);
}

// "Does not say whether …", "unknown".
bool leaves_open(std::string_view word) {
  constexpr std::array kWords = {"whether"sv, "unknown"sv, "unclear"sv, "unstated"sv,
                                 "unspecified"sv};
  return is_one_of(word, kWords);
}

// What a source is silent about is "not …".
bool is_statement(std::string_view word) {
  constexpr std::array kWords = {"stated"sv,    "said"sv,  "mentioned"sv,  "given"sv,
                                 "specified"sv, "known"sv, "documented"sv, "reported"sv};
  return is_one_of(word, kWords);
}

// What a technique that is "not …" lacks; one that is "not stated" may well be there.
bool is_use(std::string_view word) {
  constexpr std::array kUses = {"used"sv,      "enabled"sv, "on"sv,        "active"sv,
                                "activated"sv, "applied"sv, "supported"sv, "available"sv,
                                "set"sv,       "exist"sv,   "employed"sv};
  return is_one_of(word, kUses);
}

bool begins_clause(std::string_view word) {
  constexpr std::array kWords = {"and"sv, "but"sv, "with"sv, "while"sv, "only"sv, "though"sv};
  return is_one_of(word, kWords);
}

// Of a word, also of "w/o" and "isn't".
bool is_in_word(char c) {
  return is_letter_or_digit(c) || c == '/' || c == '\'';
}

// Signs between the letters of a name ("torch.compile") end nothing.
bool ends_clause(std::string_view text, std::size_t place) {
  constexpr std::string_view kAlways = ",;()[]+\n";
  if (kAlways.find(text[place]) != std::string_view::npos) return true;
  const bool stop = text[place] == '.' || text[place] == ':';
  return stop && (place + 1 == text.size() || !is_letter_or_digit(text[place + 1]));
}

// The nearest first.
Words words_before(std::string_view text, std::size_t place) {
  Words words;
  while (words.size() < kWordsBefore && place > 0 && !ends_clause(text, place - 1)) {
    const std::size_t end = place;
    while (place > 0 && is_in_word(text[place - 1])) --place;
    if (place == end) {
      --place;
      continue;
    }
    words.push_back(text.substr(place, end - place));
    if (begins_clause(words.back())) break;
  }
  return words;
}

// From the end of a phrase on, one more than a denial reaches over and the word that it denies.
Words words_behind(std::string_view text, std::size_t place) {
  Words words;
  while (words.size() < kWordsBehind + 3 && place < text.size() && !ends_clause(text, place)) {
    const std::size_t begin = place;
    // "all-to-all" is one word here.
    while (place < text.size() &&
           (is_in_word(text[place]) || (place > begin && text[place] == '-')))
      ++place;
    if (place == begin) {
      ++place;
      continue;
    }
    words.push_back(text.substr(begin, place - begin));
    if (begins_clause(words.back())) break;
  }
  return words;
}

bool is_denied_at(const Words& words, std::size_t i) {
  if (denies_what_precedes(words[i])) return true;
  const bool last = i + 1 == words.size();
  if (!is_not(words[i])) return i == 0 && last && (words[i] == "no" || words[i] == "none");
  const auto rest = words.begin() + static_cast<std::ptrdiff_t>(i) + 1;
  return last || std::any_of(rest, std::min(rest + 2, words.end()), is_use);
}

// What stands behind a phrase that ends at `place`, as far as it may speak of it. In "DeepEP: off"
// and "DeepEP (off)" it is the first words of the next clause.
struct Behind {
  Words words;
  std::size_t reach;  // of them for a denial
};

Behind behind(std::string_view text, std::size_t place) {
  while (place < text.size() && is_in_word(text[place])) ++place;  // "interleav|ing"
  std::size_t sign = place;
  while (sign < text.size() && text[sign] == ' ') ++sign;
  const bool opens = sign < text.size() && (text[sign] == ':' || text[sign] == '(');
  Words words = words_behind(text, opens ? sign + 1 : place);
  const std::size_t reach = std::min(opens ? 1 : kWordsBehind + 1, words.size());
  return {std::move(words), reach};
}

bool is_denied(const Behind& behind) {
  for (std::size_t i = 0; i < behind.reach; ++i)
    if (is_denied_at(behind.words, i)) return true;
  return false;
}

bool is_left_open(const Behind& behind) {
  const Words& words = behind.words;
  for (std::size_t i = 0; i < behind.reach; ++i) {
    if (leaves_open(words[i])) return true;
    if (is_not(words[i]) && i + 1 < words.size() && is_statement(words[i + 1])) return true;
  }
  return false;
}

// "compile=0".
bool is_set_to_zero(std::string_view text, std::size_t place) {
  while (place < text.size() && is_in_word(text[place])) ++place;
  const std::string_view rest = text.substr(place);
  const bool zero = rest.starts_with("=0") || rest.starts_with(": 0");
  const std::size_t end = rest.starts_with("=0") ? 2 : 3;
  return zero && (rest.size() <= end || (!is_letter_or_digit(rest[end]) && rest[end] != '.'));
}

struct Mentions {
  bool affirmed = false, denied = false;
};

Mentions mentions_of(std::string_view text, std::initializer_list<std::string_view> phrases) {
  const std::string lower = lower_case(text);
  Mentions mentions;
  for (const std::string_view phrase : phrases) {
    const std::string wanted = lower_case(phrase);
    for (auto place = lower.find(wanted); place != std::string::npos;
         place = lower.find(wanted, place + 1)) {
      if (place > 0 && is_letter_or_digit(lower[place - 1])) continue;
      const std::size_t end = place + wanted.size();
      const Words before = words_before(lower, place);
      const Behind after = behind(lower, end);
      if (std::any_of(before.begin(), before.end(), leaves_open) || is_left_open(after)) continue;
      const bool denied = std::any_of(before.begin(), before.end(), denies_what_follows) ||
                          is_denied(after) || is_set_to_zero(lower, end);
      (denied ? mentions.denied : mentions.affirmed) = true;
    }
  }
  return mentions;
}

}  // namespace

bool affirms_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  return mentions_of(text, phrases).affirmed;
}

bool denies_any(std::string_view text, std::initializer_list<std::string_view> phrases) {
  const Mentions mentions = mentions_of(text, phrases);
  return mentions.denied && !mentions.affirmed;
}

std::string affirmed_match(const std::string& text, const std::regex& pattern) {
  const std::string read = text.substr(0, kMostRead);
  for (std::sregex_iterator match(read.begin(), read.end(), pattern), end; match != end; ++match) {
    std::string found = match->str();
    found.erase(found.begin(), std::find_if(found.begin(), found.end(), is_letter_or_digit));
    if (affirms_any(read, {found})) return found;
  }
  return "";
}

}  // namespace shardwright::sim
