#include "executor/data/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, std::string found,
                         std::string expected) {
  throw InputError(file.string(), {{"", std::move(found), std::move(expected)}});
}

std::size_t token_size(const std::filesystem::path& file) {
  if (file.extension() == ".u16") return 2;
  if (file.extension() == ".u32") return 4;
  return 1;
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& file) : token_bytes_(token_size(file)) {
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) refuse(file, std::strerror(errno), "a readable file of tokens");
  struct stat status = {};
  const bool readable = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
  bytes_ = readable ? static_cast<std::uint64_t>(status.st_size) : 0;
  void* memory =
      bytes_ == 0 ? MAP_FAILED : ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor, 0);
  ::close(descriptor);
  if (memory == MAP_FAILED) refuse(file, "no data", "a file that is not empty");
  data_ = static_cast<const std::byte*>(memory);
  if (bytes_ % token_bytes_ == 0) return;
  ::munmap(memory, bytes_);
  refuse(file, fmt::format("{} bytes", bytes_), fmt::format("a multiple of {}", token_bytes_));
}

TokenFile::~TokenFile() {
  ::munmap(const_cast<std::byte*>(data_), bytes_);
}

void TokenFile::read(std::uint64_t first, std::span<std::int32_t> out) const {
  SHARDWRIGHT_CHECK(first + out.size() <= tokens(), "tokens beyond the end of the file");
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t token = 0;
    std::memcpy(&token, data_ + (first + i) * token_bytes_, token_bytes_);
    out[i] = static_cast<std::int32_t>(token);
  }
}

}  // namespace shardwright::executor
