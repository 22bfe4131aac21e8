// Whether a text says a thing, or that it is not so.
//
// Sources write "DeepEP", but also "no DeepEP", "DeepEP was not used" and "DeepEP=False". A phrase
// counts where a word begins with it ("unbalanced" is no "balanced") and is denied by its own
// clause alone:
// - by one of the three words before it: "no", "not", "non-", "without", "disabled", "instead of",
// …;
// - by what stands behind it, up to three words away: "off", "false", "=0", "disabled",
// "not used", ….
// "Whether DeepEP was used", "DeepEP unknown" and "DeepEP is not stated" say neither.
// A clause ends at a full stop, a comma, another sign of that kind, or at "and", "but", "with".
#pragma once

#include <cstddef>
#include <initializer_list>
#include <regex>
#include <string>
#include <string_view>

namespace shardwright::sim {

// Characters of notes that are searched by patterns: none are longer, and the time grows by their
// square.
inline constexpr std::size_t kMostRead = 16384;
// Of the name of an accelerator, a network, a stack or a format.
inline constexpr std::size_t kMostOfName = 1024;

// Any of the phrases stands in the text, whatever the case, and is not denied there.
bool affirms_any(std::string_view text, std::initializer_list<std::string_view> phrases);

// Some of the phrases stand in the text, and wherever they do, they are denied.
bool denies_any(std::string_view text, std::initializer_list<std::string_view> phrases);

// The first match of the pattern that is not denied, from its first letter or digit on; empty
// without one in the first 16,384 characters.
std::string affirmed_match(const std::string& text, const std::regex& pattern);

}  // namespace shardwright::sim
