#include "calibration/traces/kineto.hpp"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <deque>
#include <future>
#include <map>
#include <thread>
#include <utility>

#include "calibration/traces/json_numbers.hpp"
#include "calibration/traces/json_pieces.hpp"
#include "calibration/traces/kineto_part.hpp"
#include "core/base/error.hpp"
#include "core/base/quantity_text.hpp"

namespace shardwright::calibration {
namespace {

namespace ondemand = simdjson::ondemand;

// The text of a part.
constexpr std::size_t kPartBytes = 1U << 21U;
constexpr unsigned kMostThreads = 16;

// True of flow arrows, marks and names of threads, which nobody uses: events of other phases than
// "X" and "B", which profilers write first. Their text is not kept.
bool is_of_another_phase(std::string_view event) {
  constexpr std::string_view kPhase = "\"ph\": \"";
  const std::size_t first = std::min(event.find('"'), event.size());
  const std::string_view member = event.substr(first, kPhase.size() + 1);
  return member.size() > kPhase.size() && member.starts_with(kPhase) && member.back() != 'X' &&
         member.back() != 'B';
}

// Reads parts of the events in threads, and puts them together in their order.
class KinetoParts {
 public:
  explicit KinetoParts(const std::string& source) : source_(source) {}

  void add(std::string_view event, std::size_t index) {
    if (text_.ends.empty()) {
      text_.first = index;
      text_.text.reserve(kPartBytes + kPartBytes / 8);
    }
    text_.append(is_of_another_phase(event) ? std::string_view() : event);
    if (text_.text.size() >= kPartBytes) start_part();
  }

  // Throws the first problem of the events.
  KinetoPart finish() {
    if (!text_.ends.empty()) start_part();
    while (!reading_.empty()) take_part();
    return std::move(whole_);
  }

 private:
  void start_part() {
    // Text is split on this thread meanwhile, which is not fast enough for more than some threads.
    const std::size_t most = std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
    while (reading_.size() >= most) take_part();
    reading_.push_back(std::async(
        std::launch::async,
        [this](KinetoText text) { return read_kineto_part(std::move(text), source_); },
        std::exchange(text_, {})));
  }

  void take_part() {
    std::future<KinetoPart> first = std::move(reading_.front());
    reading_.pop_front();
    whole_.append(first.get());
  }

  const std::string& source_;
  KinetoText text_;
  KinetoPart whole_;
  std::deque<std::future<KinetoPart>> reading_;
};

class KinetoReader {
 public:
  explicit KinetoReader(const std::string& source) : source_(source), parts_(source) {
    trace_.file = source;
  }

  Trace read(const ByteSource& bytes) {
    JsonPieces pieces;
    pieces.array = "traceEvents";
    pieces.element = [this](std::string_view text, std::size_t index) { parts_.add(text, index); };
    pieces.member = [this](std::string_view key, std::string_view text) { read_member(key, text); };
    bool found = false;
    try {
      found = read_json_pieces(bytes, source_, pieces);
    } catch (const InputError&) {
      // A problem of an event before that place comes first.
      parts_.finish();
      throw;
    }
    if (!found)
      throw InputError(source_, {{"/traceEvents", "nothing",
                                  "an array of events, as PyTorch's profiler writes it"}});
    finish(parts_.finish());
    return std::move(trace_);
  }

 private:
  template <class Read>
  void parse(std::string_view text, Read read) {
    ondemand::document document = parser_.iterate(
        simdjson::padded_string_view(text.data(), text.size(), text.size() + kPiecePadding));
    read(document);
  }

  void read_member(std::string_view key, std::string_view text) {
    const bool is_known =
        key == "distributedInfo" || key == "deviceProperties" || key == "baseTimeNanoseconds";
    if (!is_known || text == "null") return;
    try {
      if (key == "baseTimeNanoseconds") {
        trace_.clock_offset = integer_in(text);
      } else if (key == "distributedInfo") {
        parse(text, [this](ondemand::document& document) { read_distribution(document); });
      } else {
        parse(text, [this](ondemand::document& document) { read_devices(document); });
      }
    } catch (const simdjson::simdjson_error& error) {
      throw InputError(source_, {{fmt::format("/{}", key), error.what(),
                                  "what PyTorch's profiler writes there"}});
    }
  }

  void read_distribution(ondemand::document& document) {
    for (ondemand::field field : document.get_object()) {
      const std::string_view key = field.unescaped_key();
      ondemand::value value = field.value();
      if (key == "rank") trace_.rank = integer_in(value.raw_json_token());
      if (key == "world_size") trace_.world_size = integer_in(value.raw_json_token());
    }
    if (trace_.world_size && *trace_.world_size < 1) trace_.world_size.reset();
  }

  void read_devices(ondemand::document& document) {
    std::int64_t position = 0;
    for (ondemand::object device : document.get_array()) {
      std::int64_t id = position++;
      std::string name;
      for (ondemand::field field : device) {
        const std::string_view key = field.unescaped_key();
        ondemand::value value = field.value();
        if (key == "id") id = integer_in(value.raw_json_token()).value_or(id);
        std::string_view text;
        if (key == "name" && value.get_string().get(text) == simdjson::SUCCESS) name = text;
      }
      device_names_.emplace(id, name);
    }
  }

  void finish(KinetoPart part) {
    trace_.names = std::move(part.trace.names);
    trace_.activities = std::move(part.trace.activities);
    trace_.collectives = std::move(part.trace.collectives);
    trace_.gradients = std::move(part.trace.gradients);
    trace_.unusable_events = part.trace.unusable_events;
    if (part.begin_events > 0)
      trace_.gaps.push_back(
          fmt::format("Begin and end of {} on devices are apart (\"ph\": \"B\"), which is not "
                      "read: they do not count.",
                      format_plural(part.begin_events, "event")));
    if (part.begin <= part.end) {
      trace_.begin = part.begin;
      trace_.end = part.end;
    }
    const std::int64_t device = trace_.activities.empty() ? 0 : trace_.activities.front().device;
    const auto named = device_names_.find(device);
    if (named != device_names_.end())
      trace_.gpu = named->second;
    else if (!device_names_.empty())
      trace_.gpu = device_names_.begin()->second;
    std::stable_sort(trace_.gradients.begin(), trace_.gradients.end(),
                     [](const GradientMark& a, const GradientMark& b) { return a.time < b.time; });
    link_to_host(trace_, std::move(part.record));
  }

  const std::string& source_;
  ondemand::parser parser_;
  Trace trace_;
  KinetoParts parts_;
  std::map<std::int64_t, std::string> device_names_;
};

}  // namespace

Trace read_kineto(const ByteSource& bytes, const std::string& source) {
  return KinetoReader(source).read(bytes);
}

}  // namespace shardwright::calibration
