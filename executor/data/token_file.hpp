// A corpus: a memory-mapped file of tokens (formats: token_format.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "executor/data/token_format.hpp"

namespace shardwright::executor {

class TokenFile {
 public:
  // Throws InputError if the file cannot be read or is incomplete.
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
