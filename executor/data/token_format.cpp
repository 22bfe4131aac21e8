#include "executor/data/token_format.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "core/base/error.hpp"

namespace shardwright::executor {
namespace {

constexpr std::size_t kLlmcHeaderBytes = 256 * sizeof(std::int32_t);
constexpr std::array<char, 9> kMegatronMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr std::uint64_t kMegatronVersion = 1;

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

std::optional<TokenFormat> llmc_format(const std::filesystem::path& file,
                                       std::span<const std::byte> content) {
  if (content.size() < kLlmcHeaderBytes) return std::nullopt;
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), content.data(), sizeof header);
  for (const LlmcKind& kind : kLlmcKinds) {
    if (header[0] != kind.magic || header[1] != kind.version) continue;
    const std::size_t bytes = content.size() - kLlmcHeaderBytes;
    const auto tokens = static_cast<std::uint64_t>(std::max(header[2], 0));
    if (bytes != tokens * kind.token_bytes) {
      refuse(file, fmt::format("{} bytes after the header", bytes),
             fmt::format("{} tokens of {} bytes, as the header says", tokens, kind.token_bytes));
    }
    return TokenFormat{kLlmcHeaderBytes, kind.token_bytes, tokens};
  }
  return std::nullopt;
}

template <class Value>
Value read_value(std::istream& stream) {
  Value value{};
  stream.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

// Bytes of a token by Megatron's code of its type; 0 for what holds no tokens.
std::size_t megatron_token_bytes(std::uint8_t code) {
  switch (code) {
    case 1:  // uint8
      return 1;
    case 3:  // int16
    case 8:  // uint16
      return 2;
    case 4:  // int32
      return 4;
    case 5:  // int64
      return 8;
    default:
      return 0;
  }
}

TokenFormat megatron_format(const std::filesystem::path& index, std::size_t bytes) {
  std::ifstream stream(index, std::ios::binary);
  std::array<char, kMegatronMagic.size()> magic{};
  stream.read(magic.data(), magic.size());
  const auto version = read_value<std::uint64_t>(stream);
  const auto code = read_value<std::uint8_t>(stream);
  const auto sequences = read_value<std::uint64_t>(stream);
  read_value<std::uint64_t>(stream);  // documents
  if (!stream || magic != kMegatronMagic || version != kMegatronVersion)
    refuse(index, "another file", "an index of Megatron-LM, version 1");
  const std::size_t token_bytes = megatron_token_bytes(code);
  if (token_bytes == 0) refuse(index, fmt::format("elements of type {}", code), "integer tokens");
  std::uint64_t tokens = 0;
  for (std::uint64_t i = 0; i < sequences && stream; ++i)
    tokens += static_cast<std::uint64_t>(std::max(read_value<std::int32_t>(stream), 0));
  if (!stream || bytes != tokens * token_bytes) {
    refuse(index, fmt::format("sequences of {} tokens of {} bytes", tokens, token_bytes),
           fmt::format("as many as there are in the {} bytes of the file beside it", bytes));
  }
  return {0, token_bytes, tokens};
}

}  // namespace

TokenFormat find_token_format(const std::filesystem::path& file,
                              std::span<const std::byte> content) {
  const std::string extension = file.extension().string();
  if (extension == ".u16") return raw_tokens(file, content.size(), 2);
  if (extension == ".u32") return raw_tokens(file, content.size(), 4);
  if (extension != ".bin") return {0, 1, content.size()};
  std::filesystem::path index = file;
  index.replace_extension(".idx");
  if (std::filesystem::exists(index)) return megatron_format(index, content.size());
  if (const auto llmc = llmc_format(file, content)) return *llmc;
  return raw_tokens(file, content.size(), 2);
}

}  // namespace shardwright::executor
