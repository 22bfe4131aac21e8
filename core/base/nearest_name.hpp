// "Did you mean": the valid name that lies nearest to a misspelt one.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "core/base/enum_names.hpp"
#include "core/base/error.hpp"

namespace shardwright {

// Equal but for the case of letters.
bool same_name(std::string_view a, std::string_view b);

// The candidate with the smallest edit distance to `name` (case ignored), or an empty string if
// none is within a third of the length of `name`.
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

// "one of a, b, c", with the one that is nearest to `name`.
Expected one_of(std::string_view name, std::span<const std::string> candidates);
Expected one_of(std::string_view name, std::span<const char* const> candidates);

// Returns nothing if `word` is one of the candidates, else the problem with it: "found "Auto";
// expected one of a, b, c (did you mean "auto"?)".
std::string choice_problem(std::string_view word, std::span<const std::string> candidates);

// Returns the index of the name. Throws InputError about `option` if it is none of the candidates.
std::size_t index_of_name(const std::string& name, std::span<const char* const> candidates,
                          const std::string& option);

// Returns the enumerator of this name. Throws InputError about `option` if there is none.
template <NamedEnum E>
E parse_name(const std::string& name, const std::string& option) {
  return static_cast<E>(index_of_name(name, names_of<E>(), option));
}

}  // namespace shardwright
