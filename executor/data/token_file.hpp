// A corpus as a sequence of tokens in a file (formats: token_format.hpp), read where it is needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

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
  // Tokens `first` to `first` + size; all of them are in the file.
  void read(std::uint64_t first, std::span<std::int32_t> out) const;

 private:
  const std::byte* data_ = nullptr;  // the mapped file
  std::uint64_t bytes_ = 0;
  TokenFormat format_;
};

}  // namespace shardwright::executor
