// The format of tokens in a file, determined by its name, its header, or the index beside it.
//
//   NAME.bin with NAME.idx   Megatron-LM's indexed dataset, documents in file order
//                            (megatron/core/datasets/indexed_dataset.py)
//   NAME.bin                 llm.c if it begins with its header of 256 int32
//                            (github.com/karpathy/llm.c, dev/data/data_common.py);
//                            otherwise nanoGPT: uint16
//   NAME.u16, NAME.u32       tokens of 16 or 32 bits
//   anything else            text, each byte of which is a token
//
// All little-endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace shardwright::executor {

struct TokenFormat {
  std::size_t first_byte = 0;
  // 1, 2, 4 or 8.
  std::size_t token_bytes = 1;
  std::uint64_t tokens = 0;
  bool is_signed = false;

  bool operator==(const TokenFormat&) const = default;
};

// Throws InputError if the file is incomplete, or its header or index belongs to another format or
// version or contradicts itself.
TokenFormat find_token_format(const std::filesystem::path& file,
                              std::span<const std::byte> content);

}  // namespace shardwright::executor
