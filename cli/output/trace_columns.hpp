// The cells that tables on traces share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/output/page.hpp"
#include "core/base/units.hpp"

namespace shardwright::cli {

// Tables on traces have this many rows at most; the largest values stand first.
inline constexpr std::size_t kMostRows = 16;
inline constexpr std::size_t kLongestOpName = 18;

// Milliseconds with as many decimals as the largest of the column needs.
std::string milliseconds_text(Seconds time, Seconds largest);

// The part as percentage; nothing of a whole of 0.
std::string share_text(Seconds part, Seconds whole);

// A printable name of at most `longest` bytes and an ellipsis.
std::string cut_to(const std::string& text, std::size_t longest);

// Nothing where the value is not known.
std::string count_or_empty(const std::optional<std::int64_t>& value);

// Says under a table that it shows the first kMostRows of `rows`, if that is so.
void say_how_many_are_left_out(Page& page, std::size_t rows);

}  // namespace shardwright::cli
