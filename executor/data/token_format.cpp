#include "executor/data/token_format.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "core/base/error.hpp"
#include "executor/data/megatron_index.hpp"

namespace shardwright::executor {
namespace {

constexpr std::size_t kLlmcHeaderBytes = 256 * sizeof(std::int32_t);

struct LlmcKind {
  std::int32_t magic, version;
  std::size_t token_bytes;
};
constexpr LlmcKind kLlmcKinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};  // GPT-2, Llama 3

[[noreturn]] void refuse(const std::filesystem::path& file, std::string found,
                         std::string expected) {
  throw InputError(file.string(), {{"", std::move(found), std::move(expected)}});
}

TokenFormat raw_tokens(const std::filesystem::path& file, std::size_t bytes,
                       std::size_t token_bytes) {
  if (bytes % token_bytes != 0)
    refuse(file, fmt::format("{} bytes", bytes), fmt::format("a multiple of {}", token_bytes));
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
    refuse(file, fmt::format("{} bytes", content.size()),
           fmt::format("a header of llm.c, {} bytes", kLlmcHeaderBytes));
  }
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), content.data(), sizeof header);
  const auto [magic, version, tokens] = header;
  if (version != kind.version) {
    refuse(file, fmt::format("version {} of llm.c's format {}", version, magic),
           fmt::format("version {}", kind.version));
  }
  const std::size_t bytes = content.size() - kLlmcHeaderBytes;
  if (tokens < 0 || bytes != static_cast<std::size_t>(tokens) * kind.token_bytes) {
    refuse(file, fmt::format("{} bytes after the header", bytes),
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
    refuse(file, "an index of Megatron-LM", "the .bin beside it");
  if (extension == ".npy" || begins_with(content, "\x93NUMPY"))
    refuse(file, "an array of numpy", "its tokens alone, as NAME.u16, NAME.u32 or NAME.bin");
}

}  // namespace

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

}  // namespace shardwright::executor
