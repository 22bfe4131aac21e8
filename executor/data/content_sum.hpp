// A short name for the content of a large file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shardwright::executor {

// Tells contents apart, of one size too: over the whole up to 64 MiB,
// over 1,024 blocks of 64 KiB spread over it evenly beyond. `start` is a sum of what came before.
std::uint64_t content_sum(std::span<const std::byte> content, std::uint64_t start = 0);

// As text: sixteen hexadecimal digits.
std::string sum_text(std::uint64_t sum);

}  // namespace shardwright::executor
