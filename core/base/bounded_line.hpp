// Lines of files that nobody vouches for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <istream>
#include <string>

namespace shardwright {

enum class LineRead : std::uint8_t { Whole, End, TooLong };

// Reads the next line without its line feed; End behind the last one. Of a line of more than
// `longest` bytes it keeps `longest` + 1 and reads no further, so that it is never held in memory.
LineRead read_bounded_line(std::istream& stream, std::size_t longest, std::string& line);

}  // namespace shardwright
