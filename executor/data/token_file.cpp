#include "executor/data/token_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <string_view>

#include "core/base/error.hpp"
#include "core/base/untrusted_file.hpp"
#include "executor/data/hash.hpp"

namespace shardwright::executor {
namespace {

[[noreturn]] void refuse_tokens(const std::filesystem::path& file, std::string found,
                                std::string expected) {
  throw InputError(file.string(), {{"", std::move(found), std::move(expected)}});
}

constexpr std::size_t kLlmcHeaderBytes = 256 * sizeof(std::int32_t);

struct LlmcKind {
  std::int32_t magic, version;
  std::size_t token_bytes;
};
// The formats for the tokens of GPT-2 and of Llama 3.
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};

TokenFormat raw_tokens(const std::filesystem::path& file, std::size_t bytes,
                       std::size_t token_bytes) {
  if (bytes % token_bytes != 0)
    refuse_tokens(file, fmt::format("{} bytes", bytes),
                  fmt::format("a multiple of {}", token_bytes));
  return {0, token_bytes, bytes / token_bytes};
}

// Returns the kind of llm.c's format that the first int32 denotes, or null.
const LlmcKind* llmc_kind(std::span<const std::byte> content) {
  std::int32_t magic = 0;
  if (content.size() < sizeof magic) return nullptr;
  std::memcpy(&magic, content.data(), sizeof magic);
  for (const LlmcKind& kind : kLlmcKinds)
    if (kind.magic == magic) return &kind;
  return nullptr;
}

TokenFormat llmc_format(const std::filesystem::path& file, const LlmcKind& kind,
                        std::span<const std::byte> content) {
  if (content.size() < kLlmcHeaderBytes) {
    refuse_tokens(file, fmt::format("{} bytes", content.size()),
                  fmt::format("a header of llm.c, {} bytes", kLlmcHeaderBytes));
  }
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), content.data(), sizeof header);
  const auto [magic, version, tokens] = header;
  if (version != kind.version) {
    refuse_tokens(file, fmt::format("version {} of llm.c's format {}", version, magic),
                  fmt::format("version {}", kind.version));
  }
  const std::size_t bytes = content.size() - kLlmcHeaderBytes;
  if (tokens < 0 || bytes != static_cast<std::size_t>(tokens) * kind.token_bytes) {
    refuse_tokens(
        file, fmt::format("{} bytes after the header", bytes),
        fmt::format("{} tokens of {} bytes, as the header says", tokens, kind.token_bytes));
  }
  return {kLlmcHeaderBytes, kind.token_bytes, static_cast<std::uint64_t>(tokens)};
}

bool begins_with(std::span<const std::byte> content, std::string_view text) {
  return content.size() >= text.size() &&
         std::memcmp(content.data(), text.data(), text.size()) == 0;
}

// Refuses files whose headers would otherwise be read as tokens.
void refuse_other_formats(const std::filesystem::path& file, std::span<const std::byte> content) {
  const std::string extension = file.extension().string();
  if (extension == ".idx" || begins_with(content, "MMIDIDX"))
    refuse_tokens(file, "an index of Megatron-LM", "the .bin beside it");
  if (extension == ".npy" || begins_with(content, "\x93NUMPY"))
    refuse_tokens(file, "an array of numpy", "its tokens alone, as NAME.u16, NAME.u32 or NAME.bin");
}

TokenFormat find_token_format(const std::filesystem::path& file,
                              std::span<const std::byte> content) {
  refuse_other_formats(file, content);
  const std::string extension = file.extension().string();
  if (extension == ".u16") return raw_tokens(file, content.size(), 2);
  if (extension == ".u32") return raw_tokens(file, content.size(), 4);
  if (extension != ".bin") return {0, 1, content.size()};
  std::filesystem::path index = file;
  index.replace_extension(".idx");
  if (std::filesystem::exists(index)) return read_megatron_index(index, content.size());
  if (const LlmcKind* kind = llmc_kind(content)) return llmc_format(file, *kind, content);
  return raw_tokens(file, content.size(), 2);
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
  // The width in bytes above which some values exceed every vocabulary.
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
