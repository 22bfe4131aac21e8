// Fast reading of timelines and traces in the form in which this project writes them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>

#include "core/base/large_json_file.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright {

// Bytes behind a text that the parser may read.
inline constexpr std::size_t kTextPadding = 64;

// Return the same as read_timeline() and read_perfetto() of a text that write_timeline() or
// write_perfetto() has written. Of any other text they may return nothing, and do so of one that is
// wrong: the strict readers then tell what is. `text` has kTextPadding readable bytes behind its
// end.
std::optional<Timeline> read_usual_timeline(std::string_view text, const ReadingWatch& watch = {});
std::optional<Timeline> read_usual_trace(std::string_view text, const ReadingWatch& watch = {});

// Reads a file of either kind. Returns nothing for other files, larger ones, and those that cannot
// be read. Throws ReadingStopped if `watch` requests a stop.
std::optional<Timeline> read_usual_file(const std::filesystem::path& file,
                                        std::uintmax_t most_bytes, const ReadingWatch& watch = {});

}  // namespace shardwright
