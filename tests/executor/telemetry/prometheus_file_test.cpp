#include "executor/telemetry/prometheus_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <utility>

#include "executor/telemetry/metrics_log.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

const std::string kWrittenStep0 = "{\"step\":0,\"loss\":5.5}\n",
                  kWrittenStep1 = "{\"step\":1,\"loss\":5.4}\n";

class Prometheus : public testing::Test {
 protected:
  std::string text() const {
    return content_of(std::filesystem::path(file_).replace_extension(".prom"));
  }
  std::string line(const std::string& name, const std::string& value) const {
    return "\nshardwright_" + name + "{run=\"run 7\"} " + value + "\n";
  }

  std::filesystem::path file_ = made_folder() / "metrics.jsonl";

 private:
  static std::filesystem::path made_folder() {
    auto folder = scratch_path("run 7");
    std::filesystem::create_directories(folder);
    return folder;
  }
};

// The second of two steps within a second is written at the end, also if the run does not end
// normally.
TEST_F(Prometheus, HoldsTheLastLineOfARunThatFailed) {
  {
    MetricsLog log(file_, {}, 0);
    StepReport report;
    report.step = 6;
    report.seconds = 0.1;
    log.write(report, {});
    report.step = 7;
    report.loss = std::nan("");
    report.gradient_norm = HUGE_VAL;
    log.write(report, {});
    EXPECT_THAT(text(), testing::HasSubstr(line("step", "6")));
  }
  for (const auto& [name, value] :
       {std::pair("step", "7"), {"loss", "NaN"}, {"gradient_norm", "NaN"}, {"step_seconds", "0.1"}})
    EXPECT_THAT(text(), testing::HasSubstr(line(name, value)));
}

// The metrics are those of a killed process, truncated or not.
TEST_F(Prometheus, IsWrittenFromTheLastCompleteLine) {
  for (const std::string& none : {std::string(), std::string("{\"step\":0")}) {
    std::ofstream(file_) << none;
    write_prometheus_of_last_line(file_);
    EXPECT_EQ(text(), "");
  }
  std::ofstream(file_) << kWrittenStep0;
  write_prometheus_of_last_line(file_);
  EXPECT_THAT(text(), testing::HasSubstr(line("loss", "5.5")));
  std::ofstream(file_) << std::string(1 << 17, '\n') << kWrittenStep0 << kWrittenStep1
                       << "{\"step\":2,";
  write_prometheus_of_last_line(file_);
  EXPECT_THAT(text(), testing::HasSubstr(line("step", "1")));
}

// Each sample stands below its help and its type, under a name with a base unit; nothing is there
// twice, and no number of a line is left out.
TEST_F(Prometheus, FollowsItsConventions) {
  RunFigures figures;
  figures.device = "cpu";
  figures.program = "a1";
  MetricsLog log(file_, figures, 0);
  StepReport report;
  report.seconds = 0.5;
  report.validation_loss = 2.0;
  report.update = UpdateCounts{};
  report.slowest = SlowestRank{1, 1.5};
  report.rank_compute_s = {0.25, 0.375};
  const auto before = std::chrono::system_clock::now();
  log.write(report, {Bytes(1), Bytes(2)}, 0.125);
  EXPECT_THAT(text(), testing::HasSubstr("\nshardwright_run_info{run=\"run 7\",device=\"cpu\","
                                         "program=\"a1\"} 1\n"));
  EXPECT_THAT(text(), testing::HasSubstr("\nshardwright_rank_compute_seconds{run=\"run 7\",rank="
                                         "\"1\"} 0.375\n"));
  std::istringstream lines(text());
  std::set<std::string> names;
  std::string help, type, sample;
  const std::regex named("# HELP (shardwright_[a-z_]+) [A-Z].*\\.");
  std::getline(lines, help);
  while (lines && !help.empty()) {
    std::smatch name;
    ASSERT_TRUE(std::regex_match(help, name, named)) << help;
    EXPECT_TRUE(names.insert(name[1]).second) << help;
    std::getline(lines, type);
    EXPECT_EQ(type, "# TYPE " + name[1].str() + " gauge");
    EXPECT_FALSE(std::regex_search(name[1].str(), std::regex("_(s|per_s)$"))) << help;
    std::size_t samples = 0;
    const std::string prefix = name[1].str() + "{run=";
    help.clear();
    while (std::getline(lines, sample) && sample.starts_with(prefix)) ++samples;
    EXPECT_GE(samples, 1U) << prefix;
    help = lines ? sample : "";
  }
  std::ifstream metrics(file_);
  const auto line = nlohmann::json::parse(metrics);
  const auto of_a_gauge = [](const auto& value) { return value.is_number() || value.is_array(); };
  EXPECT_EQ(names.size(), 1U + static_cast<std::size_t>(std::ranges::count_if(line, of_a_gauge)));
  const std::chrono::duration<double> began = before.time_since_epoch();
  EXPECT_GE(line.at("unix_time_s"), began.count());
  EXPECT_LT(line.at("unix_time_s"), began.count() + 60.0);
}

}  // namespace
}  // namespace shardwright::executor
