#include "validation/validation.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <tbb/global_control.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tests/validation/shipped_measurements.hpp"

namespace shardwright::validation {
namespace {

// Some rows of each kind: rates and times, memory, plans that run and do not.
std::vector<std::string> sample() {
  std::vector<std::string> files;
  for (const char* source : {"sc21", "korthi", "titan", "bs", "mcore", "simumax", "zerobubble"})
    files.push_back(shipped_file(std::string("training/") + source));
  return files;
}

const ValidationReport& shipped_report() {
  static const ValidationReport kReport = validate_rows(sample());
  return kReport;
}

TEST(Validation, EveryRowIsComparedOrSkippedWithAReason) {
  const ValidationReport& report = shipped_report();
  std::size_t skipped = 0, timed = 0;
  for (const RowComparison& row : report.rows) {
    skipped += row.skipped ? 1 : 0;
    timed += row.timed ? 1 : 0;
    EXPECT_EQ(row.skipped, !row.reason.empty()) << row.id;
    if (row.timed) {
      EXPECT_GT(row.predicted, 0.0) << row.id;
      EXPECT_LT(row.interval_low, row.predicted);
      EXPECT_GT(row.interval_high, row.predicted);
    }
  }
  EXPECT_EQ(report.skipped, skipped);
  EXPECT_EQ(report.time.n, timed);
}

TEST(Validation, PartsOfMemoryAddUpToWhatTheSourceReads) {
  const auto report = to_json(shipped_report());
  for (const auto& row : report["rows"]) {
    if (row["status"] != "ok") continue;
    double sum = 0.0;
    for (const auto& part : row["memory"]["breakdown"]) sum += part.get<double>();
    const double predicted = row["memory"]["predicted_bytes"];
    EXPECT_NEAR(sum, predicted, 1e-9 * predicted) << row["id"];
    EXPECT_LE(row["memory"]["breakdown"]["not_counted"].get<double>(), 0.0) << row["id"];
  }
}

// Only measurements that ran and are said to fit can be right by the choice of their plan.
TEST(Validation, PlansThatWereChosenToFitAreCounted) {
  const ValidationReport& report = shipped_report();
  std::size_t chosen = 0;
  for (const RowComparison& row : report.rows)
    chosen += !row.skipped && row.chosen_to_fit && !row.out_of_memory_predicted ? 1 : 0;
  EXPECT_EQ(report.out_of_memory.chosen_to_fit, chosen);
  EXPECT_GT(chosen, 0U);
  EXPECT_LT(chosen, report.out_of_memory.true_negative);
}

TEST(Validation, ToleranceHoldsForMedianAndPercentile) {
  const calibration::ErrorSummary& time = shipped_report().time;
  EXPECT_TRUE(within_tolerance(time, time.median_abs, time.p90_abs));
  EXPECT_FALSE(within_tolerance(time, 0.99 * time.median_abs, time.p90_abs));
  EXPECT_FALSE(within_tolerance(time, time.median_abs, 0.99 * time.p90_abs));
  EXPECT_FALSE(within_tolerance(calibration::ErrorSummary(), 1.0, 1.0)) << "nothing was compared";
}

TEST(Validation, RanksPlansOfAGroupAsMeasured) {
  const ValidationReport& report = shipped_report();
  ASSERT_TRUE(report.time.rank_correlation.has_value());
  EXPECT_GT(*report.time.rank_correlation, 0.69);
  // Groups are of one source each, so that the mean over all lies between those of the sources.
  double least = 1.0, most = -1.0;
  for (const auto& [source, summary] : report.by_source) {
    if (!summary.rank_correlation) continue;
    least = std::min(least, *summary.rank_correlation);
    most = std::max(most, *summary.rank_correlation);
  }
  EXPECT_LT(least, *report.time.rank_correlation);
  EXPECT_GT(most, *report.time.rank_correlation);
}

TEST(Validation, CountsEverySimulatedRowInTheMemoryTable) {
  const OutOfMemoryTable& table = shipped_report().out_of_memory;
  EXPECT_EQ(table.true_positive + table.false_positive + table.true_negative + table.false_negative,
            shipped_report().rows.size() - shipped_report().skipped);
}

// A rate that is measured as twice the predicted one means half the step time.
TEST(Validation, ErrorsAreThoseOfTheStepTime) {
  for (const RowComparison& row : shipped_report().rows) {
    if (!row.timed) continue;
    const bool is_time = row.metric == "step_s";
    const double ratio = is_time ? row.predicted / row.measured : row.measured / row.predicted;
    EXPECT_NEAR(row.error, ratio - 1.0, 1e-12) << row.id;
  }
}

TEST(Validation, IsTheSameForAnyNumberOfThreads) {
  const auto all = to_json(shipped_report()).dump();
  const tbb::global_control one(tbb::global_control::max_allowed_parallelism, 1);
  EXPECT_EQ(to_json(validate_rows(sample())).dump(), all);
}

TEST(Validation, TakesOnlyTheGradesAskedFor) {
  const ValidationReport some = validate_rows(sample(), {.grades = "C"});
  EXPECT_EQ(some.other_grades, shipped_report().rows.size() - some.rows.size());
  for (const RowComparison& row : some.rows) EXPECT_EQ(row.grade, "C") << row.id;
}

// A plan that was guessed, and software that has no profile, leave more room for error.
TEST(Validation, IntervalsAreWiderWhereLessIsKnown) {
  Measurement row = shipped("sc21", "sc21-t1-1.7b");
  row.grade = "A";
  row.open.clear();
  const auto width = [&row] {
    const RowComparison comparison = compare_row(row);
    return comparison.interval_high / comparison.interval_low;
  };
  const double stated = width();
  row.open = {"micro_batch"};
  const double guessed = width();
  row.stack_stands_in = true;
  EXPECT_LT(stated, guessed);
  EXPECT_LT(guessed, width());
}

TEST(Validation, EveryRowSaysWhatItWasSimulatedWith) {
  for (const RowComparison& row : shipped_report().rows) {
    EXPECT_EQ(row.skipped, row.accelerator_profile.empty()) << row.id;
    EXPECT_EQ(row.skipped, row.cluster_profile.empty()) << row.id;
    EXPECT_EQ(row.skipped, row.stack_profile.empty()) << row.id;
  }
  const auto document = to_json(shipped_report());
  for (const auto& row : document.at("rows")) {
    if (row.at("status") == "skipped") continue;
    for (const char* profile : {"accelerator", "cluster", "stack"})
      EXPECT_TRUE(row.at("profiles").at(profile).is_string());
    EXPECT_TRUE(row.at("filled_in").is_array());
  }
}

TEST(Validation, JsonHasTheAgreedNames) {
  const auto document = to_json(shipped_report());
  for (const char* key : {"n", "skipped", "median_abs_pct", "mean_abs_pct", "p90_abs_pct",
                          "bias_pct", "coverage", "by_source"})
    EXPECT_TRUE(document.at("summary").contains(key)) << key;
  for (const char* key : {"id", "metric", "measured", "predicted", "interval", "error_pct",
                          "memory", "status", "reason"})
    EXPECT_TRUE(document.at("rows").at(0).contains(key)) << key;
  for (const char* key : {"tp", "fp", "tn", "fn", "tn_chosen_to_fit"})
    EXPECT_TRUE(document.at("oom").contains(key)) << key;
  EXPECT_EQ(document.at("rows").at(0).at("interval").size(), 2U);
}

// Tokens of a node taken for those of an accelerator; the row multiplies in FP8.
TEST(Validation, RatesThatNoAcceleratorReachesAreSkipped) {
  Measurement row = shipped("titan", "titan-8b-h200-g64");
  ASSERT_FALSE(compare_row(row).skipped);
  row.figure = ComparedFigure{StepMetric::TokenRate, 64000.0, false, {}};
  const RowComparison compared = compare_row(row);
  EXPECT_TRUE(compared.skipped);
  EXPECT_NE(compared.reason.find("above its peak of 1.98 PFLOP/s"), std::string::npos)
      << compared.reason;
}

TEST(Validation, TheReportShowsIntervalAndMemoryOfARow) {
  Measurement row = shipped("titan", "titan-8b-h200-g64");
  row.measured.peak_memory = gigabytes(77.7);
  ValidationReport report;
  report.rows = {compare_row(row)};
  const std::string html = html_report(report);
  const RowComparison& compared = report.rows.front();
  EXPECT_NE(
      html.find(fmt::format("{:.4g} to {:.4g}", compared.interval_low, compared.interval_high)),
      std::string::npos);
  EXPECT_NE(html.find(fmt::format("{:.1f} of {:.1f}", compared.predicted_memory / gigabytes(1.0),
                                  *compared.measured_memory / gigabytes(1.0))),
            std::string::npos);
}

}  // namespace
}  // namespace shardwright::validation
