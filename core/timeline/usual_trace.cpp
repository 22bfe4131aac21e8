#include <array>
#include <cmath>
#include <map>
#include <utility>

#include "core/timeline/perfetto.hpp"
#include "core/timeline/usual_json.hpp"

namespace shardwright {
namespace {

using namespace usual;

// An event of a trace: all members that any kind of event has.
struct Event {
  static constexpr std::array<std::string_view, 10> kKeys = {"ph",   "pid", "tid",  "ts", "dur",
                                                             "name", "cat", "args", "id", "bp"};
  enum Key : std::uint8_t { Phase, Process, Thread, Start, Duration, Name, Category, Args, Id };
  static constexpr std::array<std::string_view, 11> kArguments = {
      "phase", "layer", "microbatch", "group", "bytes",     "flop",
      "span",  "name",  "stream",     "peer",  "sort_index"};
  enum Argument : std::uint8_t {
    OpPhase,
    Layer,
    Microbatch,
    OfGroup,
    Amount,
    Work,
    SpanIndex,
    Label,
    OfStream,
    Peer
  };

  std::string_view phase, name, category;
  std::int32_t process = 0;
  std::int64_t thread = 0, id = 0, span = 0;
  double start_us = 0.0, duration_us = 0.0, bytes = 0.0;
  std::string_view label;
  Stream stream{};
  std::int32_t peer = -1;
  Span op;
  Members has, has_argument;
};

void take_argument(Event& event, std::size_t place, od::value value) {
  switch (place) {
    case Event::OpPhase:
      event.op.phase = choice_in<Phase>(value);
      break;
    case Event::Layer:
      event.op.layer = index_in(value);
      break;
    case Event::Microbatch:
      event.op.microbatch = index_in(value);
      break;
    case Event::OfGroup:
      event.op.group = choice_in<Group>(value);
      break;
    case Event::Amount:
      event.bytes = amount_in(value);
      break;
    case Event::Work:
      event.op.flop = Flop(amount_in(value));
      break;
    case Event::SpanIndex:
      event.span = index_in(value);
      break;
    case Event::Label:
      event.label = value.get_string();
      break;
    case Event::OfStream:
      event.stream = choice_in<Stream>(value);
      break;
    case Event::Peer:
      event.peer = index_in(value, -1);
      break;
    default:
      index_in(value);
  }
}

void take_member(Event& event, std::size_t place, od::value value) {
  switch (place) {
    case Event::Phase:
      event.phase = value.get_string();
      break;
    case Event::Process:
      event.process = index_in(value);
      break;
    case Event::Thread:
      event.thread = index_in(value);
      break;
    case Event::Start:
      event.start_us = number_in(value, 1e15);
      break;
    case Event::Duration:
      event.duration_us = number_in(value, 1e15);
      break;
    case Event::Name:
      event.name = value.get_string();
      break;
    case Event::Category:
      event.category = value.get_string();
      break;
    case Event::Args:
      event.has_argument = for_members(
          value.get_object(), Event::kArguments,
          [&](std::size_t argument, od::value of) { take_argument(event, argument, of); });
      break;
    case Event::Id:
      event.id = index_in(value);
      break;
    default:
      value.get_string().value();
  }
}

// Files hold whole nanoseconds as microseconds.
Seconds seconds_of(double microseconds) {
  return Seconds(std::round(microseconds * 1e3) / 1e9);
}

// Goes through the events in the order in which they are written, as read_perfetto() does.
class EventReader {
 public:
  explicit EventReader(Timeline& timeline) : timeline_(timeline) {}

  void read(od::object object) {
    Event event;
    event.has = for_members(object, Event::kKeys, [&event](std::size_t place, od::value value) {
      take_member(event, place, value);
    });
    expect(event.phase.size() == 1 && event.has.has(Event::Args));
    switch (event.phase.front()) {
      case 'X':
        return add_span(event);
      case 'C':
        return add_level(event);
      case 's':
        sent_[event.id] = span_of(event);
        return;
      case 'f':
        return add_flow(event);
      case 'M':
        return add_name(event);
      default:
        throw Unusual{};
    }
  }

 private:
  struct Thread {
    Stream stream{};
    std::int32_t peer = -1;
  };

  void add_name(const Event& event) {
    expect(event.has.has(Event::Name) && event.has.has(Event::Process));
    if (event.name == "process_name") {
      expect(event.has_argument.has(Event::Label));
      timeline_.ranks.push_back({event.process, std::string(event.label)});
      ranks_.add(event.process);
    } else if (event.name == "thread_name") {
      expect(event.has.has(Event::Thread) && event.has_argument.has(Event::OfStream) &&
             event.has_argument.has(Event::Peer));
      threads_[{event.process, event.thread}] = {event.stream, event.peer};
    }
  }

  void add_span(Event& event) {
    expect(event.has.has_first(Event::Args) && event.has_argument.has(Event::OpPhase) &&
           ranks_.contains(event.process));
    const auto thread = threads_.find({event.process, event.thread});
    expect(thread != threads_.end());
    Span& span = event.op;
    span.rank = event.process;
    span.stream = thread->second.stream;
    span.peer = thread->second.peer;
    span.name = event.name;
    span.start = seconds_of(event.start_us);
    span.duration = seconds_of(event.duration_us);
    span.kind = choice_in<OpKind>(event.category);
    span.bytes = Bytes(event.bytes);
    timeline_.spans.push_back(std::move(span));
  }

  std::uint32_t span_of(const Event& event) const {
    expect(event.has.has(Event::Id) && event.has_argument.has(Event::SpanIndex) &&
           static_cast<std::size_t>(event.span) < timeline_.spans.size());
    return static_cast<std::uint32_t>(event.span);
  }

  void add_flow(const Event& event) {
    const std::uint32_t to = span_of(event);
    const auto sent = sent_.find(event.id);
    expect(sent != sent_.end());
    timeline_.flows.push_back({sent->second, to});
  }

  void add_level(const Event& event) {
    expect(event.has.has(Event::Process) && event.has.has(Event::Start) &&
           event.has_argument.has(Event::Amount) && ranks_.contains(event.process));
    timeline_.memory.push_back({event.process, seconds_of(event.start_us), Bytes(event.bytes)});
  }

  Timeline& timeline_;
  KnownRanks ranks_;
  std::map<std::pair<std::int32_t, std::int64_t>, Thread> threads_;
  // The span of each message by its id.
  std::map<std::int64_t, std::uint32_t> sent_;
};

Timeline trace_in(Text& text) {
  static constexpr std::array<std::string_view, 3> kKeys = {"otherData", "traceEvents",
                                                            "displayTimeUnit"};
  static constexpr std::array<std::string_view, 2> kWriterKeys = {"writer", "origin"};
  Timeline timeline;
  EventReader events(timeline);
  Members writer;
  const Members members =
      for_members(text.object(), kKeys, [&](std::size_t place, od::value value) {
        if (place == 0)
          writer =
              for_members(value.get_object(), kWriterKeys, [&](std::size_t which, od::value of) {
                if (which == 0) expect(std::string_view(of.get_string()) == kTraceWriter);
                if (which == 1) timeline.origin = choice_in<TimelineOrigin>(of);
              });
        if (place == 1) text.for_rows(value, [&](od::object row) { events.read(row); });
        if (place == 2) value.get_string().value();
      });
  expect(members.has_first(2) && writer.has_first(2));
  text.end();
  return timeline;
}

}  // namespace

std::optional<Timeline> read_usual_trace(std::string_view text, const ReadingWatch& watch) {
  return if_usual(text, watch, trace_in);
}

}  // namespace shardwright
