// Text of unknown origin made safe for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace shardwright {

// The text with every byte that is no printable UTF-8 as an escape: "\n", "\t", "\r", else "\x1b".
// Those are control characters (terminals obey them), the marks that reverse the direction of
// writing, and bytes that are no UTF-8 at all. What is printable comes out as it is, so that doing
// it twice changes nothing.
std::string printable(std::string_view text);

}  // namespace shardwright
