#include "calibration/traces/kineto_event.hpp"

#include <array>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <utility>

#include "calibration/traces/json_numbers.hpp"

namespace shardwright::calibration {
namespace {

// Today's names, and those of 2021; the most frequent come first.
EventKind kind_of_category(std::string_view category) {
  static constexpr std::pair<std::string_view, EventKind> kKinds[] = {
      {"cpu_op", EventKind::Op},
      {"cuda_runtime", EventKind::Launch},
      {"kernel", EventKind::Kernel},
      {"Kernel", EventKind::Kernel},
      {"gpu_memcpy", EventKind::Copy},
      {"Memcpy", EventKind::Copy},
      {"gpu_memset", EventKind::Fill},
      {"Memset", EventKind::Fill},
      {"cuda_driver", EventKind::Launch},
      {"hip_runtime", EventKind::Launch},
      {"hip_driver", EventKind::Launch},
      {"xpu_runtime", EventKind::Launch},
      {"xpu_driver", EventKind::Launch},
      {"Runtime", EventKind::Launch},
      {"Operator", EventKind::Op},
      {"user_annotation", EventKind::Mark},
      {"gpu_user_annotation", EventKind::DeviceMark}};
  for (const auto& [name, kind] : kKinds)
    if (category == name) return kind;
  return EventKind::Ignored;
}

// As ==, which compilers call for every comparison. Lengths of both differ more often than not.
template <std::size_t Size>
bool is(std::string_view key, const char (&name)[Size]) {
  return key.size() == Size - 1 && std::memcmp(key.data(), name, Size - 1) == 0;
}

using Bytes256 = std::array<bool, 256>;

constexpr Bytes256 kPlainInTexts = [] {
  Bytes256 plain{};
  for (int byte = 0x20; byte < 0x7f; ++byte)
    plain[static_cast<std::size_t>(byte)] = byte != '"' && byte != '\\';
  return plain;
}();

constexpr Bytes256 kPlainInScalars = [] {
  Bytes256 plain{};
  for (const char c :
       std::string_view("+-.0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    plain[static_cast<unsigned char>(c)] = true;
  return plain;
}();

// Walks over an event once. Every function returns false, or none, at what has another form.
class EventScanner {
 public:
  explicit EventScanner(std::string_view text)
      : at_(text.data()), end_(text.data() + text.size()) {}

  bool scan(KinetoEvent& event) {
    bool goes_on = true;
    const bool is_usual = scan_members([&](std::string_view key) {
      if (is(key, "args") && at_ < end_ && *at_ == '{')
        return scan_members([&](std::string_view argument) {
          const std::optional<JsonToken> value = token();
          if (value) event.set_argument(argument, *value);
          return value.has_value();
        });
      const std::optional<JsonToken> value = token();
      if (value) goes_on = event.set_field(key, *value);
      return value && goes_on;
    });
    if (!goes_on) return true;
    skip_blanks();
    return is_usual && at_ == end_;
  }

 private:
  // Calls `read` at each value of an object, which moves behind it.
  template <class Read>
  bool scan_members(Read read) {
    skip_blanks();
    if (!take('{')) return false;
    skip_blanks();
    if (take('}')) return true;
    for (;;) {
      const std::optional<std::string_view> key = text();
      if (!key) return false;
      skip_blanks();
      if (!take(':')) return false;
      skip_blanks();
      if (!read(*key)) return false;
      skip_blanks();
      if (take('}')) return true;
      if (!take(',')) return false;
      skip_blanks();
    }
  }

  std::optional<JsonToken> token() {
    if (at_ == end_) return std::nullopt;
    if (*at_ == '"') {
      const auto found = text();
      return found ? std::optional(JsonToken{*found, JsonToken::Kind::Text}) : std::nullopt;
    }
    const char* const begin = at_;
    const bool is_nested = *at_ == '[' || *at_ == '{';
    const auto kind = *at_ == '[' ? JsonToken::Kind::List : JsonToken::Kind::Other;
    if (is_nested ? !skip_nested() : !skip_scalar()) return std::nullopt;
    return JsonToken{{begin, static_cast<std::size_t>(at_ - begin)}, kind};
  }

  std::optional<std::string_view> text() {
    if (!take('"')) return std::nullopt;
    const char* const begin = at_;
    while (at_ < end_ && kPlainInTexts[static_cast<unsigned char>(*at_)]) ++at_;
    const std::string_view found(begin, static_cast<std::size_t>(at_ - begin));
    return take('"') ? std::optional(found) : std::nullopt;
  }

  bool skip_scalar() {
    const char* const begin = at_;
    while (at_ < end_ && kPlainInScalars[static_cast<unsigned char>(*at_)]) ++at_;
    return at_ > begin;
  }

  // Brackets match: the text was cut out by them.
  bool skip_nested() {
    std::size_t depth = 0;
    while (at_ < end_) {
      const char c = *at_;
      if (c == '"') {
        if (!text()) return false;
        continue;
      }
      ++at_;
      if (c == '[' || c == '{') ++depth;
      if ((c == ']' || c == '}') && --depth == 0) return true;
    }
    return false;
  }

  void skip_blanks() {
    if (at_<end_&& * at_> ' ') return;
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) ++at_;
  }

  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  const char* at_;
  const char* const end_;
};

}  // namespace

// The product of the numbers in the first list of a text: "[2, 3]" and "[[2, 3], [4]]" have 6. None
// if there is none, or it is out of range.
std::optional<std::int64_t> product_of_list(std::string_view text) {
  constexpr double kMost = 9e15;
  double product = 1.0;
  std::size_t at = text.find_first_not_of("[ ");
  if (at == std::string_view::npos || text[at] == ']') return std::nullopt;
  for (const std::size_t end = text.find(']', at); at < end;) {
    std::int64_t value = 0;
    const auto [next, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    product *= static_cast<double>(value);
    at = text.find_first_not_of(", ", static_cast<std::size_t>(next - text.data()));
  }
  if (product < 1.0 || product > kMost) return std::nullopt;
  return static_cast<std::int64_t>(product);
}

bool KinetoEvent::set_field(std::string_view key, const JsonToken& value) {
  if (is(key, "ph")) {
    phase = value.text_or_none();
    return is(phase, "X") || is(phase, "B");
  }
  if (is(key, "cat")) {
    kind = kind_of_category(value.text_or_none());
    return kind != EventKind::Ignored;
  }
  if (is(key, "name"))
    name = value.text_or_none();
  else if (is(key, "pid"))
    process = value.text;
  else if (is(key, "tid"))
    thread = value.text;
  else if (is(key, "ts"))
    time = value.text;
  else if (is(key, "dur"))
    duration = value.text;
  return true;
}

void KinetoEvent::set_argument(std::string_view key, const JsonToken& value) {
  if (is(key, "correlation"))
    correlation = integer_in(value.text);
  else if (is(key, "External id") || is(key, "external id"))
    external_id = integer_in(value.text);
  else if (is(key, "stream"))
    stream = integer_in(value.text);
  else if (is(key, "device"))
    device = integer_in(value.text);
  else if (is(key, "bytes"))
    bytes = integer_in(value.text);
  else if (is(key, "grid") && value.kind == JsonToken::Kind::List)
    blocks = product_of_list(value.text);
  else if (is(key, "In msg nelems"))
    in_elements = integer_in(value.text);
  else if (is(key, "Out msg nelems"))
    out_elements = integer_in(value.text);
  else if (is(key, "Group size"))
    group_size = integer_in(value.text);
  else if (is(key, "Seq"))
    sequence = integer_in(value.text);
  else if (is(key, "Collective name"))
    collective = value.text_or_none();
  else if (is(key, "dtype"))
    element_type = value.text_or_none();
  else if (is(key, "Process Group Name"))
    group = value.text_or_none();
  else if (is(key, "Process Group Description"))
    description = value.text_or_none();
  else if (is(key, "Process Group Ranks"))
    members = value.text_or_none();
  else if (is(key, "Input Dims") && value.kind == JsonToken::Kind::List)
    shapes = value.text;
  else if (is(key, "Input type") && value.kind == JsonToken::Kind::List)
    types = value.text;
}

std::optional<KinetoEvent> scan_event(std::string_view text) {
  std::optional<KinetoEvent> event(std::in_place);
  if (!EventScanner(text).scan(*event)) event.reset();
  return event;
}

}  // namespace shardwright::calibration
