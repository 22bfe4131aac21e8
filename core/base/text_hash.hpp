// A short name for a text.
#pragma once

#include <cstdint>
#include <string_view>

namespace shardwright {

inline constexpr std::uint64_t kTextHashStart = 0xcbf29ce484222325U;

// FNV-1a of 64 bits (http://www.isthe.com/chongo/tech/comp/fnv/): the same on every machine, and no
// secret. `start` tells texts of different kinds apart.
constexpr std::uint64_t text_hash(std::string_view text, std::uint64_t start = kTextHashStart) {
  std::uint64_t hash = start;
  for (const char c : text)
    hash = (hash ^ static_cast<unsigned char>(c)) * std::uint64_t{0x100000001b3U};
  return hash;
}

}  // namespace shardwright
