// Text of unknown origin made safe for a terminal, and for HTML.
#pragma once

#include <string>
#include <string_view>

namespace shardwright {

// Replaces every byte that is no printable UTF-8 by an escape: "\n", "\t", "\r", or as "\x1b".
// These are control characters, which terminals obey, the marks that reverse the direction of
// writing, and bytes that are no UTF-8 at all. Printable text stays as it is, so that a second call
// changes nothing.
std::string printable(std::string_view text);

// Replaces the characters that HTML gives a meaning to.
std::string html_escaped(std::string_view text);

}  // namespace shardwright
