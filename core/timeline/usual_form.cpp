#include "core/timeline/usual_form.hpp"

#include <array>
#include <fstream>
#include <memory>

#include "core/timeline/perfetto.hpp"
#include "core/timeline/usual_json.hpp"

namespace shardwright {
namespace {

using namespace usual;

TimelineRank rank_in(od::object object) {
  static constexpr std::array<std::string_view, 5> kKeys = {"rank", "label", "host", "clock_s",
                                                            "issue_s"};
  TimelineRank rank;
  const Members members = for_members(object, kKeys, [&rank](std::size_t place, od::value value) {
    if (place == 0) rank.rank = index_in(value);
    if (place == 1) rank.label = text_in(value);
    if (place == 2) rank.host = text_in(value);
    if (place == 3) rank.clock = Seconds(amount_in(value));
    if (place == 4) rank.issue = Seconds(amount_in(value));
  });
  expect(members.has_first(2));
  return rank;
}

Span span_in(od::object object) {
  static constexpr std::array<std::string_view, 13> kKeys = {
      "rank", "stream", "name",       "start_s", "duration_s", "kind", "phase",
      "peer", "layer",  "microbatch", "group",   "bytes",      "flop"};
  Span span;
  const Members members = for_members(object, kKeys, [&span](std::size_t place, od::value value) {
    switch (place) {
      case 0:
        span.rank = index_in(value);
        break;
      case 1:
        span.stream = choice_in<Stream>(value);
        break;
      case 2:
        span.name = text_in(value);
        break;
      case 3:
        span.start = time_in(value);
        break;
      case 4:
        span.duration = time_in(value);
        break;
      case 5:
        span.kind = choice_in<OpKind>(value);
        break;
      case 6:
        span.phase = choice_in<Phase>(value);
        break;
      case 7:
        span.peer = index_in(value);
        break;
      case 8:
        span.layer = index_in(value);
        break;
      case 9:
        span.microbatch = index_in(value);
        break;
      case 10:
        span.group = choice_in<Group>(value);
        break;
      case 11:
        span.bytes = Bytes(amount_in(value));
        break;
      default:
        span.flop = Flop(amount_in(value));
    }
  });
  expect(members.has_first(7));
  return span;
}

Flow flow_in(od::object object) {
  static constexpr std::array<std::string_view, 2> kKeys = {"from", "to"};
  Flow flow;
  const Members members = for_members(object, kKeys, [&flow](std::size_t place, od::value value) {
    (place == 0 ? flow.from : flow.to) = static_cast<std::uint32_t>(index_in(value));
  });
  expect(members.has_first(2));
  return flow;
}

MemoryLevel level_in(od::object object) {
  static constexpr std::array<std::string_view, 3> kKeys = {"rank", "time_s", "bytes"};
  MemoryLevel level;
  const Members members = for_members(object, kKeys, [&level](std::size_t place, od::value value) {
    if (place == 0) level.rank = index_in(value);
    if (place == 1) level.time = time_in(value);
    if (place == 2) level.level = Bytes(amount_in(value));
  });
  expect(members.has_first(3));
  return level;
}

// Members may come in any order, so that this is known only at the end.
void check_references(const Timeline& timeline) {
  KnownRanks ranks;
  for (const TimelineRank& rank : timeline.ranks) expect(ranks.add(rank.rank));
  for (const Span& span : timeline.spans) expect(ranks.contains(span.rank));
  for (const MemoryLevel& level : timeline.memory) expect(ranks.contains(level.rank));
  for (const Flow& flow : timeline.flows)
    expect(std::max(flow.from, flow.to) < timeline.spans.size());
}

Timeline timeline_in(Text& text) {
  static constexpr std::array<std::string_view, 8> kKeys = {"schema", "version", "origin", "ranks",
                                                            "spans",  "flows",   "memory", "step"};
  Timeline timeline;
  const Members members =
      for_members(text.object(), kKeys, [&](std::size_t place, od::value value) {
        if (place == 0) expect(std::string_view(value.get_string()) == kTimelineSchema);
        if (place == 1) expect(value.get_int64() == 1);
        if (place == 2) timeline.origin = choice_in<TimelineOrigin>(value);
        if (place == 3)
          text.for_rows(value, [&](od::object row) { timeline.ranks.push_back(rank_in(row)); });
        if (place == 4)
          text.for_rows(value, [&](od::object row) { timeline.spans.push_back(span_in(row)); });
        if (place == 5)
          text.for_rows(value, [&](od::object row) { timeline.flows.push_back(flow_in(row)); });
        if (place == 6)
          text.for_rows(value, [&](od::object row) { timeline.memory.push_back(level_in(row)); });
        if (place == 7) timeline.step = integer_in(value, 0, 1'000'000'000'000);
      });
  expect(members.has_first(7));
  check_references(timeline);
  text.end();
  return timeline;
}

}  // namespace

std::optional<Timeline> read_usual_timeline(std::string_view text, const ReadingWatch& watch) {
  return if_usual(text, watch, timeline_in);
}

std::optional<Timeline> read_usual_file(const std::filesystem::path& file,
                                        std::uintmax_t most_bytes, const ReadingWatch& watch) {
  constexpr std::size_t kHead = 256;
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) return std::nullopt;
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  if (error || size > most_bytes) return std::nullopt;
  std::ifstream stream(file, std::ios::binary);
  std::array<char, kHead> first{};
  stream.read(first.data(), kHead);
  const std::string_view head(first.data(), static_cast<std::size_t>(stream.gcount()));
  const auto names = [head](const char* what) {
    return head.find('"' + std::string(what) + '"') != std::string_view::npos;
  };
  const bool is_trace = names(kTraceWriter);
  if (!is_trace && !names(kTimelineSchema)) return std::nullopt;
  stream.clear();
  stream.seekg(0);
  const auto bytes = std::make_unique_for_overwrite<char[]>(size + kTextPadding);
  stream.read(bytes.get(), static_cast<std::streamsize>(size));
  const std::string_view text(bytes.get(), static_cast<std::size_t>(stream.gcount()));
  std::fill_n(bytes.get() + text.size(), kTextPadding, ' ');
  return is_trace ? read_usual_trace(text, watch) : read_usual_timeline(text, watch);
}

}  // namespace shardwright
