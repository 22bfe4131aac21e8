#include <fmt/format.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/json_reader.hpp"
#include "core/timeline/perfetto.hpp"

namespace shardwright {
namespace {

constexpr IntegerRange kEventIndex{0, 2'000'000'000};
constexpr IntegerRange kEventIndexOrNone{-1, 2'000'000'000};
constexpr NumberRange kMicroseconds{0.0, 1e15, false};

Seconds from_nanoseconds(double ns) {
  // A division gives the nearest double, unlike a product.
  return Seconds(ns / 1e9);
}

// Goes through the events of one trace in the order in which they are written: names of processes
// and threads, spans, messages, levels of memory.
class Reader {
 public:
  Reader(const nlohmann::json& document, const std::string& source) : problems_(source) {
    ObjectReader trace(document, "", problems_);
    ObjectReader writer = trace.object("otherData");
    const std::string name = writer.text("writer");
    if (problems_.empty() && name != kTraceWriter) {
      writer.problem("writer", fmt::format("\"{}\"", name),
                     "a trace that shardwright simulate or shardwright calibrate wrote");
    }
    problems_.throw_if_any();
    timeline_.origin = writer.choice<TimelineOrigin>("origin");
    for (ObjectReader& event : trace.objects("traceEvents")) read_event(event);
    problems_.throw_if_any();
  }

  Timeline take() { return std::move(timeline_); }

 private:
  // Process and thread.
  using ThreadKey = std::pair<std::int64_t, std::int64_t>;
  struct Thread {
    Stream stream = Stream::Compute;
    std::int32_t peer = -1;
  };

  void read_event(ObjectReader& event) {
    static const std::vector<std::string> kPhases = {"M", "X", "s", "f", "C"};
    const std::string phase = event.text("ph");
    if (phase == "M") return read_name(event);
    if (phase == "X") return read_span(event);
    if (phase == "s") return read_send(event);
    if (phase == "f") return read_receive(event);
    if (phase == "C") return read_level(event);
    event.problem("ph", fmt::format("\"{}\"", phase), "one of M, X, s, f, C");
  }

  void read_name(ObjectReader& event) {
    const std::string what = event.text("name");
    ObjectReader arguments = event.object("args");
    if (what == "process_name") {
      TimelineRank rank;
      rank.rank = static_cast<std::int32_t>(event.integer("pid", kEventIndex));
      rank.label = arguments.text("name");
      ranks_.insert(rank.rank);
      timeline_.ranks.push_back(std::move(rank));
    } else if (what == "thread_name") {
      Thread& thread = threads_[key_of(event)];
      thread.stream = arguments.choice<Stream>("stream");
      thread.peer = static_cast<std::int32_t>(arguments.integer("peer", kEventIndexOrNone));
    }
  }

  void read_span(ObjectReader& event) {
    ObjectReader arguments = event.object("args");
    const Thread thread = thread_of(event);
    Span span;
    span.rank = rank_of(event);
    span.stream = thread.stream;
    span.peer = thread.peer;
    span.name = event.text("name");
    span.start = from_nanoseconds(nanoseconds(event, "ts"));
    span.duration = from_nanoseconds(nanoseconds(event, "dur"));
    span.kind = event.choice<OpKind>("cat");
    span.phase = arguments.choice<Phase>("phase");
    span.layer = static_cast<std::int32_t>(arguments.integer_or("layer", -1, kEventIndex));
    span.microbatch =
        static_cast<std::int32_t>(arguments.integer_or("microbatch", -1, kEventIndex));
    if (arguments.has("group")) span.group = arguments.choice<Group>("group");
    span.bytes = Bytes(arguments.number_or("bytes", 0.0, kNonNegative));
    span.flop = Flop(arguments.number_or("flop", 0.0, kNonNegative));
    timeline_.spans.push_back(std::move(span));
  }

  // Spans are numbered as they are written, and written before the messages.
  std::uint32_t span_of(ObjectReader& event) {
    ObjectReader arguments = event.object("args");
    const std::int64_t index = arguments.integer("span", kEventIndex);
    if (static_cast<std::size_t>(index) >= timeline_.spans.size())
      arguments.problem("span", std::to_string(index),
                        fmt::format("the index of one of {} spans", timeline_.spans.size()));
    return static_cast<std::uint32_t>(index);
  }

  void read_send(ObjectReader& event) { sent_[event.integer("id", kEventIndex)] = span_of(event); }

  void read_receive(ObjectReader& event) {
    const auto sent = sent_.find(event.integer("id", kEventIndex));
    if (sent == sent_.end()) return event.problem("id", "no send", "the id of an earlier send");
    timeline_.flows.push_back({sent->second, span_of(event)});
  }

  void read_level(ObjectReader& event) {
    MemoryLevel level;
    level.rank = rank_of(event);
    level.time = from_nanoseconds(nanoseconds(event, "ts"));
    level.level = Bytes(event.object("args").number("bytes", kNonNegative));
    timeline_.memory.push_back(level);
  }

  std::int32_t rank_of(ObjectReader& event) {
    const auto rank = static_cast<std::int32_t>(event.integer("pid", kEventIndex));
    if (!ranks_.contains(rank))
      event.problem("pid", std::to_string(rank), "a process that an earlier event names");
    return rank;
  }

  Thread thread_of(ObjectReader& event) {
    const auto thread = threads_.find(key_of(event));
    if (thread != threads_.end()) return thread->second;
    event.problem("tid", "a thread without a name", "a thread that an earlier event names");
    return {};
  }

  static ThreadKey key_of(ObjectReader& event) {
    return {event.integer("pid", kEventIndex), event.integer("tid", kEventIndex)};
  }

  static double nanoseconds(ObjectReader& event, const std::string& key) {
    return std::round(event.number(key, kMicroseconds) * 1e3);
  }

  ProblemList problems_;
  Timeline timeline_;
  std::set<std::int32_t> ranks_;
  std::map<ThreadKey, Thread> threads_;
  // The span of each message by its id.
  std::map<std::int64_t, std::uint32_t> sent_;
};

}  // namespace

Timeline read_perfetto(const nlohmann::json& document, const std::string& source) {
  return Reader(document, source).take();
}

}  // namespace shardwright
