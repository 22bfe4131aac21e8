// A corpus as a sequence of tokens in a file, read where it is needed.
//
// A file whose name ends in ".u16" or ".u32" holds tokens of that many bits, little-endian; any
// other file is text, each byte of which is a token (a vocabulary of 256).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace shardwright::executor {

class TokenFile {
 public:
  // Throws InputError if the file cannot be read or ends within a token.
  explicit TokenFile(const std::filesystem::path& file);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::uint64_t tokens() const { return bytes_ / token_bytes_; }
  // Tokens `first` to `first` + size; all of them are in the file.
  void read(std::uint64_t first, std::span<std::int32_t> out) const;

 private:
  const std::byte* data_ = nullptr;  // the mapped file
  std::uint64_t bytes_ = 0;
  std::size_t token_bytes_ = 1;
};

}  // namespace shardwright::executor
