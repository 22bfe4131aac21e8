#include "core/timeline/timeline.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "core/timeline/perfetto.hpp"
#include "tests/thrown.hpp"

namespace shardwright {
namespace {

Span span_of(std::int32_t rank, Stream stream, double start, double duration,
             const std::string& name) {
  Span span;
  span.rank = rank;
  span.stream = stream;
  span.start = Seconds(start);
  span.duration = Seconds(duration);
  span.name = name;
  return span;
}

// Two stages, one message between them.
Timeline two_stages() {
  Timeline timeline;
  timeline.origin = TimelineOrigin::Measured;
  timeline.ranks = {{0, "stage 0"}, {5, "stage \"1\""}};
  Span gemm = span_of(0, Stream::Compute, 0.0, 1e-3, "attention.qkv");
  gemm.flop = Flop(3e12);
  gemm.layer = 7;
  gemm.microbatch = 2;
  Span send = span_of(0, Stream::SendActivation, 1e-3, 2e-4, "send");
  send.kind = OpKind::Send;
  send.peer = 5;
  send.bytes = Bytes(16777216);
  send.group = Group::Pipeline;
  Span receive = span_of(5, Stream::ReceiveActivation, 1e-3, 2e-4, "receive");
  receive.kind = OpKind::Receive;
  receive.peer = 0;
  receive.group = Group::Pipeline;
  Span last = span_of(5, Stream::Compute, 1.2e-3, 1.0 / 3.0, "tab\there");
  last.phase = Phase::BackwardWeight;
  timeline.spans = {gemm, send, receive, last};
  timeline.flows = {{1, 2}};
  timeline.memory = {{0, Seconds(0), Bytes(1e9)}, {5, Seconds(1.2e-3), Bytes(2e9)}};
  return timeline;
}

nlohmann::json trace_of(const Timeline& timeline) {
  std::ostringstream out;
  write_perfetto(timeline, out);
  return nlohmann::json::parse(out.str());
}

std::vector<nlohmann::json> events(const nlohmann::json& trace, const std::string& phase) {
  std::vector<nlohmann::json> found;
  for (const auto& event : trace.at("traceEvents")) {
    if (event.at("ph") == phase) found.push_back(event);
  }
  return found;
}

TEST(Timeline, IsEqualAfterWritingAndReading) {
  Timeline timeline = two_stages();
  for (const auto& step : {std::optional<std::int64_t>(), std::optional<std::int64_t>(41)}) {
    timeline.step = step;
    const auto text = to_json(timeline).dump();
    EXPECT_EQ(read_timeline(nlohmann::json::parse(text), "test"), timeline);
  }
}

TEST(Timeline, IsTheSameDocumentWrittenPieceByPiece) {
  Timeline recorded;
  recorded.step = 41;
  for (const Timeline& timeline : {two_stages(), Timeline(), recorded}) {
    std::ostringstream out;
    write_timeline(timeline, out);
    EXPECT_EQ(nlohmann::ordered_json::parse(out.str()), to_json(timeline));
  }
}

TEST(Timeline, ReportsAllProblemsWithTheirPlaces) {
  nlohmann::json document = to_json(two_stages());
  document["spans"][0]["stream"] = "compote";
  document["spans"][1]["rank"] = 3;
  document["spans"][2]["duration_s"] = -1.0;
  document["flows"][0]["to"] = 4;
  document["memory"][0]["extra"] = true;
  EXPECT_EQ(problems_of([&document] { read_timeline(document, "test"); }),
            (std::vector<std::string>{"/spans/0/stream", "/spans/1/rank", "/spans/2/duration_s",
                                      "/flows/0/to", "/memory/0/extra"}));
}

TEST(Timeline, ListsEachRankOnce) {
  nlohmann::json document = to_json(two_stages());
  document["ranks"].push_back(document["ranks"][1]);
  const auto read = [&document] { read_timeline(document, "test"); };
  EXPECT_EQ(problems_of(read), std::vector<std::string>{"/ranks/2/rank"});
  EXPECT_NE(thrown_by(read).find("/ranks/2/rank: found 5;"), std::string::npos);
}

TEST(Perfetto, ShowsEachSpanOnceInMicroseconds) {
  const auto spans = events(trace_of(two_stages()), "X");
  ASSERT_EQ(spans.size(), 4U);
  EXPECT_EQ(spans[1].at("pid"), 0);
  EXPECT_DOUBLE_EQ(spans[1].at("ts").get<double>(), 1000.0);
  EXPECT_DOUBLE_EQ(spans[1].at("dur").get<double>(), 200.0);
  EXPECT_EQ(spans[3].at("name"), "tab\there");
  EXPECT_EQ(spans[0].at("args").at("layer"), 7);
}

TEST(Perfetto, NamesProcessesAndThreads) {
  const auto metadata = events(trace_of(two_stages()), "M");
  std::map<std::string, int> kinds;
  for (const auto& event : metadata) ++kinds[event.at("name")];
  EXPECT_EQ(kinds.at("process_name"), 2);
  EXPECT_EQ(kinds.at("process_sort_index"), 2);
  EXPECT_EQ(kinds.at("thread_name"), 4);
  EXPECT_EQ(kinds.at("thread_sort_index"), 4);
  EXPECT_EQ(metadata[2].at("args").at("name"), "stage \"1\"");
}

// Times of the sample are whole nanoseconds but for the last, which a trace rounds.
TEST(Perfetto, IsReadBackAsItWasWritten) {
  Timeline timeline = two_stages();
  timeline.spans.back().duration = Seconds(1.0 / 3.0);
  const Timeline read = read_perfetto(trace_of(timeline), "test");
  EXPECT_EQ(read.origin, timeline.origin);
  EXPECT_EQ(read.ranks, timeline.ranks);
  EXPECT_EQ(read.flows, timeline.flows);
  EXPECT_EQ(read.memory, timeline.memory);
  ASSERT_EQ(read.spans.size(), timeline.spans.size());
  for (std::size_t i = 0; i < read.spans.size(); ++i) {
    Span span = read.spans[i];
    EXPECT_NEAR(span.start.value(), timeline.spans[i].start.value(), 0.5e-9);
    EXPECT_NEAR(span.duration.value(), timeline.spans[i].duration.value(), 1e-9);
    span.start = timeline.spans[i].start;
    span.duration = timeline.spans[i].duration;
    EXPECT_EQ(span, timeline.spans[i]);
  }
}

// Profiles with absurdly slow parts make such times.
TEST(Perfetto, TimesBeyondACenturyAreCutOff) {
  Timeline timeline = two_stages();
  timeline.spans.back().duration = Seconds(1e25);
  EXPECT_EQ(events(trace_of(timeline), "X").size(), timeline.spans.size());
}

std::vector<std::string> places_of_problems(const nlohmann::json& trace) {
  return problems_of([&trace] { read_perfetto(trace, "test"); });
}

TEST(Perfetto, ATraceOfAnotherProgramIsRefusedAtOnce) {
  nlohmann::json trace = trace_of(two_stages());
  trace["otherData"]["writer"] = "pytorch";
  trace["traceEvents"][0]["ph"] = "B";
  EXPECT_EQ(places_of_problems(trace), std::vector<std::string>{"/otherData/writer"});
  EXPECT_EQ(places_of_problems({{"traceEvents", nlohmann::json::array()}}),
            std::vector<std::string>{"/otherData"});
}

TEST(Perfetto, AllProblemsOfATraceAreReportedWithTheirPlaces) {
  nlohmann::json trace = trace_of(two_stages());
  // The pointer of the first event of each phase.
  std::map<std::string, std::string> first;
  auto& events = trace["traceEvents"];
  for (std::size_t i = 0; i < events.size(); ++i)
    first.emplace(events[i]["ph"], "/traceEvents/" + std::to_string(i));
  const auto event = [&](const char* phase) -> nlohmann::json& {
    return trace[nlohmann::json::json_pointer(first.at(phase))];
  };
  event("X")["tid"] = 99;
  event("X")["dur"] = -1;
  event("s")["args"]["span"] = 4;
  event("f")["id"] = 7;
  event("C")["pid"] = 1;
  EXPECT_EQ(
      places_of_problems(trace),
      (std::vector<std::string>{first["X"] + "/tid", first["X"] + "/dur", first["s"] + "/args/span",
                                first["f"] + "/id", first["C"] + "/pid"}));
}

TEST(Perfetto, JoinsSendAndReceiveByAnArrow) {
  const auto trace = trace_of(two_stages());
  const auto begin = events(trace, "s").at(0), end = events(trace, "f").at(0);
  EXPECT_EQ(begin.at("id"), end.at("id"));
  EXPECT_EQ(begin.at("pid"), 0);
  EXPECT_EQ(end.at("pid"), 5);
  EXPECT_EQ(end.at("bp"), "e");
  EXPECT_LE(begin.at("ts").get<double>(), end.at("ts").get<double>());
  EXPECT_EQ(begin.at("tid"), events(trace, "X")[1].at("tid"));
}

TEST(Perfetto, CountsMemoryPerRank) {
  const auto levels = events(trace_of(two_stages()), "C");
  ASSERT_EQ(levels.size(), 2U);
  EXPECT_EQ(levels[1].at("pid"), 5);
  EXPECT_DOUBLE_EQ(levels[1].at("args").at("bytes").get<double>(), 2e9);
}

}  // namespace
}  // namespace shardwright
