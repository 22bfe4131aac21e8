#include "calibration/traces/kineto_part.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "calibration/traces/json_numbers.hpp"
#include "calibration/traces/json_pieces.hpp"
#include "calibration/traces/kineto_event.hpp"
#include "core/base/error.hpp"

namespace shardwright::calibration {
namespace {

namespace od = simdjson::ondemand;
static_assert(simdjson::SIMDJSON_PADDING <= kPiecePadding);

// Times of 31 years before and 126 years after the clock's zero: their sums stay below 2^63 ns.
constexpr double kEarliest = -1e15, kLatest = 4e15, kLongest = 1e15;

// A key as it stands: nobody writes those that are known here with escapes.
std::string_view key_of(od::field& field) {
  const char* const text = field.key().raw();
  std::size_t length = 0;
  while (text[length] != '"') ++length;
  return {text, length};
}

// Empty if it is no text. The parser copies what has escapes.
std::string_view text_of(od::value& value) {
  const std::string_view token = value.raw_json_token();
  if (!token.starts_with('"')) return {};
  std::string_view text = token.substr(1, token.rfind('"') - 1);
  if (text.find('\\') != std::string_view::npos &&
      value.get_string().get(text) != simdjson::SUCCESS)
    return {};
  return text;
}

JsonToken token_of(od::value& value) {
  const std::string_view token = value.raw_json_token();
  if (token.starts_with('"')) return {text_of(value), JsonToken::Kind::Text};
  if (token.starts_with('['))
    return {od::array(value.get_array()).raw_json(), JsonToken::Kind::List};
  return {token, JsonToken::Kind::Other};
}

void read_arguments(KinetoEvent& event, od::value value) {
  if (value.type() != od::json_type::object) return;
  for (od::field argument : value.get_object()) {
    const std::string_view key = key_of(argument);
    od::value member = argument.value();
    event.set_argument(key, token_of(member));
  }
}

// Leaves an event at the phase or category by which nobody uses it.
KinetoEvent read_event(od::object object) {
  KinetoEvent event;
  for (od::field field : object) {
    const std::string_view key = key_of(field);
    od::value value = field.value();
    if (key == "args")
      read_arguments(event, value);
    else if (!event.set_field(key, token_of(value)))
      break;
  }
  return event;
}

std::int64_t bytes_of_element(std::string_view type) {
  static constexpr std::pair<std::string_view, std::int64_t> kSizes[] = {
      {"ComplexDouble", 16}, {"ComplexFloat", 8}, {"Double", 8}, {"Long", 8},
      {"Float8", 1},         {"Float", 4},        {"Int", 4},    {"Half", 2},
      {"BFloat16", 2},       {"Short", 2},        {"UInt16", 2}, {"UInt32", 4},
      {"UInt64", 8},         {"Byte", 1},         {"Char", 1},   {"Bool", 1}};
  for (const auto& [name, size] : kSizes)
    if (type.starts_with(name)) return size;
  return 0;
}

CollectiveCall collective_of(const KinetoEvent& event) {
  CollectiveCall call;
  call.kind = collective_kind(event.collective);
  const auto elements = call.kind == "all_gather" ? event.out_elements : event.in_elements;
  const std::int64_t size = bytes_of_element(event.element_type);
  constexpr std::int64_t kMostElements = std::int64_t{1} << 56U;
  if (elements && size > 0 && *elements >= 0 && *elements < kMostElements)
    call.bytes = *elements * size;
  call.elements = event.in_elements;
  if (event.group_size && *event.group_size > 0) call.group_size = event.group_size;
  call.group = event.group;
  call.description = event.description;
  call.members = event.members;
  call.sequence = event.sequence;
  return call;
}

class KinetoPartReader {
 public:
  explicit KinetoPartReader(const std::string& source) : source_(source) {}

  KinetoPart read(KinetoText events) {
    // The parser may read behind the last event.
    events.text.append(kPiecePadding, ' ');
    std::size_t begin = 0;
    for (std::size_t i = 0; i < events.ends.size(); ++i) {
      const std::string_view text(events.text.data() + begin, events.ends[i] - begin);
      if (!text.empty()) read_element(text, events.first + i);
      begin = events.ends[i];
    }
    return std::move(part_);
  }

 private:
  void read_element(std::string_view text, std::size_t index) {
    if (const auto usual = scan_event(text))
      add(*usual);
    else
      parse_element(text, index);
  }

  void parse_element(std::string_view text, std::size_t index) {
    try {
      od::document document = parser_.iterate(
          simdjson::padded_string_view(text.data(), text.size(), text.size() + kPiecePadding));
      add(read_event(document.get_object()));
    } catch (const simdjson::simdjson_error& error) {
      if (error.error() != simdjson::UTF8_ERROR && error.error() != simdjson::UNESCAPED_CHARS)
        throw InputError(source_, {{fmt::format("/traceEvents/{}", index), error.what(),
                                    "an event: a JSON object"}});
      parse_element(cleaned(text), index);
    }
  }

  // The text without the bytes that JSON does not allow in strings, which the names of programs
  // may hold. A second failure is one of syntax, because such bytes are gone.
  static std::string cleaned(std::string_view text) {
    std::string clean(text);
    for (char& c : clean) {
      const auto byte = static_cast<unsigned char>(c);
      if (byte < 0x20) c = ' ';
      if (byte > 0x7e) c = '?';
    }
    clean.reserve(clean.size() + kPiecePadding);
    return clean;
  }

  void add(const KinetoEvent& event) {
    const EventKind kind = event.kind;
    if (event.phase == "B" && kind <= EventKind::Fill) ++part_.begin_events;
    if (event.phase != "X" || kind == EventKind::Ignored) return;
    const auto start = nanoseconds_in(event.time, kEarliest, kLatest);
    const auto duration = nanoseconds_in(event.duration, 0.0, kLongest);
    if (!start || !duration) {
      if (kind <= EventKind::Fill) ++part_.trace.unusable_events;
      return;
    }
    part_.begin = std::min(part_.begin, *start);
    part_.end = std::max(part_.end, *start + *duration);
    if (kind <= EventKind::Fill) {
      add_activity(event, kind, *start, *duration);
    } else if (kind == EventKind::Launch) {
      if (event.correlation)
        part_.record.launches.push_back(
            {*start, thread_of(event), *event.correlation, event.external_id.value_or(kNoNumber)});
    } else if (kind == EventKind::Op) {
      add_op(event, *start, *duration);
    } else if (kind == EventKind::Mark && is_optimizer_mark(event.name)) {
      part_.record.optimizers.push_back({thread_of(event), *start, *start + *duration});
    } else if (const auto number = step_number(event.name)) {
      const bool is_of_host = kind == EventKind::Mark;
      const bool is_of_profiler = event.name.starts_with("ProfilerStep");
      if (!is_of_host && !is_of_profiler) return;
      auto& steps = !is_of_profiler ? part_.record.named_steps
                    : is_of_host    ? part_.record.steps
                                    : part_.record.device_steps;
      steps.push_back(
          {{*number, *start, *duration}, is_of_host ? process_of(event) : std::int64_t{0}});
    }
  }

  void add_activity(const KinetoEvent& event, EventKind kind, std::int64_t start,
                    std::int64_t duration) {
    DeviceActivity activity;
    activity.start = start;
    activity.duration = duration;
    activity.device = small(event.device, event.process);
    activity.stream = small(event.stream, event.thread);
    activity.name = part_.trace.names.index_of(event.name);
    activity.size = (kind == EventKind::Kernel ? event.blocks : event.bytes).value_or(0);
    activity.kind = kind == EventKind::Kernel ? ActivityKind::Kernel
                    : kind == EventKind::Copy ? ActivityKind::Copy
                                              : ActivityKind::Fill;
    activity.category =
        kind == EventKind::Kernel ? category_of(activity.name) : KernelCategory::MemoryCopy;
    if (!event.collective.empty() && kind == EventKind::Kernel) {
      activity.category = KernelCategory::Collective;
      activity.collective = add_collective(event);
    }
    part_.trace.activities.push_back(activity);
    part_.record.activities.push_back(
        {event.correlation.value_or(kNoNumber), event.external_id.value_or(kNoNumber)});
  }

  void add_op(const KinetoEvent& event, std::int64_t start, std::int64_t duration) {
    HostOp op;
    op.start = start;
    op.end = start + duration;
    op.thread = thread_of(event);
    op.name = part_.trace.names.index_of(event.name);
    op.external_id = event.external_id.value_or(kNoNumber);
    op.is_of_autograd = is_autograd_op(event.name);
    if (!event.shapes.empty() && !event.types.empty() &&
        category_of_op(event.name) == KernelCategory::Gemm)
      op.shapes = part_.trace.names.index_of(fmt::format("[{}, {}]", event.shapes, event.types));
    if (!event.collective.empty()) op.collective = add_collective(event);
    if (event.name == "torch::autograd::AccumulateGrad")
      if (const auto elements = product_of_list(event.shapes))
        part_.trace.gradients.push_back({op.end, *elements});
    part_.record.ops.push_back(op);
  }

  TraceIndex add_collective(const KinetoEvent& event) {
    part_.trace.collectives.push_back(collective_of(event));
    return static_cast<TraceIndex>(part_.trace.collectives.size() - 1);
  }

  KernelCategory category_of(TraceIndex name) {
    const auto index = static_cast<std::size_t>(name);
    if (index >= categories_.size()) categories_.resize(index + 1);
    if (!categories_[index]) categories_[index] = category_of_kernel(part_.trace.names[name]);
    return *categories_[index];
  }

  static std::int64_t process_of(const KinetoEvent& event) {
    return integer_in(event.process).value_or(0);
  }

  std::int32_t thread_of(const KinetoEvent& event) {
    return part_.record.thread(process_of(event), integer_in(event.thread).value_or(0));
  }

  // A device or stream: from the arguments or else from the event's process or thread.
  static std::int32_t small(std::optional<std::int64_t> argument, std::string_view token) {
    const std::int64_t number = argument ? *argument : integer_in(token).value_or(0);
    return static_cast<std::int32_t>(number);
  }

  const std::string& source_;
  od::parser parser_;
  KinetoPart part_;
  // By name.
  std::vector<std::optional<KernelCategory>> categories_;
};

}  // namespace

void KinetoText::append(std::string_view event) {
  text += event;
  ends.push_back(text.size());
}

void KinetoPart::append(KinetoPart next) {
  Trace& from = next.trace;
  std::vector<TraceIndex> names;
  for (std::size_t i = 0; i < from.names.size(); ++i)
    names.push_back(trace.names.index_of(from.names[static_cast<TraceIndex>(i)]));
  const auto renamed = [&](TraceIndex name) {
    return name == kNoIndex ? kNoIndex : names[static_cast<std::size_t>(name)];
  };
  const auto collectives = static_cast<TraceIndex>(trace.collectives.size());
  const auto renumbered = [&](TraceIndex call) {
    return call == kNoIndex ? kNoIndex : call + collectives;
  };
  for (DeviceActivity& each : from.activities) {
    each.name = renamed(each.name);
    each.collective = renumbered(each.collective);
  }
  for (HostOp& each : next.record.ops) {
    each.name = renamed(each.name);
    each.shapes = renamed(each.shapes);
    each.collective = renumbered(each.collective);
  }
  move_to_end(trace.activities, from.activities);
  move_to_end(trace.collectives, from.collectives);
  move_to_end(trace.gradients, from.gradients);
  trace.unusable_events += from.unusable_events;
  begin_events += next.begin_events;
  record.append(std::move(next.record));
  begin = std::min(begin, next.begin);
  end = std::max(end, next.end);
}

KinetoPart read_kineto_part(KinetoText events, const std::string& source) {
  return KinetoPartReader(source).read(std::move(events));
}

}  // namespace shardwright::calibration
