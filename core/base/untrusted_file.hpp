// Checks and bounded reads of files from other programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <string>

namespace shardwright {

enum class LineRead : std::uint8_t { Whole, End, TooLong };

// Reads the next line without its line feed; End behind the last one. Of a line of more than
// `longest` bytes it keeps `longest` + 1 and reads no further, so that it is never held in memory.
LineRead read_bounded_line(std::istream& stream, std::size_t longest, std::string& line);

// False where the last line of the file was cut off before its line feed. True of an empty file,
// and of one that cannot be read.
bool ends_with_line_feed(const std::filesystem::path& file);

// The kind of a file that is not regular ("a folder", "a named pipe", "a device", "a socket"),
// which must be known before it is opened: a pipe would wait for a writer. Empty for a regular
// file, and where nothing can be seen: opening it says why.
std::string kind_unless_regular(const std::filesystem::path& file);

}  // namespace shardwright
