#include "executor/data/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string>

#include "core/base/bounded_line.hpp"
#include "core/base/error.hpp"
#include "executor/data/content_checksum.hpp"

namespace shardwright::executor {
namespace {

[[noreturn]] void refuse_tokens(const std::filesystem::path& file, std::string found,
                                std::string expected) {
  throw InputError(file.string(), {{"", std::move(found), std::move(expected)}});
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& file) : path_(file) {
  if (const std::string kind = kind_unless_regular(file); !kind.empty())
    refuse_tokens(file, kind, "a file of tokens");
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) refuse_tokens(file, std::strerror(errno), "a readable file of tokens");
  struct stat status = {};
  const bool readable = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  bytes_ = readable ? static_cast<std::uint64_t>(status.st_size) : 0;
  void* memory =
      bytes_ == 0 ? MAP_FAILED : ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) refuse_tokens(file, "no data", "a file that is not empty");
  data_ = static_cast<const std::byte*>(memory);
  try {
    format_ = find_token_format(file, {data_, bytes_});
  } catch (...) {
    ::munmap(memory, bytes_);
    throw;
  }
}

TokenFile::~TokenFile() {
  ::munmap(const_cast<std::byte*>(data_), bytes_);
}

bool TokenFile::cannot_exceed(std::int64_t vocabulary) const {
  // In bytes; the values of wider tokens exceed every vocabulary.
  constexpr std::size_t kWidest = 2;
  return !format_.is_signed && format_.token_bytes <= kWidest &&
         vocabulary >= std::int64_t{1} << (8 * format_.token_bytes);
}

std::string TokenFile::checksum() const {
  return checksum_text(content_checksum({data_, bytes_}));
}

std::int64_t TokenFile::token(std::uint64_t position) const {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data_ + format_.first_byte + position * format_.token_bytes,
              format_.token_bytes);
  if (!format_.is_signed) return static_cast<std::int64_t>(bits);
  const std::size_t unused = 8 * (sizeof bits - format_.token_bytes);
  return static_cast<std::int64_t>(bits << unused) >> unused;
}

void TokenFile::read(std::uint64_t first, std::span<std::int32_t> out) const {
  SHARDWRIGHT_CHECK(first + out.size() <= tokens(), "tokens beyond the end of the file");
  constexpr std::int64_t kMax = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t found = token(first + i);
    out[i] = static_cast<std::int32_t>(found < 0 ? kMax : std::min(found, kMax));
  }
}

}  // namespace shardwright::executor
