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

#include "core/base/error.hpp"
#include "executor/data/counter_random.hpp"

namespace shardwright::executor {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, std::string found,
                         std::string expected) {
  throw InputError(file.string(), {{"", std::move(found), std::move(expected)}});
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& file) : path_(file) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) refuse(file, std::strerror(errno), "a readable file of tokens");
  struct stat status = {};
  if (::fstat(descriptor, &status) == 0 && S_ISDIR(status.st_mode)) {
    ::close(descriptor);
    refuse(file, "a folder", "a file of tokens");
  }
  const bool readable = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  bytes_ = readable ? static_cast<std::uint64_t>(status.st_size) : 0;
  void* memory =
      bytes_ == 0 ? MAP_FAILED : ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) refuse(file, "no data", "a file that is not empty");
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

std::string TokenFile::sum() const {
  constexpr std::uint64_t kBlock = 64 << 10, kBlocks = 1024;
  const std::uint64_t blocks = std::min((bytes_ + kBlock - 1) / kBlock, kBlocks);
  std::uint64_t sum = bytes_;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    // Of a file of few blocks each, the last of them cut off.
    const bool all = bytes_ <= kBlock * kBlocks;
    const std::uint64_t first = all ? i * kBlock : i * (bytes_ - kBlock) / (kBlocks - 1);
    const auto size = static_cast<std::size_t>(std::min(kBlock, bytes_ - first));
    sum = key_of(sum, {reinterpret_cast<const char*>(data_ + first), size});
  }
  return fmt::format("{:016x}", sum);
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
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::int64_t found = token(first + i);
    out[i] = static_cast<std::int32_t>(found < 0 ? kMost : std::min(found, kMost));
  }
}

}  // namespace shardwright::executor
