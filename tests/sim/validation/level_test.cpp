// The level reached on published measurements: every row of grade A and a part of the others.
//
// docs/validation.md has the figures on all rows. The guards stand a little above what is reached,
// so that a change that makes predictions worse has to say why.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sim/validation/training_row.hpp"
#include "sim/validation/validation.hpp"
#include "tests/sanitized.hpp"

namespace shardwright::sim {
namespace {

const std::vector<std::string> kFiles = {
    SHARDWRIGHT_SOURCE_DIR "/tests/ground_truth/training.jsonl",
    SHARDWRIGHT_SOURCE_DIR "/tests/ground_truth/training_sample.jsonl"};

ValidationReport report_of_grades(const std::string& grades) {
  return validate_rows(kFiles, {.grades = grades});
}

void expect_steps(const ValidationReport& report, double median, double p90) {
  EXPECT_LE(report.time.median_abs, median);
  EXPECT_LE(report.time.p90_abs, p90);
  EXPECT_LE(std::abs(report.time.bias), 0.02);
  ASSERT_TRUE(report.time.rank_correlation.has_value());
  EXPECT_GE(*report.time.rank_correlation, 0.78);
  EXPECT_LE(static_cast<double>(report.skipped), 0.05 * static_cast<double>(report.rows.size()));
  // Eighty percent are meant to lie in their interval.
  EXPECT_GE(report.time.coverage, 0.72);
  EXPECT_LE(report.time.coverage, 0.88);
}

void expect_memory(const ValidationReport& report) {
  EXPECT_GE(report.memory.n, 130U);
  EXPECT_LE(report.memory.median_abs, 0.035);
  const auto simumax = std::find_if(
      report.memory_by_source.begin(), report.memory_by_source.end(),
      [](const auto& each) { return each.first.find("SimuMax") != std::string::npos; });
  ASSERT_NE(simumax, report.memory_by_source.end());
  EXPECT_LE(simumax->second.median_abs, 0.006);
}

void expect_verdicts(const OutOfMemoryTable& table) {
  const auto share = [](std::size_t wrong, std::size_t right) {
    return static_cast<double>(wrong) / static_cast<double>(wrong + right);
  };
  EXPECT_GE(table.true_positive, 100U);
  EXPECT_LE(share(table.false_negative, table.true_positive), 0.05);
  EXPECT_LE(share(table.false_positive, table.true_negative), 0.05);
}

TEST(ValidationLevel, IsNotBelowTheOneReached) {
  if (kSanitized) GTEST_SKIP() << "the optimised build tells the level";
  const ValidationReport grade_a = report_of_grades("A"), all = report_of_grades("ABC");
  EXPECT_GE(grade_a.time.n, 690U);
  EXPECT_GE(all.time.n, 900U);
  expect_steps(grade_a, 0.043, 0.13);
  expect_steps(all, 0.06, 0.17);
  expect_memory(all);
  expect_verdicts(all.out_of_memory);
}

// As if nobody had heard of the software: what is foretold of trainers to come.
TEST(ValidationLevel, IntervalsOfGenericStacksHoldForUnknownSoftware) {
  if (kSanitized) GTEST_SKIP() << "the optimised build tells the level";
  std::size_t rows = 0, compared_rows = 0, inside = 0;
  for (TrainingRow& row : read_training_rows(kFiles)) {
    if (row.grade != "A" || !row.target || ++rows % 2 == 0) continue;
    row.stack = "unheard-of";
    const RowComparison compared = compare_row(row);
    if (compared.skipped) continue;
    ++compared_rows;
    ASSERT_TRUE(compared.stack_profile.starts_with("generic")) << row.id;
    inside +=
        compared.interval_low <= compared.measured && compared.measured <= compared.interval_high
            ? 1
            : 0;
  }
  const double coverage = static_cast<double>(inside) / static_cast<double>(compared_rows);
  EXPECT_GE(compared_rows, 340U);
  EXPECT_GE(coverage, 0.72);
  EXPECT_LE(coverage, 0.88);
}

}  // namespace
}  // namespace shardwright::sim
