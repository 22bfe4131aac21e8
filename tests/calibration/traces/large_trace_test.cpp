// Traces that are read in many parts: the parts make one trace, progress covers the file, and a
// stop ends the reading within it.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <zlib.h>

#include <cstring>
#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>

#include "calibration/traces/kineto.hpp"
#include "calibration/traces/trace_file.hpp"
#include "calibration/traces/trace_timeline.hpp"
#include "tests/calibration/traces/kineto_text.hpp"
#include "tests/calibration/traces/written_trace.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

using testing::HasSubstr;

constexpr std::int64_t kManyKernels = 12'000;

TEST(LargeTrace, PartsAreOneTrace) {
  const WrittenTrace file(kManyKernels);
  const Trace trace = std::get<Trace>(read_recording(file.path()));
  ASSERT_EQ(trace.activities.size(), static_cast<std::size_t>(kManyKernels));
  EXPECT_EQ(trace.steps.size(), 5U);
  // Four kernels, five operators, and the shapes of seven sizes of products.
  EXPECT_EQ(trace.names.size(), 4U + 5U - 1U + 7U);
  const std::int64_t origin = trace.activities.front().start;
  constexpr const char* kOps[] = {"aten::mm", "aten::add", "flash_attn::_flash_attn_forward",
                                  "triton_poi_fused_add_mul_silu_7"};
  for (std::int64_t i = 0; i < kManyKernels; ++i) {
    const DeviceActivity& each = trace.activities[static_cast<std::size_t>(i)];
    ASSERT_EQ(each.start - origin, 10'000 * i);
    ASSERT_EQ(each.launched, each.start - 18'000);
    ASSERT_EQ(trace.names[each.op], kOps[i % 4]) << i;
    ASSERT_EQ(each.size, 2 * (64 + i % 97));
    ASSERT_EQ(each.shapes == kNoIndex, i % 4 != 0);
  }
  EXPECT_EQ(nlohmann::json::parse(trace.names[trace.activities[4].shapes]),
            nlohmann::json::parse(
                R"([[[4096, 1280], [1280, 4096]], ["c10::BFloat16", "c10::BFloat16"]])"));
}

// Calls of collectives and threads are numbered anew as parts are put together.
TEST(LargeTrace, CollectivesAndThreadsOfPartsKeepTheirArguments) {
  std::string events;
  constexpr int kCalls = 30'000;
  for (int call = 0; call < kCalls; ++call) {
    fmt::format_to(
        std::back_inserter(events),
        R"({{"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 1, "tid": {}, "ts": {}, "dur": 1, "args": {{"correlation": {}}}}},
{{"ph": "X", "cat": "cpu_op", "name": "op {}", "pid": 1, "tid": {}, "ts": {}, "dur": 4, "args": {{}}}},
{{"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "pid": 0, "tid": 7, "ts": {}, "dur": 5, "args": {{"correlation": {}, "Collective name": "allreduce", "In msg nelems": {}, "dtype": "Float", "Seq": {}}}}},
)",
        call % 3 + call / 10'000, 10 * call + 1, call, call % 5, call % 3 + call / 10'000,
        10 * call, 10 * call + 6, call, call + 1, call);
  }
  const Trace trace = read_kineto_text("[" + events.substr(0, events.rfind(',')) + "]");
  ASSERT_EQ(trace.activities.size(), static_cast<std::size_t>(kCalls));
  for (int call = 0; call < kCalls; ++call) {
    const DeviceActivity& each = trace.activities[static_cast<std::size_t>(call)];
    const CollectiveCall& found = trace.collectives[static_cast<std::size_t>(each.collective)];
    ASSERT_EQ(found.sequence, call);
    ASSERT_EQ(found.bytes, 4 * (call + 1));
    ASSERT_EQ(trace.names[each.op], fmt::format("op {}", call % 5));
  }
}

// Of several problems the first in the file is told, whichever thread sees one first.
TEST(LargeTrace, TheFirstProblemOfTheFileIsTold) {
  const WrittenTrace file(kManyKernels);
  const std::string whole = content_of(file.path());
  const auto problem_with = [&](std::initializer_list<double> places) {
    std::string text = whole;
    for (const double place : places) {
      const std::size_t key =
          text.find("\"cat\": \"kernel\"", static_cast<std::size_t>(place * double(text.size())));
      text.replace(key, 6, "\"cat\" ");
    }
    return thrown_by<InputError>([&] { read_kineto_text(text); });
  };
  const std::string early = problem_with({0.2}), late = problem_with({0.8});
  EXPECT_THAT(early, HasSubstr("/traceEvents/"));
  EXPECT_NE(early, late);
  EXPECT_EQ(problem_with({0.2, 0.8}), early);
  // A text that breaks off behind the damaged event.
  std::string broken = whole.substr(0, whole.size() - 100);
  broken.replace(broken.find("\"cat\": \"kernel\"", broken.size() / 2), 6, "\"cat\" ");
  EXPECT_THAT(thrown_by<InputError>([&] { read_kineto_text(broken); }), HasSubstr("/traceEvents/"));
}

std::string database_of_kernels(int kernels) {
  const std::string file = scratch_path("large.sqlite");
  sqlite3* opened = nullptr;
  sqlite3_open(file.c_str(), &opened);
  const std::string statements = fmt::format(
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, "
      "streamId INTEGER, correlationId INTEGER);"
      "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {}) "
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT 10 * i, 10 * i + 5, 0, 7, i FROM n;",
      kernels);
  EXPECT_EQ(sqlite3_exec(opened, statements.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(opened);
  return file;
}

std::string compressed(const std::filesystem::path& file) {
  const std::string name = scratch_path("large.json.gz"), text = content_of(file);
  gzFile_s* const stream = gzopen(name.c_str(), "wb1");
  EXPECT_EQ(gzwrite(stream, text.data(), static_cast<unsigned>(text.size())),
            static_cast<int>(text.size()));
  gzclose(stream);
  return name;
}

// A trace without marked steps is one step, however long it is.
TEST(LargeTrace, APictureHoldsTheBeginningOfALongStep) {
  Trace trace;
  trace.activities.resize(kMostInAPicture + 10);
  const TraceIndex name = trace.names.index_of("kernel");
  for (std::size_t i = 0; i < trace.activities.size(); ++i) {
    trace.activities[i].start = static_cast<std::int64_t>(10 * i);
    trace.activities[i].duration = 5;
    trace.activities[i].name = name;
  }
  const Timeline step = timeline_of_one_step(trace);
  ASSERT_EQ(step.spans.size(), kMostInAPicture);
  EXPECT_EQ(step.spans.front().start, Seconds(0.0));
}

TEST(LargeTrace, ProgressCoversTheFileAndAStopEndsIt) {
  const WrittenTrace plain(kManyKernels);
  for (const std::string& file :
       {plain.path().string(), compressed(plain.path()), database_of_kernels(50'000)}) {
    const std::uintmax_t size = std::filesystem::file_size(file);
    std::uintmax_t bytes = 0;
    int calls = 0;
    read_recording(file, {[&](std::uintmax_t more) {
                            bytes += more;
                            ++calls;
                          },
                          {}});
    EXPECT_GE(calls, 3) << file;
    EXPECT_LE(bytes, size) << file;
    EXPECT_GE(static_cast<double>(bytes), 0.9 * static_cast<double>(size)) << file;

    std::stop_source stop;
    bytes = 0;
    const ReadingWatch stopping{[&](std::uintmax_t more) {
                                  bytes += more;
                                  stop.request_stop();
                                },
                                stop.get_token()};
    EXPECT_THROW(read_recording(file, stopping), ReadingStopped) << file;
    EXPECT_LT(static_cast<double>(bytes), 0.5 * static_cast<double>(size)) << file;
  }
}

}  // namespace
}  // namespace shardwright::calibration
