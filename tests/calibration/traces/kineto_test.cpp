// Traces of PyTorch's profiler: events of the tests' own, and files of other projects.
#include "calibration/traces/kineto.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "calibration/traces/gemm_timings.hpp"
#include "calibration/traces/kineto_event.hpp"
#include "calibration/traces/trace_file.hpp"
#include "calibration/traces/trace_report.hpp"
#include "calibration/traces/trace_timeline.hpp"
#include "tests/calibration/traces/kineto_text.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

Trace trace_of_file(const std::string& file) {
  return std::get<Trace>(read_recording(file));
}

Trace read_events(const std::string& events, const std::string& members = "") {
  return read_kineto_text("{" + members + "\"traceEvents\": [" + events + "]}");
}

std::string event(const char* category, const char* name, double start, double duration,
                  const std::string& arguments = "", int thread = 7) {
  return fmt::format(
      R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 0, "tid": {}, "ts": {:.3f}, "dur": {:.3f}, "args": {{{}}}}},)",
      category, name, thread, start, duration, arguments);
}

// Events without the comma behind the last one.
std::string list(std::string events) {
  events.pop_back();
  return events;
}

const std::string& op_of(const Trace& trace, const DeviceActivity& activity) {
  static const std::string kNone = "none";
  return activity.op == kNoIndex ? kNone : trace.names[activity.op];
}

TEST(Kineto, LinksAKernelByExternalIdAndByTime) {
  const std::string host =
      event("cpu_op", "aten::linear", 10, 20, "\"External id\": 1", 1) +
      event("cpu_op", "aten::addmm", 12, 10, "\"External id\": 2", 1) +
      event("cpu_op", "aten::relu", 40, 5, "\"External id\": 3", 1) +
      event("cuda_runtime", "cudaLaunchKernel", 15, 2, "\"correlation\": 100, \"External id\": 2",
            1) +
      event("cuda_runtime", "cudaLaunchKernel", 25, 2, "\"correlation\": 101", 1) +
      event("cuda_driver", "cuLaunchKernel", 42, 1, "\"correlation\": 102", 1);
  // The second has its correlation where the number of the op should be, which is that of another
  // op.
  const std::string kernels =
      event("kernel", "one", 50, 5,
            "\"correlation\": 100, \"External id\": 2, \"device\": 0, \"stream\": 7") +
      event("kernel", "two", 60, 5, "\"correlation\": 101, \"External id\": 3") +
      event("kernel", "three", 70, 5, "\"correlation\": 102") +
      event("kernel", "before the window", 1, 5, "\"correlation\": 9, \"External id\": 9");
  for (const std::string& events : {host + kernels, kernels + host}) {
    const Trace trace = read_events(list(events));
    ASSERT_EQ(trace.activities.size(), 4U);
    EXPECT_EQ(op_of(trace, trace.activities[0]), "none");
    EXPECT_FALSE(trace.activities[0].launched);
    EXPECT_EQ(op_of(trace, trace.activities[1]), "aten::addmm");
    EXPECT_EQ(trace.activities[1].launched, 15000);
    EXPECT_EQ(op_of(trace, trace.activities[2]), "aten::linear");
    EXPECT_EQ(op_of(trace, trace.activities[3]), "aten::relu");
  }
}

TEST(Kineto, TimesProductsByShape) {
  const std::string shapes =
      "\"Input Dims\": [[16], [64, 32], [32, 16], []], \"Input type\": [\"c10::BFloat16\", "
      "\"c10::BFloat16\", \"c10::BFloat16\", \"Scalar\"]";
  std::string events;
  for (int call = 0; call < 3; ++call) {
    const std::string id = std::to_string(call);
    events +=
        event("cpu_op", "aten::addmm", 100 * call, 10, "\"External id\": " + id + ", " + shapes,
              1) +
        event("cuda_runtime", "cudaLaunchKernel", 100 * call + 1, 1, "\"correlation\": 5" + id, 1) +
        event("cuda_runtime", "cudaLaunchKernel", 100 * call + 3, 1, "\"correlation\": 6" + id, 1) +
        event("kernel", "nvjet_tst", 100 * call + 20, 10 + call, "\"correlation\": 5" + id) +
        event("kernel", "splitKreduce_kernel", 100 * call + 40, 2, "\"correlation\": 6" + id);
  }
  const std::vector<MeasuredKernel> kernels = gemm_timings({read_events(list(events))});
  GemmWork work;
  work.m = 64;
  work.n = 16;
  work.k = 32;
  ASSERT_EQ(kernels.size(), 1U);
  EXPECT_EQ(kernels[0].work, Work(work));
  EXPECT_EQ(kernels[0].precision, Precision::Bf16);
  EXPECT_DOUBLE_EQ(kernels[0].time.value(), 13e-6);
}

TEST(Kineto, GivesAKernelTheStepOfItsLaunch) {
  const Trace trace =
      read_events(list(event("user_annotation", "ProfilerStep#4", 0, 90, "", 1) +
                       event("user_annotation", "ProfilerStep#5", 100, 80, "", 1) +
                       event("gpu_user_annotation", "ProfilerStep#5", 130, 10) +
                       event("cuda_runtime", "cudaLaunchKernel", 95, 2, "\"correlation\": 1", 1) +
                       event("cuda_runtime", "cudaLaunchKernel", 105, 2, "\"correlation\": 2", 1) +
                       event("kernel", "a", 120, 5, "\"correlation\": 1") +
                       event("kernel", "b", 190, 5, "\"correlation\": 2")));
  ASSERT_EQ(trace.steps.size(), 2U);
  EXPECT_EQ(trace.steps[0].duration, 100000);
  EXPECT_EQ(trace.steps[1].duration, 80000);
  EXPECT_EQ(trace.activities[0].step, 0);
  EXPECT_EQ(trace.activities[1].step, 1);
  // Of the whole step that is not the first one: the device stands still until its mark ends.
  EXPECT_DOUBLE_EQ(report_of(trace).step->value(), 80e-6);
}

// The last step is as long as the others, though the device has nothing to do at its end.
TEST(Kineto, TheLastStepEndsWithItsMark) {
  std::string events;
  for (int i = 0; i < 4; ++i) {
    const double start = 1000.0 * i;
    const std::string correlation = fmt::format("\"correlation\": {}", i);
    events +=
        event("user_annotation", fmt::format("ProfilerStep#{}", i).c_str(), start, 1000, "", 1) +
        event("cuda_runtime", "cudaLaunchKernel", start + 5, 1, correlation, 1) +
        event("kernel", "a", start + 10, 300, correlation);
  }
  EXPECT_DOUBLE_EQ(report_of(read_events(list(events))).step->value(), 1e-3);
}

// Steps of 1 ms, with an evaluation of 20 ms between two of them; people name marks themselves.
TEST(Kineto, PausesAreNoPartOfSteps) {
  for (const char* mark : {"ProfilerStep#{}", "iteration {}"}) {
    std::string events;
    for (int i = 0; i < 7; ++i) {
      const double start = 1000.0 * i + (i > 3 ? 20000.0 : 0.0);
      const std::string correlation = fmt::format("\"correlation\": {}", i);
      const std::string name = fmt::format(fmt::runtime(mark), i);
      events += event("user_annotation", name.c_str(), start, 1000, "", 1) +
                event("cuda_runtime", "cudaLaunchKernel", start + 5, 1, correlation, 1) +
                event("kernel", "a", start + 10, 300, correlation);
    }
    const TraceReport report = report_of(read_events(list(events)));
    ASSERT_TRUE(report.step.has_value()) << mark;
    EXPECT_DOUBLE_EQ(report.step->value(), 1e-3) << mark;
    EXPECT_EQ(report.timed_steps, 6) << mark;
    EXPECT_EQ(report.pauses, 1) << mark;
  }
}

// Steps #5, #6, #105 and #106 of 1 ms, as a schedule records them.
TEST(Kineto, StepsThatWereNotRecordedAreNoPartOfSteps) {
  std::string events;
  for (const int number : {4, 5, 6, 105, 106}) {
    const double start = 1000.0 * number;
    const std::string correlation = fmt::format("\"correlation\": {}", number);
    events +=
        event("user_annotation", fmt::format("ProfilerStep#{}", number).c_str(), start, 1000) +
        event("cuda_runtime", "cudaLaunchKernel", start + 5, 1, correlation, 1) +
        event("kernel", "a", start + 10, 300, correlation);
  }
  const TraceReport report = report_of(read_events(list(events)));
  EXPECT_DOUBLE_EQ(report.step->value(), 1e-3);
  EXPECT_EQ(report.pauses, 1);
}

// Each of five iterations of 4 ms marks its four microbatches, too, and each epoch of the other run
// counts its steps from 0.
TEST(Kineto, TheOutermostMarksAreSteps) {
  std::string nested, epochs;
  for (int i = 0; i < 20; ++i) {
    const double start = 1000.0 * i;
    const std::string correlation = fmt::format("\"correlation\": {}", i);
    const std::string work =
        event("cuda_runtime", "cudaLaunchKernel", start + 5, 1, correlation, 1) +
        event("kernel", "a", start + 10, 900, correlation);
    const std::string step =
        event("user_annotation", fmt::format("step {}", i % 4).c_str(), start, 990);
    if (i % 4 == 0)
      nested += event("user_annotation", fmt::format("iteration {}", i / 4).c_str(), start, 3995);
    nested += step + work;
    epochs += step + work;
  }
  const TraceReport iterations = report_of(read_events(list(nested)));
  EXPECT_EQ(iterations.steps.size(), 5U);
  EXPECT_DOUBLE_EQ(iterations.step->value(), 4e-3);
  const TraceReport steps = report_of(read_events(list(epochs)));
  EXPECT_EQ(steps.steps.size(), 20U);
  EXPECT_DOUBLE_EQ(steps.step->value(), 1e-3);
}

// Marks of microbatches, of which each third has the optimizer: 10, 10 and 40 ms.
TEST(Kineto, MarksThatAreRegularlyLongerAreNoPauses) {
  std::string events;
  double start = 0.0;
  for (int i = 0; i < 12; ++i) {
    const double time = i % 3 == 2 ? 40000.0 : 10000.0;
    const std::string correlation = fmt::format("\"correlation\": {}", i);
    events += event("user_annotation", fmt::format("ProfilerStep#{}", i).c_str(), start, time) +
              event("cuda_runtime", "cudaLaunchKernel", start + 5, 1, correlation, 1) +
              event("kernel", "a", start + 10, 0.99 * time, correlation);
    start += time;
  }
  const TraceReport report = report_of(read_events(list(events)));
  EXPECT_EQ(report.pauses, 0);
  // The mean of the second to the eleventh.
  EXPECT_NEAR(report.step->value(), (7.0 * 10e-3 + 3.0 * 40e-3) / 10.0, 1e-9);
}

TEST(Kineto, SaysThatEventsWithAnEndApartDoNotCount) {
  const Trace trace = read_events(
      R"({"ph": "B", "cat": "kernel", "name": "a", "ts": 1}, {"ph": "E", "cat": "kernel", "name": "a", "ts": 2})");
  EXPECT_TRUE(trace.activities.empty());
  ASSERT_EQ(trace.gaps.size(), 1U);
  EXPECT_THAT(trace.gaps[0], testing::HasSubstr("1 event on devices"));
}

// Copies of the next step run ahead: the last step's kernels end long after a step's time.
TEST(Kineto, StepsWhoseCopiesRunAheadTakeTheirDistance) {
  std::string events;
  for (int i = 0; i < 5; ++i) {
    const double start = 100.0 * i;
    events += event("user_annotation", fmt::format("ProfilerStep#{}", i).c_str(), start, 90, "", 1);
    for (int part = 0; part < 2; ++part) {
      const std::string correlation = fmt::format("\"correlation\": {}", 2 * i + part);
      events += event("cuda_runtime", "cudaLaunchKernel", start + 2 + part, 1, correlation, 1);
      events += part == 0 ? event("gpu_memcpy", "Memcpy HtoD", start + 4, 5, correlation, 8)
                          : event("kernel", "a", start + 170, 80, correlation);
    }
  }
  EXPECT_DOUBLE_EQ(report_of(read_events(list(events))).step->value(), 100e-6);
}

TEST(Kineto, KeepsNanosecondsOfTimesSince1970) {
  const Trace trace = read_kineto_text(
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7,
    "ts": 1764250000123456.789, "dur": 1.001, "args": {}}]})");
  EXPECT_EQ(trace.activities.at(0).start, 1764250000123456789);
  EXPECT_EQ(trace.activities.at(0).duration, 1001);
}

TEST(Kineto, CountsTheBytesOfCollectivesAsNcclTestsDo) {
  const auto collective = [](const char* name, int in, int out, const char* type) {
    return event(
        "kernel", "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", 0, 10,
        fmt::format(
            R"("Collective name": "{}", "In msg nelems": {}, "Out msg nelems": {}, "dtype": "{}", "Group size": 8)",
            name, in, out, type));
  };
  const Trace trace = read_events(list(collective("_allgather_base", 1000, 8000, "BFloat16") +
                                       collective("_reduce_scatter_base", 8000, 1000, "Float") +
                                       collective("allreduce", 500, 500, "Half") +
                                       collective("all_to_allv", 0, 64, "Long") +
                                       collective("allreduce", 500, 500, "Unheard")));
  const TraceReport report = report_of(trace);
  std::map<std::string, std::optional<std::int64_t>> bytes;
  for (const CollectiveReport& each : report.collectives)
    bytes[each.kind + (each.bytes ? "" : "?")] = each.bytes;
  EXPECT_EQ(bytes,
            (std::map<std::string, std::optional<std::int64_t>>{{"all_gather", 16000},
                                                                {"reduce_scatter", 32000},
                                                                {"all_reduce", 1000},
                                                                {"all_to_all", 0},
                                                                {"all_reduce?", std::nullopt}}));
  for (const CollectiveReport& each : report.collectives) {
    if (each.kind != "all_gather") continue;
    EXPECT_DOUBLE_EQ(each.bus_bandwidth->value(), 16000.0 * 7 / 8 / 10e-6);
  }
}

TEST(Kineto, BusyTimesAreUnionsOverTheStreamsOfADevice) {
  const Trace trace = read_events(
      list(event("kernel", "nvjet_tst", 0, 10, "\"device\": 0, \"stream\": 7") +
           event("kernel", "ncclDevKernel_AllReduce", 5, 10, "\"device\": 0, \"stream\": 9") +
           event("gpu_memcpy", "Memcpy HtoD", 14, 4, "\"device\": 0, \"stream\": 11") +
           event("kernel", "nvjet_tst", 0, 10, "\"device\": 1, \"stream\": 7")));
  const TraceReport report = report_of(trace);
  EXPECT_EQ(report.devices, 2);
  EXPECT_NEAR(report.times.busy.value(), 28e-6, 1e-12);
  EXPECT_NEAR(report.times.compute.value(), 20e-6, 1e-12);
  EXPECT_NEAR(report.times.exposed_collective.value(), 5e-6, 1e-12);
  EXPECT_NEAR(report.by_category[KernelCategory::MemoryCopy].value(), 4e-6, 1e-12);
}

TEST(Kineto, IdleTimeIsTheHostsWhereItLaunchesTooLate) {
  const auto launch = [](double time, int number) {
    return event("cuda_runtime", "cudaLaunchKernel", time, 1,
                 fmt::format("\"correlation\": {}", number), 1);
  };
  const auto kernel = [](double time, int number) {
    return event("kernel", "k", time, 10, fmt::format("\"correlation\": {}", number));
  };
  // The second waits for something else, the third was launched when the device had been idle for 5
  // µs.
  const TraceReport report = report_of(read_events(list(
      launch(0, 1) + launch(2, 2) + launch(45, 3) + kernel(5, 1) + kernel(30, 2) + kernel(50, 3))));
  EXPECT_NEAR(report.times.host_bound_gaps.value(), 10e-6, 1e-12);
  EXPECT_NEAR((report.times.window - report.times.busy).value(), 25e-6, 1e-12);
}

TEST(Kineto, ReadsNamesThatAreNoUnicode) {
  const Trace trace = read_events(
      "{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"g\xffmm\x01\", \"pid\": 0, \"tid\": 1, "
      "\"ts\": 1, \"dur\": 2}");
  EXPECT_EQ(trace.names[trace.activities.at(0).name], "g?mm ");
}

TEST(Kineto, LeavesOutEventsWithoutATimeAndSaysSo) {
  const Trace trace = read_events(
      R"({"ph": "X", "cat": "kernel", "name": "a", "ts": 1, "dur": -2}, {"ph": "X", "cat": "kernel", "name": "b", "dur": 1},
    {"ph": "X", "cat": "kernel", "name": "c", "ts": 1e300, "dur": 1}, {"ph": "X", "cat": "kernel", "name": "d", "ts": "3", "dur": "4.5"})");
  EXPECT_EQ(trace.unusable_events, 3);
  ASSERT_EQ(trace.activities.size(), 1U);
  EXPECT_EQ(trace.activities[0].duration, 4500);
}

TEST(Kineto, KnowsNoSizeOfARunWhereItIsNotPositive) {
  const auto size_of = [](const std::string& size) {
    return read_events("", R"("distributedInfo": {"rank": 0, "world_size": )" + size + "},")
        .world_size;
  };
  EXPECT_EQ(size_of("4"), 4);
  EXPECT_EQ(size_of("-3"), std::nullopt);
}

TEST(Kineto, RefusesEventsThatAreNone) {
  EXPECT_THAT(problems_of([] { read_events("{\"ph\": \"X\"}, 3"); }),
              testing::ElementsAre("/traceEvents/1"));
  EXPECT_THAT(problems_of([] { read_kineto_text("{\"schemaVersion\": 1}"); }),
              testing::ElementsAre("/traceEvents"));
  EXPECT_THAT(problems_of([] { read_events("", "\"deviceProperties\": 3, "); }),
              testing::ElementsAre("/deviceProperties"));
}

// Counted in the files by other means: lines of `zcat FILE | python3 -m json.tool` with the
// category.
TEST(Kineto, SurvivesFilesWithoutUsualParts) {
  struct File {
    const char* name;
    std::int64_t kernels;
    std::size_t steps;
    const char* gpu;
    std::optional<std::int64_t> rank;
  };
  const File files[] = {{"cuda-sync-events-no-step", 79, 0, "NVIDIA A100-PG509-200", 0},
                        {"event-sync-multi-stream", 3, 0, "NVIDIA A100-PG509-200", 0},
                        {"h100-bert-small-forward", 60, 1, "NVIDIA H100 80GB HBM3", std::nullopt},
                        {"mi210-gpu-only-no-cpu-ops", 562, 0, "AMD Instinct MI210", std::nullopt},
                        {"mi250-two-steps", 14, 2, "AMD Radeon Graphics", std::nullopt},
                        {"mi300-bert-small-forward", 60, 1, "AMD Instinct MI300X VF", std::nullopt},
                        {"no-distributed-info-no-gpu", 0, 1, "NVIDIA A100-PG509-200", std::nullopt},
                        {"no-rank", 0, 1, "", std::nullopt},
                        {"one-triton-kernel", 1, 1, "NVIDIA A100-PG509-200", std::nullopt},
                        {"torch-compile-triton", 12, 0, "AMD Instinct MI300X", std::nullopt}};
  for (const File& file : files) {
    const TraceReport report = report_of(trace_of_file(fmt::format(
        "{}/tests/calibration/traces/files/{}.json.gz", SHARDWRIGHT_SOURCE_DIR, file.name)));
    EXPECT_EQ(report.kernels, file.kernels) << file.name;
    EXPECT_EQ(report.steps.size(), file.steps) << file.name;
    EXPECT_EQ(report.gpu, file.gpu) << file.name;
    EXPECT_EQ(report.rank, file.rank) << file.name;
    // All kernels of the forward passes have an operator.
    if (std::string(file.name).find("bert") != std::string::npos) {
      EXPECT_EQ(report.kernels_without_op, 0) << file.name;
    }
  }
}

// A text of one event in random order, spacing and with random members, some of them unusual.
std::string random_event(int number) {
  const auto blank = [] { return *rc::gen::element<std::string>("", " ", "\n    ", "\t"); };
  const std::string category = *rc::gen::element<std::string>(
      "kernel", "cpu_op", "cuda_runtime", "gpu_memcpy", "Trace", "user_annotation");
  std::vector<std::string> members = {
      R"("ph": ")" + *rc::gen::element<std::string>("X", "X", "X", "s", "M") + '"',
      R"("cat": ")" + category + '"',
      fmt::format(R"("name": "{}{}")",
                  *rc::gen::element<std::string>("gemm ", "ncclDevKernel", "ProfilerStep#"),
                  number % 3),
      fmt::format(R"("pid": {})", number % 2),
      R"("tid": )" + *rc::gen::element<std::string>("7", R"("stream 7")", R"("7")", "[7]"),
      fmt::format(R"("ts": {}.25)", 10 * number),
      R"("dur": )" + *rc::gen::element<std::string>("5", "5.5", "null", "-1", "1e1", R"("3")"),
  };
  const std::string argument = *rc::gen::element<std::string>(
      R"("stream": 7)", R"("grid": [2, 3, 1])", R"("grid": 7)", R"("device": 0, "bytes": 64)",
      R"("Input Dims": [[64, 32], [32, 16]], "Input type": ["c10::Half", "c10::Half"])",
      R"("Collective name": "allreduce", "In msg nelems": 8, "dtype": "Float", "Group size": 4)",
      R"("nested": {"a": [{"b": "}"}]}, "Seq": 3)", "");
  members.push_back(fmt::format(R"("args": {{{}{}"correlation": {}, "External id": {}}})", argument,
                                argument.empty() ? "" : ", ", number, number % 5));
  if (*rc::gen::inRange(0, 4) == 0) members.push_back(R"("id": [1, {"x": null}])");
  std::string text = "{" + blank();
  for (std::size_t left = members.size(); left > 0; --left) {
    const auto next = *rc::gen::inRange<std::size_t>(0, left);
    text += members[next] + blank() + (left > 1 ? "," + blank() : "");
    members.erase(members.begin() + static_cast<std::ptrdiff_t>(next));
  }
  return text + "}";
}

// What is scanned is what the parser reads, which an escape brings in.
RC_GTEST_PROP(Kineto, UsualEventsAreScannedAsTheyAreParsed, ()) {
  std::string usual, escaped;
  const int count = *rc::gen::inRange(1, 12);
  for (int i = 0; i < count; ++i) {
    const std::string event = random_event(i);
    usual += (i > 0 ? "," : "") + event;
    escaped += (i > 0 ? "," : "") + (R"({"a\u0041": 1, )" + event.substr(1));
  }
  const Trace scanned = read_kineto_text("[" + usual + "]");
  const Trace parsed = read_kineto_text("[" + escaped + "]");
  RC_ASSERT(scanned.names.size() == parsed.names.size());
  RC_ASSERT(scanned.begin == parsed.begin);
  RC_ASSERT(scanned.end == parsed.end);
  RC_ASSERT(scanned.unusable_events == parsed.unusable_events);
  RC_ASSERT(scanned.steps.size() == parsed.steps.size());
  RC_ASSERT(to_json(report_of(scanned)) == to_json(report_of(parsed)));
  RC_ASSERT(timeline_of(scanned) == timeline_of(parsed));
}

// The fast form is left for the parser at whatever it does not know.
TEST(Kineto, OnlyUsualEventsAreScanned) {
  const auto is_scanned = [](std::string_view text) { return scan_event(text).has_value(); };
  EXPECT_TRUE(
      is_scanned(R"({"ph": "X", "cat": "kernel", "args": {"a": [1, {"b": "]"}], "c": null}})"));
  EXPECT_TRUE(is_scanned("{}"));
  for (const char* text :
       {"", "{", R"({"ph")", R"({"ph": })", R"({"ph": "X",})", R"({"ph" "X"})", R"({"ph": "X"}})",
        R"({"a": "\n"})", "{\"a\": \"\xc3\xa9\"}", "{\"a\": \"\t\"}", R"({"a": [1})",
        R"({"a": 1 2})", R"({"args": {"a": 1})", "[]", "7"})
    EXPECT_FALSE(is_scanned(text)) << text;
}

}  // namespace
}  // namespace shardwright::calibration
