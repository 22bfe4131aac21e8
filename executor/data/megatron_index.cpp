// The index beside a corpus of Megatron-LM (megatron/core/datasets/indexed_dataset.py):
//
//   9 bytes   "MMIDIDX", 0, 0
//   uint64    version, 1
//   uint8     type of the tokens
//   uint64    sequences
//   uint64    documents, with the one that would follow the last
//   int32[]   tokens of each sequence
//   int64[]   byte at which each sequence begins
//   int64[]   first sequence of each document
//   int8[]    mode of each sequence, where the corpus has more than one
//
// All little-endian.
#include <fmt/format.h>

#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/untrusted_file.hpp"
#include "executor/data/token_file.hpp"

namespace shardwright::executor {
namespace {

constexpr std::array<char, 9> kMagic = {'M', 'M', 'I', 'D', 'I', 'D', 'X', '\0', '\0'};
constexpr std::uint64_t kVersion = 1;
constexpr std::uint64_t kHeaderBytes = 34;

struct Header {
  TokenFormat tokens;
  std::uint64_t sequences = 0, documents = 0;
};

[[noreturn]] void refuse(const std::filesystem::path& index, std::string where, std::string found,
                         std::string expected) {
  throw InputError(index.string(), {{std::move(where), std::move(found), std::move(expected)}});
}

template <class Value>
Value read_value(std::istream& stream) {
  Value value{};
  stream.read(reinterpret_cast<char*>(&value), sizeof value);
  return value;
}

// The element types of Megatron's enumeration DType.
struct ElementType {
  std::uint8_t code;
  const char* name;
  // 0 if the executor does not read tokens of this type.
  std::size_t bytes = 0;
  bool is_signed = false;
};
constexpr ElementType kTypes[] = {
    {1, "uint8", 1},       {2, "int8"},    {3, "int16", 2, true}, {4, "int32", 4, true},
    {5, "int64", 8, true}, {6, "float64"}, {7, "float32"},        {8, "uint16", 2}};

// Returns the token format of a type code.
TokenFormat token_type(std::uint8_t code, const std::filesystem::path& index) {
  std::string found = fmt::format("elements of the unknown type {}", code), expected;
  for (const ElementType& type : kTypes) {
    if (type.code == code && type.bytes > 0)
      return {.token_bytes = type.bytes, .is_signed = type.is_signed};
    if (type.code == code) found = fmt::format("{} tokens", type.name);
    if (type.bytes > 0) expected += fmt::format("{}{}", expected.empty() ? "" : ", ", type.name);
  }
  refuse(index, "", found, "one of " + expected);
}

Header read_header(std::istream& stream, const std::filesystem::path& index) {
  std::array<char, kMagic.size()> magic{};
  stream.read(magic.data(), magic.size());
  const auto version = read_value<std::uint64_t>(stream);
  const auto code = read_value<std::uint8_t>(stream);
  Header header;
  header.sequences = read_value<std::uint64_t>(stream);
  header.documents = read_value<std::uint64_t>(stream);
  if (magic != kMagic) {
    const std::string begin(magic.data(), magic.size());
    refuse(index, "", fmt::format("a file that begins with \"{}\"", begin),
           "an index of Megatron-LM, which begins with \"MMIDIDX\" and two zero bytes");
  }
  if (!stream) {
    refuse(index, "", fmt::format("{} bytes", std::filesystem::file_size(index)),
           fmt::format("a header of {} bytes", kHeaderBytes));
  }
  if (version != kVersion) {
    refuse(index, "", fmt::format("version {} of Megatron-LM's index", version),
           fmt::format("version {}", kVersion));
  }
  header.tokens = token_type(code, index);
  return header;
}

// Called before the lists are read, so that the sizes of a damaged header are not allocated.
void check_size(const Header& header, const std::filesystem::path& index) {
  const std::uint64_t bytes = std::filesystem::file_size(index);
  constexpr std::uint64_t kOfSequence = sizeof(std::int32_t) + sizeof(std::int64_t);
  // The products below must not overflow.
  const bool plausible = header.sequences <= bytes && header.documents <= bytes;
  const std::uint64_t whole =
      kHeaderBytes + kOfSequence * header.sequences + sizeof(std::int64_t) * header.documents;
  if (plausible && (bytes == whole || bytes == whole + header.sequences)) return;
  refuse(index, "", fmt::format("{} bytes", bytes),
         plausible ? fmt::format("{}, as the {} sequences and {} documents of its header take",
                                 whole, header.sequences, header.documents)
                   : fmt::format("as many as the {} sequences and {} documents of its header take",
                                 header.sequences, header.documents));
}

std::vector<std::int32_t> read_lengths(std::istream& stream, const Header& header,
                                       const std::filesystem::path& index) {
  std::vector<std::int32_t> lengths(header.sequences);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    lengths[i] = read_value<std::int32_t>(stream);
    if (lengths[i] < 0) {
      refuse(index, fmt::format("sequence {}", i), fmt::format("{} tokens", lengths[i]),
             "0 or more");
    }
  }
  return lengths;
}

// Checks that each sequence begins where the previous one ends; returns the number of tokens.
std::uint64_t follow_sequences(std::istream& stream, const std::vector<std::int32_t>& lengths,
                               std::size_t token_bytes, const std::filesystem::path& index) {
  std::uint64_t tokens = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto start = read_value<std::int64_t>(stream);
    const std::uint64_t end_of_last = tokens * token_bytes;
    if (start < 0 || static_cast<std::uint64_t>(start) != end_of_last) {
      refuse(index, fmt::format("sequence {}", i), fmt::format("its start at byte {}", start),
             fmt::format("{}, where the sequences before it end", end_of_last));
    }
    tokens += static_cast<std::uint64_t>(lengths[i]);
  }
  return tokens;
}

void check_documents(std::istream& stream, const Header& header,
                     const std::filesystem::path& index) {
  std::int64_t least = 0;
  for (std::uint64_t i = 0; i < header.documents; ++i) {
    const auto first = read_value<std::int64_t>(stream);
    if (first < least || static_cast<std::uint64_t>(first) > header.sequences) {
      refuse(index, fmt::format("document {}", i), fmt::format("its first sequence {}", first),
             fmt::format("{} to {}", least, header.sequences));
    }
    least = first;
  }
}

}  // namespace

TokenFormat read_megatron_index(const std::filesystem::path& index, std::uint64_t bytes) {
  if (const std::string kind = kind_unless_regular(index); !kind.empty())
    refuse(index, "", kind, "an index of Megatron-LM");
  std::ifstream stream(index, std::ios::binary);
  Header header = read_header(stream, index);
  check_size(header, index);
  const std::vector<std::int32_t> lengths = read_lengths(stream, header, index);
  TokenFormat& format = header.tokens;
  format.tokens = follow_sequences(stream, lengths, format.token_bytes, index);
  check_documents(stream, header, index);
  if (!stream) refuse(index, "", "an index that cannot be read", "a readable one");
  if (bytes != format.tokens * format.token_bytes) {
    refuse(index, "",
           fmt::format("sequences of {} tokens of {} bytes", format.tokens, format.token_bytes),
           fmt::format("as many as there are in the {} bytes of the file beside it", bytes));
  }
  return format;
}

}  // namespace shardwright::executor
