// A corpus: a memory-mapped file of tokens. Their format follows from its name, its header, or the
// index beside it.
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
#include <string>

namespace shardwright::executor {

struct TokenFormat {
  std::size_t first_byte = 0;
  // 1, 2, 4 or 8.
  std::size_t token_bytes = 1;
  std::uint64_t tokens = 0;
  bool is_signed = false;
};

// Returns the format of the tokens in the file of `bytes` bytes that the index describes. Throws
// InputError if the index is incomplete, contradicts itself or the file size, or has tokens that
// are no integers.
TokenFormat read_megatron_index(const std::filesystem::path& index, std::uint64_t bytes);

class TokenFile {
 public:
  // Throws InputError if the file cannot be read or is incomplete, or its header or index belongs
  // to another format or version or contradicts itself.
  explicit TokenFile(const std::filesystem::path& file);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::uint64_t tokens() const { return format_.tokens; }
  std::size_t token_bytes() const { return format_.token_bytes; }
  // True if no value of the token format lies outside of the vocabulary.
  bool cannot_exceed(std::int64_t vocabulary) const;
  // Returns the content_checksum of the file as text.
  std::string checksum() const;
  const std::filesystem::path& path() const { return path_; }
  // Reads tokens from `first` on, all of which must exist. Values below 0 or above 2^31 - 1, which
  // no vocabulary has, read as 2^31 - 1.
  void read(std::uint64_t first, std::span<std::int32_t> out) const;
  // Returns the unconverted token at a position.
  std::int64_t token(std::uint64_t position) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
  TokenFormat format_;
};

}  // namespace shardwright::executor
