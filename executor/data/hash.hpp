// Hashes: random numbers as a function of a key and a counter, independent of the order of drawing;
// checksums of large files.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/split_mix.hpp"
#include "core/base/text_hash.hpp"

namespace shardwright::executor {

constexpr std::uint64_t random_bits(std::uint64_t key, std::uint64_t counter) {
  return split_mix(split_mix(key) ^ split_mix(counter + 0x632be59bd9b4e019U));
}

// Returns the key of a text and a seed.
constexpr std::uint64_t key_of(std::uint64_t seed, std::string_view text) {
  return text_hash(text, kTextHashStart ^ split_mix(seed));
}

// Returns a number in (0, 1].
constexpr double random_unit(std::uint64_t key, std::uint64_t counter) {
  return static_cast<double>((random_bits(key, counter) >> 11U) + 1) * 0x1p-53;
}

// Returns a checksum of the whole content up to 64 MiB, and of 1,024 evenly spaced blocks of 64 KiB
// beyond. `start` is the checksum of preceding content.
inline std::uint64_t content_checksum(std::span<const std::byte> content, std::uint64_t start = 0) {
  constexpr std::uint64_t kBlock = 64 << 10, kBlocks = 1024;
  const std::uint64_t bytes = content.size();
  const std::uint64_t blocks = std::min((bytes + kBlock - 1) / kBlock, kBlocks);
  std::uint64_t sum = start + bytes;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    // Contents of at most kBlocks blocks are read completely; their last block may be shorter.
    const bool all = bytes <= kBlock * kBlocks;
    const std::uint64_t first = all ? i * kBlock : i * (bytes - kBlock) / (kBlocks - 1);
    const auto size = static_cast<std::size_t>(std::min(kBlock, bytes - first));
    sum = key_of(sum, {reinterpret_cast<const char*>(content.data() + first), size});
  }
  return sum;
}

// Returns sixteen hexadecimal digits.
inline std::string checksum_text(std::uint64_t sum) {
  return fmt::format("{:016x}", sum);
}

}  // namespace shardwright::executor
