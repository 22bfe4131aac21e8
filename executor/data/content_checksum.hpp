// Checksums of large files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace shardwright::executor {

// Returns a checksum of the whole content up to 64 MiB, and of 1,024 evenly spaced blocks of 64 KiB
// beyond. `start` is the checksum of preceding content.
std::uint64_t content_checksum(std::span<const std::byte> content, std::uint64_t start = 0);

// Returns sixteen hexadecimal digits.
std::string checksum_text(std::uint64_t sum);

}  // namespace shardwright::executor
