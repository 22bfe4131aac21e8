#include "calibration/traces/json_pieces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/base/error.hpp"

namespace shardwright::calibration {
namespace {

constexpr std::size_t kChunk = 1U << 22U;
constexpr std::size_t kLongestPiece = 1U << 26U;
constexpr const char* kExpectedTrace = "a trace as JSON: an object with \"traceEvents\"";

using ByteSet = std::array<bool, 256>;

constexpr ByteSet set_of(std::string_view bytes) {
  ByteSet set{};
  for (const char c : bytes) set[static_cast<unsigned char>(c)] = true;
  return set;
}

constexpr ByteSet kBrackets = set_of("\"{}[]");
constexpr ByteSet kEndsOfStrings = set_of("\"\\");
constexpr ByteSet kEndsOfScalars = set_of(",]} \t\r\n\"{[:");
constexpr ByteSet kBlank = set_of(" \t\r\n");

// A window on the text that moves on. What lies before `kept_` is forgotten.
class PieceReader {
 public:
  PieceReader(const ByteSource& bytes, const std::string& source)
      : bytes_(bytes), source_(source), buffer_(kChunk + kPiecePadding) {}

  bool read(const JsonPieces& pieces) {
    skip_byte_order_mark();
    const char first = next_mark();
    bool found = first == '[';
    if (found) {
      read_elements(pieces);
    } else if (first == '{') {
      read_members(pieces, found);
    } else {
      refuse(first == '\0' ? "no text" : fmt::format("'{}'", first), kExpectedTrace);
    }
    if (const char more = next_mark(); more != '\0')
      refuse(fmt::format("'{}' behind the end of the JSON", more), "the end of the file");
    return found;
  }

 private:
  void read_members(const JsonPieces& pieces, bool& found) {
    ++at_;
    for (char mark = next_mark(); mark != '}'; mark = next_mark()) {
      if (mark != '"') refuse_mark(mark, "a key or '}'");
      const std::string quoted(piece());
      const std::string key = quoted.substr(1, quoted.size() - 2);
      expect(':');
      if (key == pieces.array && next_mark() == '[') {
        found = true;
        read_elements(pieces);
      } else {
        const std::string_view text = piece();
        pieces.member(key, text);
      }
      if (next_mark() == ',')
        ++at_;
      else if (next_mark() != '}')
        refuse_mark(next_mark(), "',' or '}'");
    }
    ++at_;
  }

  void read_elements(const JsonPieces& pieces) {
    ++at_;
    for (std::size_t index = 0; next_mark() != ']'; ++index) {
      element_ = index;
      pieces.element(piece(), index);
      if (next_mark() == ',')
        ++at_;
      else if (next_mark() != ']')
        refuse_mark(next_mark(), "',' or ']'");
    }
    ++at_;
    element_ = kNothing;
  }

  // The next value as it stands.
  std::string_view piece() {
    const char mark = next_mark();
    kept_ = at_;
    if (mark == '"') {
      ++at_;
      skip_string();
    } else if (mark == '{' || mark == '[') {
      skip_nested();
    } else {
      skip_scalar(mark);
    }
    const std::string_view text(buffer_.data() + kept_, at_ - kept_);
    kept_ = kNothing;
    return text;
  }

  void skip_nested() {
    std::size_t depth = 0;
    do {
      const char mark = seek(kBrackets);
      ++at_;
      if (mark == '"')
        skip_string();
      else if (mark == '{' || mark == '[')
        ++depth;
      else
        --depth;
    } while (depth > 0);
  }

  // From behind the opening quotation mark to behind the closing one.
  void skip_string() {
    while (seek(kEndsOfStrings) == '\\') {
      ++at_;
      require_byte();
      ++at_;
    }
    ++at_;
  }

  void skip_scalar(char first) {
    if (first == '\0' || kEndsOfScalars[static_cast<unsigned char>(first)])
      refuse_mark(first, "a value");
    while ((at_ < end_ || refill()) && !kEndsOfScalars[byte()]) ++at_;
  }

  // Moves to the next byte of the set.
  char seek(const ByteSet& stops) {
    for (;;) {
      const char* const data = buffer_.data();
      std::size_t at = at_;
      while (at < end_ && !stops[static_cast<unsigned char>(data[at])]) ++at;
      at_ = at;
      if (at < end_) return data[at];
      require_byte();
    }
  }

  // The next byte that is not blank, which it does not pass; '\0' at the end.
  char next_mark() {
    while (at_ < end_ || refill()) {
      if (!kBlank[byte()]) return buffer_[at_];
      ++at_;
    }
    return '\0';
  }

  void expect(char mark) {
    const char found = next_mark();
    if (found != mark) refuse_mark(found, fmt::format("'{}'", mark));
    ++at_;
  }

  void skip_byte_order_mark() {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    if (next_mark() != '\0' && std::string_view(buffer_.data(), end_).starts_with(kMark))
      at_ += kMark.size();
  }

  unsigned char byte() const { return static_cast<unsigned char>(buffer_[at_]); }

  void require_byte() {
    if (at_ == end_ && !refill()) refuse_mark('\0', "the rest of the JSON");
  }

  // Reads more behind `end_`. False at the end of the text.
  bool refill() {
    const std::size_t keep = std::min(kept_, at_);
    std::memmove(buffer_.data(), buffer_.data() + keep, end_ - keep);
    forgotten_ += keep;
    at_ -= keep;
    end_ -= keep;
    if (kept_ != kNothing) kept_ -= keep;
    if (end_ > kLongestPiece)
      refuse("a value of more than 64 MiB", "events and members of at most 64 MiB");
    if (buffer_.size() - kPiecePadding - end_ < kChunk / 2) buffer_.resize(2 * buffer_.size());
    const std::size_t read = bytes_(buffer_.data() + end_, buffer_.size() - kPiecePadding - end_);
    end_ += read;
    return read > 0;
  }

  [[noreturn]] void refuse_mark(char mark, const std::string& expected) const {
    refuse(mark == '\0' ? "the end of the file" : fmt::format("'{}'", mark), expected);
  }

  [[noreturn]] void refuse(const std::string& found, const std::string& expected) const {
    const std::string event = element_ == kNothing ? "" : fmt::format("event {}, ", element_);
    throw InputError(source_,
                     {{fmt::format("{}byte {}", event, forgotten_ + at_), found, expected}});
  }

  static constexpr std::size_t kNothing = static_cast<std::size_t>(-1);

  const ByteSource& bytes_;
  const std::string& source_;
  std::vector<char> buffer_;
  // Indices into the buffer: the next byte, the end of what was read, and the start of the piece
  // that is being read.
  std::size_t at_ = 0, end_ = 0, kept_ = kNothing;
  // Bytes of the text before the buffer.
  std::size_t forgotten_ = 0;
  // The index of the element that is being read.
  std::size_t element_ = kNothing;
};

}  // namespace

bool read_json_pieces(const ByteSource& bytes, const std::string& source,
                      const JsonPieces& pieces) {
  return PieceReader(bytes, source).read(pieces);
}

}  // namespace shardwright::calibration
