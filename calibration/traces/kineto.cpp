#include "calibration/traces/kineto.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "calibration/traces/host_record.hpp"
#include "calibration/traces/json_pieces.hpp"
#include "core/base/error.hpp"

namespace shardwright::calibration {
namespace {

namespace od = simdjson::ondemand;
static_assert(simdjson::SIMDJSON_PADDING <= kPiecePadding);

// Times of 31 years before and 126 years after the clock's zero: their sums stay below 2^63 ns.
constexpr double kEarliest = -1e15, kLatest = 4e15, kLongest = 1e15;

enum class EventKind : std::uint8_t { Kernel, Copy, Fill, Launch, Op, Mark, DeviceMark, Ignored };

// Today's names, and those of 2021.
EventKind kind_of(std::string_view category) {
  static constexpr std::pair<std::string_view, EventKind> kKinds[] = {
      {"kernel", EventKind::Kernel},
      {"Kernel", EventKind::Kernel},
      {"gpu_memcpy", EventKind::Copy},
      {"Memcpy", EventKind::Copy},
      {"gpu_memset", EventKind::Fill},
      {"Memset", EventKind::Fill},
      {"cuda_runtime", EventKind::Launch},
      {"cuda_driver", EventKind::Launch},
      {"hip_runtime", EventKind::Launch},
      {"hip_driver", EventKind::Launch},
      {"xpu_runtime", EventKind::Launch},
      {"xpu_driver", EventKind::Launch},
      {"Runtime", EventKind::Launch},
      {"cpu_op", EventKind::Op},
      {"Operator", EventKind::Op},
      {"user_annotation", EventKind::Mark},
      {"gpu_user_annotation", EventKind::DeviceMark}};
  for (const auto& [name, kind] : kKinds)
    if (category == name) return kind;
  return EventKind::Ignored;
}

// A number as it stands in the text, also in quotation marks.
std::string_view digits_of(std::string_view token) {
  if (token.starts_with('"')) token.remove_prefix(1);
  return token.substr(0, token.find_first_of("\" \t\r\n,}]"));
}

std::optional<double> number_in(std::string_view token) {
  const std::string_view text = digits_of(token);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<std::int64_t> integer_in(std::string_view token) {
  const std::string_view text = digits_of(token);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  const std::optional<double> number = number_in(token);
  if (!number || std::abs(*number) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

// Microseconds as nanoseconds. A double has no room for both of a time since 1970.
std::optional<std::int64_t> nanoseconds_in(std::string_view token, double least, double most) {
  const std::optional<double> number = number_in(token);
  if (!number || *number < least || *number > most) return std::nullopt;
  const std::string_view text = digits_of(token);
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  const auto left = static_cast<std::size_t>(text.data() + text.size() - end);
  if (error != std::errc() || (left > 0 && *end != '.') ||
      text.find_first_of("eE") != std::string_view::npos)
    return static_cast<std::int64_t>(std::llround(*number * 1e3));
  double fraction = 0.0;
  if (left > 1) std::from_chars(end, text.data() + text.size(), fraction);
  const std::int64_t rest = std::llround(fraction * 1e3);
  return whole * 1000 + (text.starts_with('-') ? -rest : rest);
}

// What the readers use of one event. Texts are those of the parser and of the piece.
struct Event {
  std::string_view phase, category, name;
  // Tokens.
  std::string_view process, thread, time, duration;
  std::optional<std::int64_t> device, stream, correlation, external_id;
  std::optional<std::int64_t> bytes, blocks;
  std::optional<std::int64_t> in_elements, out_elements, group_size, sequence;
  std::string_view collective, element_type, group, description, members, shapes, types;
};

std::string_view text_of(od::value& value) {
  std::string_view text;
  return value.get_string().get(text) == simdjson::SUCCESS ? text : std::string_view();
}

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

void read_argument(Event& event, std::string_view key, od::value value) {
  if (key == "correlation")
    event.correlation = integer_in(value.raw_json_token());
  else if (key == "External id" || key == "external id")
    event.external_id = integer_in(value.raw_json_token());
  else if (key == "stream")
    event.stream = integer_in(value.raw_json_token());
  else if (key == "device")
    event.device = integer_in(value.raw_json_token());
  else if (key == "bytes")
    event.bytes = integer_in(value.raw_json_token());
  else if (key == "grid" && value.type() == od::json_type::array)
    event.blocks = product_of_list(od::array(value.get_array()).raw_json());
  else if (key == "In msg nelems")
    event.in_elements = integer_in(value.raw_json_token());
  else if (key == "Out msg nelems")
    event.out_elements = integer_in(value.raw_json_token());
  else if (key == "Group size")
    event.group_size = integer_in(value.raw_json_token());
  else if (key == "Seq")
    event.sequence = integer_in(value.raw_json_token());
  else if (key == "Collective name")
    event.collective = text_of(value);
  else if (key == "dtype")
    event.element_type = text_of(value);
  else if (key == "Process Group Name")
    event.group = text_of(value);
  else if (key == "Process Group Description")
    event.description = text_of(value);
  else if (key == "Process Group Ranks")
    event.members = text_of(value);
  else if (key == "Input Dims" && value.type() == od::json_type::array)
    event.shapes = od::array(value.get_array()).raw_json();
  else if (key == "Input type" && value.type() == od::json_type::array)
    event.types = od::array(value.get_array()).raw_json();
}

// The arguments of events that nobody uses are passed over where the category stands before them.
Event read_event(od::object object) {
  Event event;
  for (od::field field : object) {
    const std::string_view key = field.unescaped_key();
    od::value value = field.value();
    if (key == "ph")
      event.phase = text_of(value);
    else if (key == "cat")
      event.category = text_of(value);
    else if (key == "name")
      event.name = text_of(value);
    else if (key == "pid")
      event.process = value.raw_json_token();
    else if (key == "tid")
      event.thread = value.raw_json_token();
    else if (key == "ts")
      event.time = value.raw_json_token();
    else if (key == "dur")
      event.duration = value.raw_json_token();
    else if (key == "args" && value.type() == od::json_type::object &&
             (event.category.empty() || kind_of(event.category) != EventKind::Ignored))
      for (od::field argument : value.get_object()) {
        const std::string_view name = argument.unescaped_key();
        read_argument(event, name, argument.value());
      }
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

CollectiveCall collective_of(const Event& event) {
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

class KinetoReader {
 public:
  explicit KinetoReader(const std::string& source) : source_(source) { trace_.file = source; }

  Trace read(const ByteSource& bytes) {
    JsonPieces pieces;
    pieces.array = "traceEvents";
    pieces.element = [this](std::string_view text, std::size_t index) {
      read_element(text, index);
    };
    pieces.member = [this](std::string_view key, std::string_view text) { read_member(key, text); };
    const bool found = read_json_pieces(bytes, source_, pieces);
    if (!found) throw InputError(source_, {{"/traceEvents", "nothing", "an array of events"}});
    finish();
    return std::move(trace_);
  }

 private:
  template <class Read>
  void parse(std::string_view text, Read read) {
    od::document document = parser_.iterate(
        simdjson::padded_string_view(text.data(), text.size(), text.size() + kPiecePadding));
    read(document);
  }

  void read_element(std::string_view text, std::size_t index) {
    try {
      parse(text, [this](od::document& document) { add(read_event(document.get_object())); });
    } catch (const simdjson::simdjson_error& error) {
      if (error.error() != simdjson::UTF8_ERROR && error.error() != simdjson::UNESCAPED_CHARS)
        throw InputError(source_, {{fmt::format("/traceEvents/{}", index), error.what(),
                                    "an event: a JSON object"}});
      read_element(cleaned(text), index);
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

  void read_member(std::string_view key, std::string_view text) {
    const bool is_known =
        key == "distributedInfo" || key == "deviceProperties" || key == "baseTimeNanoseconds";
    if (!is_known || text == "null") return;
    try {
      if (key == "baseTimeNanoseconds") {
        trace_.clock_offset = integer_in(text);
      } else if (key == "distributedInfo") {
        parse(text, [this](od::document& document) { read_distribution(document); });
      } else {
        parse(text, [this](od::document& document) { read_devices(document); });
      }
    } catch (const simdjson::simdjson_error& error) {
      throw InputError(source_, {{fmt::format("/{}", key), error.what(),
                                  "what PyTorch's profiler writes there"}});
    }
  }

  void read_distribution(od::document& document) {
    for (od::field field : document.get_object()) {
      const std::string_view key = field.unescaped_key();
      od::value value = field.value();
      if (key == "rank") trace_.rank = integer_in(value.raw_json_token());
      if (key == "world_size") trace_.world_size = integer_in(value.raw_json_token());
    }
  }

  void read_devices(od::document& document) {
    std::int64_t position = 0;
    for (od::object device : document.get_array()) {
      std::int64_t id = position++;
      std::string name;
      for (od::field field : device) {
        const std::string_view key = field.unescaped_key();
        od::value value = field.value();
        if (key == "id") id = integer_in(value.raw_json_token()).value_or(id);
        if (key == "name") name = text_of(value);
      }
      device_names_.emplace(id, name);
    }
  }

  void add(const Event& event) {
    const EventKind kind = kind_of(event.category);
    if (event.phase != "X" || kind == EventKind::Ignored) return;
    const auto start = nanoseconds_in(event.time, kEarliest, kLatest);
    const auto duration = nanoseconds_in(event.duration, 0.0, kLongest);
    if (!start || !duration) {
      if (kind <= EventKind::Fill) ++trace_.unusable_events;
      return;
    }
    begin_ = std::min(begin_, *start);
    end_ = std::max(end_, *start + *duration);
    if (kind <= EventKind::Fill) {
      add_activity(event, kind, *start, *duration);
    } else if (kind == EventKind::Launch) {
      if (event.correlation)
        record_.launches.push_back(
            {*start, thread_of(event), *event.correlation, event.external_id});
    } else if (kind == EventKind::Op) {
      add_op(event, *start, *duration);
    } else if (event.name.starts_with("ProfilerStep")) {
      auto& steps = kind == EventKind::Mark ? record_.steps : record_.device_steps;
      if (const auto number = step_number(event.name))
        steps.push_back({*number, *start, *duration});
    }
  }

  void add_activity(const Event& event, EventKind kind, std::int64_t start, std::int64_t duration) {
    DeviceActivity activity;
    activity.start = start;
    activity.duration = duration;
    activity.device = small(event.device, event.process);
    activity.stream = small(event.stream, event.thread);
    activity.name = trace_.names.index_of(event.name);
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
    trace_.activities.push_back(activity);
    record_.activities.push_back({event.correlation, event.external_id});
  }

  void add_op(const Event& event, std::int64_t start, std::int64_t duration) {
    HostOp op;
    op.start = start;
    op.end = start + duration;
    op.thread = thread_of(event);
    op.name = trace_.names.index_of(event.name);
    op.external_id = event.external_id;
    if (!event.shapes.empty() && !event.types.empty() &&
        category_of_op(event.name) == KernelCategory::Gemm)
      op.shapes = trace_.names.index_of(fmt::format("[{}, {}]", event.shapes, event.types));
    if (!event.collective.empty()) op.collective = add_collective(event);
    if (event.name == "torch::autograd::AccumulateGrad")
      if (const auto elements = product_of_list(event.shapes))
        trace_.gradients.push_back({op.end, *elements});
    record_.ops.push_back(op);
  }

  TraceIndex add_collective(const Event& event) {
    trace_.collectives.push_back(collective_of(event));
    return static_cast<TraceIndex>(trace_.collectives.size() - 1);
  }

  KernelCategory category_of(TraceIndex name) {
    const auto index = static_cast<std::size_t>(name);
    if (index >= categories_.size()) categories_.resize(index + 1);
    if (!categories_[index]) categories_[index] = category_of_kernel(trace_.names[name]);
    return *categories_[index];
  }

  std::int32_t thread_of(const Event& event) {
    return record_.thread(integer_in(event.process).value_or(0),
                          integer_in(event.thread).value_or(0));
  }

  // A device or stream: from the arguments or else from the event's process or thread.
  static std::int32_t small(std::optional<std::int64_t> argument, std::string_view token) {
    const std::int64_t number = argument ? *argument : integer_in(token).value_or(0);
    return static_cast<std::int32_t>(number);
  }

  void finish() {
    if (begin_ <= end_) {
      trace_.begin = begin_;
      trace_.end = end_;
    }
    const std::int64_t device = trace_.activities.empty() ? 0 : trace_.activities.front().device;
    const auto named = device_names_.find(device);
    if (named != device_names_.end())
      trace_.gpu = named->second;
    else if (!device_names_.empty())
      trace_.gpu = device_names_.begin()->second;
    std::stable_sort(trace_.gradients.begin(), trace_.gradients.end(),
                     [](const GradientMark& a, const GradientMark& b) { return a.time < b.time; });
    link_to_host(trace_, std::move(record_));
  }

  const std::string& source_;
  od::parser parser_;
  Trace trace_;
  HostRecord record_;
  std::map<std::int64_t, std::string> device_names_;
  // By name.
  std::vector<std::optional<KernelCategory>> categories_;
  std::int64_t begin_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t end_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace

Trace read_kineto(const ByteSource& bytes, const std::string& source) {
  return KinetoReader(source).read(bytes);
}

}  // namespace shardwright::calibration
