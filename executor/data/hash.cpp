#include "executor/data/hash.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardwright::executor {

std::uint64_t content_checksum(std::span<const std::byte> content, std::uint64_t start) {
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

std::string checksum_text(std::uint64_t sum) {
  return fmt::format("{:016x}", sum);
}

}  // namespace shardwright::executor
