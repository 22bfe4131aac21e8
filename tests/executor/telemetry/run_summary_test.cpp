#include "executor/telemetry/run_summary.hpp"

#include <gtest/gtest.h>

namespace shardwright::executor {
namespace {

StepReport step(double seconds, std::vector<double> rank_compute_s) {
  StepReport report;
  report.seconds = seconds;
  report.phases.optimizer_s = 0.25;
  report.rank_compute_s = std::move(rank_compute_s);
  return report;
}

TEST(RunSummary, NamesWhatTookMostOfTheTime) {
  RunSummary summary;
  EXPECT_EQ(summary.limit(1.0, 0.0), "");
  summary.add(step(4.0, {1.75, 2.0, 1.5}));
  summary.add(step(4.0, {1.75, 2.25, 1.5}));
  // The busiest rank: 4.25 s and twice 0.25 s for the optimizer.
  EXPECT_EQ(summary.limit(10.0, 0.5),
            "limited by computing (rank 1, the busiest), 48 % of 10.0 s; waiting for communication "
            "and other ranks 32 %, data, validation and telemetry 15 %, checkpoints 5 %");
  EXPECT_EQ(summary.limit(100.0, 90.0),
            "limited by checkpoints, 90 % of 100.0 s; computing (rank 1, the busiest) 5 %, waiting "
            "for communication and other ranks 3 %, data, validation and telemetry 2 %");
}

TEST(RunSummary, NamesARankThatOthersWaitFor) {
  RunSummary summary;
  summary.add(step(8.0, {1.0, 1.0, 3.0, 1.0}));
  EXPECT_EQ(summary.limit(8.0, 0.0),
            "limited by waiting for communication and other ranks, 59 % of 8.0 s; computing (rank "
            "2, the busiest) 41 %; rank 2 computed 3.00 times as long as the median rank");
}

// A GPU whose steps are not recorded, and replicas without an agreement in each step.
TEST(RunSummary, SaysNoMoreThanItKnows) {
  for (const std::vector<double>& unknown : {std::vector<double>{0.0, 0.0}, {}}) {
    RunSummary summary;
    summary.add(step(3.0, unknown));
    EXPECT_EQ(summary.limit(4.0, 0.0),
              "limited by the steps, 75 % of 4.0 s; data, validation and telemetry 25 %");
  }
}

TEST(RunSummary, OfOneRankNamesNoOther) {
  RunSummary summary;
  summary.add(step(1.0, {0.5}));
  EXPECT_EQ(summary.limit(1.0, 0.0), "limited by computing, 75 % of 1.0 s; issuing ops 25 %");
}

}  // namespace
}  // namespace shardwright::executor
