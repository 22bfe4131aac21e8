#include "executor/telemetry/metrics_log.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <set>
#include <vector>

#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

const std::string kStep0 = "{\"step\":0,\"loss\":5.5}\n", kStep1 = "{\"step\":1,\"loss\":5.4}\n",
                  kStep2 = "{\"step\":2,\"loss\":5.3}\n";

class EarlierMetrics : public testing::Test {
 protected:
  void write(const std::string& text) const { std::ofstream(file_) << text; }
  // Returns the problem of the file for a run that resumes after two steps.
  std::string refusal() const {
    return thrown_by([&] { MetricsLog(file_, {}, 2); });
  }

  std::filesystem::path file_ = scratch_path("metrics.jsonl");
};

// A resumed run drops the lines that it writes again.
TEST_F(EarlierMetrics, AreKeptBeforeTheFirstStep) {
  write(kStep0 + kStep1 + kStep2);
  const MetricsLog log(file_, {}, 2);
  EXPECT_FALSE(log.truncated());
  EXPECT_EQ(content_of(file_), kStep0 + kStep1);
}

// A killed run leaves a line that may end anywhere; a complete one may lack only the line feed.
TEST_F(EarlierMetrics, LoseOnlyATruncatedLastLine) {
  for (std::size_t length = 0; length <= kStep1.size(); ++length) {
    write(kStep0 + kStep1.substr(0, length));
    const MetricsLog log(file_, {}, 2);
    const bool whole = length + 1 >= kStep1.size();
    EXPECT_EQ(log.truncated(), length > 0 && !whole) << length;
    EXPECT_EQ(content_of(file_), whole ? kStep0 + kStep1 : kStep0) << length;
  }
}

TEST_F(EarlierMetrics, WithBrokenLinesAreRefusedByNumberAndStay) {
  const std::string text = kStep0 +
                           "{\"step\":1,\"lo\n"  // 2
                           "{\"step\":\"one\"}\n"
                           "{\"step\":null}\n"
                           "{\"step\":0.5}\n"
                           "[1,2]\n"
                           "\x7f\xff\n"
                           "\n"
                           "{\"loss\":3}\n" +
                           kStep1 + "{\"step\":2,";
  write(text);
  const std::string reported = refusal();
  EXPECT_THAT(reported, testing::StartsWith(file_.string()));
  EXPECT_THAT(reported, testing::HasSubstr("line 2: found no JSON"));
  EXPECT_THAT(reported, testing::HasSubstr("line 3: found no step"));
  for (const int line : {4, 5, 6, 7, 9})
    EXPECT_THAT(reported, testing::HasSubstr("line " + std::to_string(line) + ": "));
  for (const int line : {1, 8, 10, 11})
    EXPECT_THAT(reported, testing::Not(testing::HasSubstr("line " + std::to_string(line) + ":")));
  EXPECT_EQ(content_of(file_), text);
  // A broken line with a line feed after it is not truncated.
  write(kStep0 + "{\"step\":1,\n");
  EXPECT_THAT(refusal(), testing::HasSubstr("line 2"));
}

TEST_F(EarlierMetrics, NameMissingSteps) {
  const auto missing = [&](const std::set<std::int64_t>& steps, std::int64_t first) {
    std::string text;
    for (const std::int64_t step : steps) text += fmt::format("{{\"step\":{}}}\n", step);
    write(text);
    return MetricsLog(file_, {}, first).missing();
  };
  EXPECT_EQ(missing({0, 1, 2, 3}, 4), "");
  EXPECT_EQ(missing({0, 1, 2, 3, 4, 20}, 20), "steps 5 to 19");
  EXPECT_EQ(missing({0, 2, 3, 7}, 4), "step 1");
  EXPECT_EQ(missing({1, 4, 5}, 7), "steps 0, 2 to 3, 6");
  EXPECT_EQ(missing({1, 3, 5, 6}, 9), "steps 0, 2, 4 and others after them");
  EXPECT_EQ(missing({}, 1), "step 0");
  EXPECT_EQ(missing({5}, 0), "");
  std::filesystem::remove(file_);
  EXPECT_EQ(MetricsLog(file_, {}, 20).missing(), "steps 0 to 19");
}

TEST_F(EarlierMetrics, OfANewRunAreNotRead) {
  write("no JSON\n" + kStep1);
  const MetricsLog log(file_, {}, 0);
  EXPECT_EQ(content_of(file_), "");
}

TEST(MetricsFile, ThatCannotBeWrittenIsNamedWithTheReason) {
  const auto write = [] { MetricsLog(scratch_path("no-folder") / "metrics.jsonl", {}, 0); };
  EXPECT_THAT(thrown_by<RuntimeFailure>(write),
              testing::EndsWith("cannot be written: No such file or directory"));
}

// A disk that is full for a while, for which a limit on the size of files stands.
TEST(MetricsFile, HoldsWholeLinesAfterADiskWasFull) {
  const std::filesystem::path file = scratch_path("metrics.jsonl");
  MetricsLog log(file, {}, 0);
  StepReport report;
  report.seconds = 0.1;
  const auto write = [&](std::int64_t step) {
    report.step = step;
    log.write(report, {});
  };
  write(0);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{std::filesystem::file_size(file) + 10, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  const std::string failed = thrown_by<RuntimeFailure>([&] { write(1); });
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(failed, file.string() + ": cannot be written: File too large");
  write(2);
  std::vector<std::int64_t> steps;
  EXPECT_FALSE(
      for_each_earlier_step(file, [&](std::int64_t step, auto&&) { steps.push_back(step); }));
  EXPECT_EQ(steps, (std::vector<std::int64_t>{0, 2}));
}

}  // namespace
}  // namespace shardwright::executor
