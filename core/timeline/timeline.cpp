#include "core/timeline/timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>

#include "core/base/json_reader.hpp"

namespace shardwright {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::int64_t kVersion = 1;
constexpr IntegerRange kIndex{0, 2'000'000'000};
// The limits of a time in seconds.
constexpr NumberRange kTime{0.0, 1e9, false};

Json rank_json(const TimelineRank& rank) {
  Json json = {{"rank", rank.rank}, {"label", rank.label}};
  if (rank.host.empty()) return json;
  json["host"] = rank.host;
  json["clock_s"] = rank.clock.value();
  json["issue_s"] = rank.issue.value();
  return json;
}

// Leaves out the members that do not apply to a span.
Json span_json(const Span& span) {
  Json json = {{"rank", span.rank},
               {"stream", name_of(span.stream)},
               {"name", span.name},
               {"start_s", span.start.value()},
               {"duration_s", span.duration.value()},
               {"kind", name_of(span.kind)},
               {"phase", name_of(span.phase)}};
  if (span.peer >= 0) json["peer"] = span.peer;
  if (span.layer >= 0) json["layer"] = span.layer;
  if (span.microbatch >= 0) json["microbatch"] = span.microbatch;
  if (span.group) json["group"] = name_of(*span.group);
  if (span.bytes.value() > 0.0) json["bytes"] = span.bytes.value();
  if (span.flop.value() > 0.0) json["flop"] = span.flop.value();
  return json;
}

Json flow_json(const Flow& flow) {
  return {{"from", flow.from}, {"to", flow.to}};
}

Json level_json(const MemoryLevel& level) {
  return {{"rank", level.rank}, {"time_s", level.time.value()}, {"bytes", level.level.value()}};
}

template <class Row>
Json rows_json(const std::vector<Row>& rows, Json (*json_of)(const Row&)) {
  Json json = Json::array();
  for (const Row& row : rows) json.push_back(json_of(row));
  return json;
}

template <class Row>
void write_rows(std::ostream& stream, const char* key, const std::vector<Row>& rows,
                Json (*json_of)(const Row&)) {
  stream << ",\n \"" << key << "\": [";
  const char* separator = "\n  ";
  for (const Row& row : rows) {
    stream << separator << json_of(row).dump();
    separator = ",\n  ";
  }
  stream << (rows.empty() ? "]" : "\n ]");
}

std::int32_t index_or_none(ObjectReader& object, const std::string& key) {
  return object.has(key) ? static_cast<std::int32_t>(object.integer(key, kIndex)) : -1;
}

Span read_span(ObjectReader& object) {
  Span span;
  span.rank = static_cast<std::int32_t>(object.integer("rank", kIndex));
  span.stream = object.choice<Stream>("stream");
  span.name = object.text("name");
  span.start = Seconds(object.number("start_s", kTime));
  span.duration = Seconds(object.number("duration_s", kTime));
  span.kind = object.choice<OpKind>("kind");
  span.phase = object.choice<Phase>("phase");
  span.peer = index_or_none(object, "peer");
  span.layer = index_or_none(object, "layer");
  span.microbatch = index_or_none(object, "microbatch");
  if (object.has("group")) span.group = object.choice<Group>("group");
  span.bytes = Bytes(object.number_or("bytes", 0.0, kNonNegative));
  span.flop = Flop(object.number_or("flop", 0.0, kNonNegative));
  object.refuse_unknown_keys();
  return span;
}

std::uint32_t read_span_index(ObjectReader& object, const std::string& key, std::size_t spans) {
  const std::int64_t index = object.integer(key, kIndex);
  if (static_cast<std::size_t>(index) >= spans)
    object.problem(key, std::to_string(index), fmt::format("the index of one of {} spans", spans));
  return static_cast<std::uint32_t>(index);
}

// Returns those that are listed.
std::set<std::int32_t> read_ranks(ObjectReader& object, Timeline& timeline) {
  std::set<std::int32_t> ranks;
  for (ObjectReader& each : object.objects("ranks")) {
    TimelineRank rank;
    rank.rank = static_cast<std::int32_t>(each.integer("rank", kIndex));
    rank.label = each.text("label");
    rank.host = each.text_or("host", "");
    rank.clock = Seconds(each.number_or("clock_s", 0.0, kNonNegative));
    rank.issue = Seconds(each.number_or("issue_s", 0.0, kNonNegative));
    each.refuse_unknown_keys();
    if (!ranks.insert(rank.rank).second)
      each.problem("rank", std::to_string(rank.rank), "each rank once");
    timeline.ranks.push_back(std::move(rank));
  }
  return ranks;
}

void read_spans(ObjectReader& object, const std::set<std::int32_t>& ranks, Timeline& timeline) {
  for (ObjectReader& each : object.objects("spans")) {
    timeline.spans.push_back(read_span(each));
    if (!ranks.contains(timeline.spans.back().rank))
      each.problem("rank", std::to_string(timeline.spans.back().rank), "one of the ranks listed");
  }
}

void read_memory(ObjectReader& object, const std::set<std::int32_t>& ranks, Timeline& timeline) {
  for (ObjectReader& each : object.objects("memory")) {
    MemoryLevel level;
    level.rank = static_cast<std::int32_t>(each.integer("rank", kIndex));
    level.time = Seconds(each.number("time_s", kTime));
    level.level = Bytes(each.number("bytes", kNonNegative));
    if (!ranks.contains(level.rank))
      each.problem("rank", std::to_string(level.rank), "one of the ranks listed");
    each.refuse_unknown_keys();
    timeline.memory.push_back(level);
  }
}

}  // namespace

nlohmann::ordered_json to_json(const Timeline& timeline) {
  nlohmann::ordered_json document = {
      {"schema", kTimelineSchema}, {"version", kVersion}, {"origin", name_of(timeline.origin)}};
  if (timeline.step) document["step"] = *timeline.step;
  document["ranks"] = rows_json(timeline.ranks, rank_json);
  document["spans"] = rows_json(timeline.spans, span_json);
  document["flows"] = rows_json(timeline.flows, flow_json);
  document["memory"] = rows_json(timeline.memory, level_json);
  return document;
}

void write_timeline(const Timeline& timeline, std::ostream& stream) {
  stream << fmt::format("{{\"schema\": \"{}\",\n \"version\": {},\n \"origin\": \"{}\"",
                        kTimelineSchema, kVersion, name_of(timeline.origin));
  if (timeline.step) stream << fmt::format(",\n \"step\": {}", *timeline.step);
  write_rows(stream, "ranks", timeline.ranks, rank_json);
  write_rows(stream, "spans", timeline.spans, span_json);
  write_rows(stream, "flows", timeline.flows, flow_json);
  write_rows(stream, "memory", timeline.memory, level_json);
  stream << "}\n";
}

Timeline read_timeline(const nlohmann::json& document, const std::string& source) {
  ProblemList problems(source);
  ObjectReader object(document, "", problems);
  const std::string schema = object.text("schema");
  if (!schema.empty() && schema != kTimelineSchema)
    object.problem("schema", fmt::format("\"{}\"", schema), fmt::format("\"{}\"", kTimelineSchema));
  object.integer("version", {kVersion, kVersion});
  Timeline timeline;
  timeline.origin = object.choice<TimelineOrigin>("origin");
  if (object.has("step")) timeline.step = object.integer("step", {0});
  const std::set<std::int32_t> ranks = read_ranks(object, timeline);
  read_spans(object, ranks, timeline);
  for (ObjectReader& each : object.objects("flows")) {
    const std::uint32_t from = read_span_index(each, "from", timeline.spans.size());
    timeline.flows.push_back({from, read_span_index(each, "to", timeline.spans.size())});
    each.refuse_unknown_keys();
  }
  read_memory(object, ranks, timeline);
  object.refuse_unknown_keys();
  problems.throw_if_any();
  return timeline;
}

}  // namespace shardwright
