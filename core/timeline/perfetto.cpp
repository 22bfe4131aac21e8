#include "core/timeline/perfetto.hpp"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <tuple>

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

// The longest time in seconds: the whole nanoseconds of a 64-bit integer end with a century.
constexpr double kLongest = 4e9;

std::int64_t nanoseconds(Seconds time) {
  return std::llround(std::min(time.value(), kLongest) * 1e9);
}

std::string microseconds_text(std::int64_t ns) {
  return fmt::format("{}.{:03}", ns / 1000, ns % 1000);
}

std::string quoted(const std::string& text) {
  return Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Writes the events of one timeline, separated by commas.
class Writer {
 public:
  Writer(const Timeline& timeline, std::ostream& out) : timeline_(timeline), out_(out) {}

  void write() {
    number_threads();
    fmt::print(
        out_,
        R"({{"displayTimeUnit":"ms","otherData":{{"writer":"{}","origin":"{}"}},"traceEvents":[)",
        kTraceWriter, name_of(timeline_.origin));
    write_names();
    for (const Span& span : timeline_.spans) write_span(span);
    for (std::size_t i = 0; i < timeline_.flows.size(); ++i) write_flow(i);
    for (const MemoryLevel& level : timeline_.memory) write_level(level);
    out_ << "\n]}\n";
  }

 private:
  // Rank, stream and peer.
  using ThreadKey = std::tuple<std::int32_t, Stream, std::int32_t>;

  static ThreadKey key_of(const Span& span) { return {span.rank, span.stream, span.peer}; }

  // Numbers threads in the order of ranks, streams and peers; each rank counts its own.
  void number_threads() {
    for (const Span& span : timeline_.spans) threads_.emplace(key_of(span), 0);
    std::map<std::int32_t, int> of_rank;
    for (auto& [key, number] : threads_) number = ++of_rank[std::get<0>(key)];
  }

  void begin_event() {
    out_ << (first_ ? "\n" : ",\n");
    first_ = false;
  }

  void write_metadata(std::int32_t pid, int tid, const char* what, const std::string& argument) {
    begin_event();
    fmt::print(out_, R"({{"ph":"M","pid":{},"tid":{},"name":"{}","args":{{{}}}}})", pid, tid, what,
               argument);
  }

  void write_names() {
    for (const TimelineRank& rank : timeline_.ranks) {
      write_metadata(rank.rank, 0, "process_name", "\"name\":" + quoted(rank.label));
      write_metadata(rank.rank, 0, "process_sort_index",
                     fmt::format("\"sort_index\":{}", rank.rank));
    }
    for (const auto& [key, number] : threads_) {
      const auto& [rank, stream, peer] = key;
      const std::string name =
          peer < 0 ? name_of(stream) : fmt::format("{} (peer {})", name_of(stream), peer);
      write_metadata(
          rank, number, "thread_name",
          fmt::format(R"("name":"{}","stream":"{}","peer":{})", name, name_of(stream), peer));
      write_metadata(rank, number, "thread_sort_index", fmt::format("\"sort_index\":{}", number));
    }
  }

  void write_span(const Span& span) {
    const std::int64_t start = nanoseconds(span.start);
    begin_event();
    fmt::print(
        out_, R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{)",
        span.rank, threads_.at(key_of(span)), microseconds_text(start),
        microseconds_text(nanoseconds(span.end()) - start), quoted(span.name), name_of(span.kind));
    fmt::print(out_, R"("phase":"{}")", name_of(span.phase));
    if (span.layer >= 0) fmt::print(out_, R"(,"layer":{})", span.layer);
    if (span.microbatch >= 0) fmt::print(out_, R"(,"microbatch":{})", span.microbatch);
    if (span.group) fmt::print(out_, R"(,"group":"{}")", name_of(*span.group));
    if (span.bytes.value() > 0.0) fmt::print(out_, R"(,"bytes":{})", span.bytes.value());
    if (span.flop.value() > 0.0) fmt::print(out_, R"(,"flop":{})", span.flop.value());
    out_ << "}}";
  }

  // An arrow binds to the spans that enclose its ends.
  void write_flow(std::size_t index) {
    const Flow& flow = timeline_.flows[index];
    write_arrow_end(index, flow.from, "s", nanoseconds(timeline_.spans[flow.from].start), "");
    write_arrow_end(index, flow.to, "f", nanoseconds(timeline_.spans[flow.to].end()),
                    R"(,"bp":"e")");
  }

  void write_arrow_end(std::size_t id, std::uint32_t index, const char* phase, std::int64_t ns,
                       const char* binding) {
    const Span& span = timeline_.spans[index];
    begin_event();
    fmt::print(
        out_,
        R"({{"ph":"{}","id":{},"pid":{},"tid":{},"ts":{},"name":"message","cat":"message","args":{{"span":{}}}{}}})",
        phase, id, span.rank, threads_.at(key_of(span)), microseconds_text(ns), index, binding);
  }

  void write_level(const MemoryLevel& level) {
    begin_event();
    fmt::print(out_, R"({{"ph":"C","pid":{},"ts":{},"name":"memory","args":{{"bytes":{}}}}})",
               level.rank, microseconds_text(nanoseconds(level.time)), level.level.value());
  }

  const Timeline& timeline_;
  std::ostream& out_;
  std::map<ThreadKey, int> threads_;
  bool first_ = true;
};

}  // namespace

void write_perfetto(const Timeline& timeline, std::ostream& out) {
  Writer(timeline, out).write();
}

}  // namespace shardwright
