// JSON that is too large for memory, in pieces: the members of the outermost object, and the
// elements of one array among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "calibration/traces/inflated_file.hpp"

namespace shardwright::calibration {

// Bytes behind each piece that may be read (not used), as fast parsers want it.
inline constexpr std::size_t kPiecePadding = 64;

struct JsonPieces {
  // The array whose elements come one by one; the same goes for an array that is outermost itself.
  std::string_view array;
  // Receives the text of each element and its index. The text is valid during the call.
  std::function<void(std::string_view text, std::size_t index)> element;
  // Receives each other member.
  std::function<void(std::string_view key, std::string_view text)> member;
};

// Returns false if the array is not there. Only the borders of the pieces are checked: brackets
// that match outside of strings, commas and colons between values. Throws InputError, with the byte
// at which it stopped, where that fails, where the text breaks off, or where a piece has more than
// 64 MiB. `source` names the text.
bool read_json_pieces(const ByteSource& bytes, const std::string& source, const JsonPieces& pieces);

}  // namespace shardwright::calibration
