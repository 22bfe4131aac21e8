// A corpus as a sequence of tokens in a file (formats: token_format.hpp), read where it is needed.
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
  // Throws InputError if the file cannot be read or is not whole.
  explicit TokenFile(const std::filesystem::path& file);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  std::uint64_t tokens() const { return format_.tokens; }
  std::size_t token_bytes() const { return format_.token_bytes; }
  // Whatever stands in the file: its tokens are too narrow.
  bool cannot_exceed(std::int64_t vocabulary) const;
  // Tells corpora apart: content_sum of the file, as text.
  std::string sum() const;
  const std::filesystem::path& path() const { return path_; }
  // Tokens `first` to `first` + size; all of them are in the file. What no vocabulary has, because
  // it is negative or beyond 2^31 - 1, reads as 2^31 - 1.
  void read(std::uint64_t first, std::span<std::int32_t> out) const;
  // The token at this position, counted from 0, as it stands in the file.
  std::int64_t token(std::uint64_t position) const;

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;  // the mapped file
  std::uint64_t bytes_ = 0;
  TokenFormat format_;
};

}  // namespace shardwright::executor
