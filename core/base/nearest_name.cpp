#include "core/base/nearest_name.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <utility>
#include <vector>

namespace shardwright {
namespace {

bool same_letter(char a, char b) {
  return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
}

bool begin_alike(std::string_view a, std::string_view b) {
  return !a.empty() && !b.empty() && same_letter(a.front(), b.front());
}

// Levenshtein distance in which two neighbours that change places count once (optimal string
// alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_before, before, row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    two_before = std::exchange(before, row);
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t substituted = before[j] + (same_letter(a[i], b[j]) ? 0 : 1);
      row[j + 1] = std::min({substituted, row[j] + 1, before[j + 1] + 1});
      const bool swapped =
          i > 0 && j > 0 && same_letter(a[i], b[j - 1]) && same_letter(a[i - 1], b[j]);
      if (swapped) row[j + 1] = std::min(row[j + 1], two_before[j - 1] + 1);
    }
  }
  return row.back();
}

// More names are not listed in errors.
constexpr std::size_t kMostListed = 25;

// The shortest of many candidates that holds the name, which has three letters at least:
// "megatron-core" of "megatron"; empty without one.
std::string shortest_with(std::string_view name, std::span<const std::string> candidates) {
  constexpr std::size_t kFewestLetters = 3;
  std::string shortest;
  if (name.size() < kFewestLetters || candidates.size() <= kMostListed) return shortest;
  for (const std::string& candidate : candidates) {
    const bool holds = !std::ranges::search(candidate, name, same_letter).empty();
    if (holds && (shortest.empty() || candidate.size() < shortest.size())) shortest = candidate;
  }
  return shortest;
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, same_letter);
}

std::string nearest_name(std::string_view name, std::span<const std::string> candidates) {
  // Longer input than any name we know is not a slip of the keyboard.
  if (name.empty() || name.size() > 100) return {};
  const std::size_t tolerance = std::max<std::size_t>(1, name.size() / 3);
  std::string best;
  std::size_t best_distance = tolerance + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    // A slip of the keyboard seldom hits the first letter.
    const bool likelier = distance == best_distance && distance <= tolerance &&
                          !begin_alike(best, name) && begin_alike(candidate, name);
    if (distance < best_distance || likelier) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best.empty() ? shortest_with(name, candidates) : best;
}

Expected one_of(std::string_view name, std::span<const std::string> candidates) {
  return {candidates.size() > kMostListed ? fmt::format("one of {} known names", candidates.size())
                                          : fmt::format("one of {}", fmt::join(candidates, ", ")),
          nearest_name(name, candidates)};
}

Expected one_of(std::string_view name, std::span<const char* const> candidates) {
  return one_of(name, std::vector<std::string>(candidates.begin(), candidates.end()));
}

std::string choice_problem(std::string_view word, std::span<const std::string> candidates) {
  if (std::ranges::find(candidates, word) != candidates.end()) return {};
  return fmt::format("found \"{}\"; expected {}", word, to_string(one_of(word, candidates)));
}

std::size_t index_of_name(const std::string& name, std::span<const char* const> candidates,
                          const std::string& option) {
  const auto found = std::ranges::find(candidates, name);
  if (found == candidates.end())
    throw InputError(option, {{"", fmt::format("\"{}\"", name), one_of(name, candidates)}});
  return static_cast<std::size_t>(found - candidates.begin());
}

}  // namespace shardwright
