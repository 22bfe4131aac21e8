// What readers use of one event in the JSON of PyTorch's profiler.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace shardwright::calibration {

enum class EventKind : std::uint8_t { Kernel, Copy, Fill, Launch, Op, Mark, DeviceMark, Ignored };

// A value of JSON: texts without their quotation marks, lists and numbers as they stand.
struct JsonToken {
  enum class Kind : std::uint8_t { Text, List, Other };
  std::string_view text;
  Kind kind = Kind::Other;

  std::string_view text_or_none() const { return kind == Kind::Text ? text : std::string_view(); }
};

// Texts are those of the piece that it was read from, or of the parser.
struct KinetoEvent {
  std::string_view phase, name;
  EventKind kind = EventKind::Ignored;
  // Numbers as they stand.
  std::string_view process, thread, time, duration;
  std::optional<std::int64_t> device, stream, correlation, external_id;
  std::optional<std::int64_t> bytes, blocks;
  std::optional<std::int64_t> in_elements, out_elements, group_size, sequence;
  std::string_view collective, element_type, group, description, members, shapes, types;

  // Takes a field of the event. Returns false where it makes an event that nobody uses: the rest
  // then need not be read.
  bool set_field(std::string_view key, const JsonToken& value);
  // Takes a member of "args".
  void set_argument(std::string_view key, const JsonToken& value);
};

// Reads an event in the form in which profilers write nearly all of them: texts of printable ASCII
// without escapes. Several times faster than a parser, because it looks at each byte once and
// checks no more than it needs. None of any other form, and of text that is no JSON.
std::optional<KinetoEvent> scan_event(std::string_view text);

// The product of the numbers in the first list of a text: "[2, 3]" and "[[2, 3], [4]]" have 6. None
// if there is none, or it is out of range.
std::optional<std::int64_t> product_of_list(std::string_view text);

}  // namespace shardwright::calibration
