// Shipped profiles against published timings, and bad files of them.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/base/error.hpp"
#include "sim/validation/collective_timing.hpp"
#include "sim/validation/kernel_timing.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::sim {
namespace {

std::string shipped(const std::string& name) {
  return std::string(SHARDWRIGHT_SOURCE_DIR) + "/tests/ground_truth/" + name;
}

std::string file_with(const std::string& text) {
  const std::string file = scratch_path("timings.jsonl");
  std::ofstream(file) << text;
  return file;
}

ErrorSummary errors_of(const TimingReport& report, const std::string& part) {
  std::vector<ErrorSample> samples;
  for (const TimingComparison& row : report.rows)
    if (!row.skipped && row.op.find(part) != std::string::npos)
      samples.push_back({row.error(), false});
  return summarise(samples);
}

TEST(KernelTimings, ShippedProfilesReachThePublishedTolerance) {
  const TimingReport report = validate_kernels(shipped("kernels.jsonl"));
  EXPECT_GT(report.all.n, 1100U);
  EXPECT_LE(report.all.median_abs, 0.08);
  EXPECT_LE(report.all.p90_abs, 0.25);
  EXPECT_LE(errors_of(report, "gemm").median_abs, 0.07);
  EXPECT_LE(errors_of(report, "gemm").p90_abs, 0.22);
  EXPECT_LE(errors_of(report, "grouped").p90_abs, 0.25);
  EXPECT_LE(errors_of(report, "attention").median_abs, 0.08);
  EXPECT_LE(errors_of(report, "attention").p90_abs, 0.22);
}

TEST(CollectiveTimings, ShippedClustersReachThePublishedTolerance) {
  const TimingReport report = validate_collectives(shipped("collectives.jsonl"));
  EXPECT_GT(report.all.n, 600U);
  EXPECT_LE(report.all.median_abs, 0.12);
  EXPECT_LE(report.all.p90_abs, 0.35);
}

std::string problems_of(void (*read)(const std::string&), const std::string& text) {
  try {
    read(file_with(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(TimingRows, SizesThatOverflowTheirProductsAreRefused) {
  const std::string found = problems_of(
      [](const std::string& file) { read_kernel_timings(file); },
      R"({"id":"a","gpu":"H100-SXM","op":"gemm","m":4096,"n":8,"k":1e12,"groups":1e12,"tflops":7})");
  EXPECT_NE(found.find("line 1/k: found"), std::string::npos) << found;
  EXPECT_NE(found.find("line 1/groups: found"), std::string::npos) << found;
}

TEST(TimingRows, MoreNodesThanAcceleratorsAreRefused) {
  const std::string found = problems_of(
      [](const std::string& file) { read_collective_timings(file); },
      R"({"id":"a","gpu":"H100-SXM","collective":"all_reduce","gpus":8,"nodes":9,"size_bytes":8})");
  EXPECT_NE(found.find("line 1/nodes: found 9"), std::string::npos) << found;
}

TEST(TimingRows, AMissingIdIsOneProblemOnEachLine) {
  const std::string found =
      problems_of([](const std::string& file) { read_kernel_timings(file); },
                  "{\"gpu\":\"a\",\"op\":\"b\"}\n{\"gpu\":\"a\",\"op\":\"b\"}\n");
  EXPECT_EQ(std::count(found.begin(), found.end(), '\n'), 1) << found;
}

TEST(TimingReport, CountsWhatItSkipsByReason) {
  const std::string rows = R"({"id":"a","gpu":"H100-SXM","op":"gemm","dtype":"bf16","m":4096,)"
                           R"("n":4096,"k":4096,"tflops":700}
{"id":"b","gpu":"Abacus-9","op":"gemm","dtype":"bf16","m":4096,"n":4096,"k":4096,"tflops":1}
{"id":"c","gpu":"H100-SXM","op":"gemm","dtype":"bf16","m":null,"n":4096,"k":4096,"tflops":1}
{"id":"d","gpu":"H100-SXM","op":"sort","dtype":"bf16","tflops":1}
{"id":"e","gpu":"H100-SXM","op":"attention_bw-d","dtype":"bf16","heads":8,"seq":512,"head_dim":64,"causal":true,"tflops":1}
)";
  const TimingReport report = validate_kernels(file_with(rows));
  EXPECT_EQ(report.all.n, 1U);
  EXPECT_EQ(report.skipped, 4U);
  EXPECT_EQ(report.skipped_by_reason.size(), 4U);
  for (const TimingComparison& row : report.rows) EXPECT_EQ(row.skipped, !row.reason.empty());
}

TEST(TimingReport, BadRowsAreAllNamedWithTheirLine) {
  const std::string rows = R"({"id":"a","gpu":"H100-SXM","op":"gemm","m":"wide"}
{"id":"a","gpu":7,"op":"gemm"}
not json
)";
  try {
    validate_kernels(file_with(rows));
    FAIL() << "accepted";
  } catch (const InputError& error) {
    ASSERT_EQ(error.problems().size(), 4U);
    EXPECT_EQ(error.problems()[0].where, "line 1/m");
    EXPECT_EQ(error.problems()[1].where, "line 2/id");
    EXPECT_EQ(error.problems()[2].where, "line 2/gpu");
    EXPECT_EQ(error.problems()[3].where.rfind("line 3", 0), 0U);
  }
}

TEST(CollectiveTimings, AreMatchedToTheClusterThatTheirSystemNames) {
  CollectiveTiming timing;
  timing.gpu = "H100-SXM";
  timing.system = "AWS p5.48xlarge x2, 32x100G EFA v2 per node";
  EXPECT_EQ(cluster_of(timing)->name, "aws-p5");
  timing.system = "8xH100 node, single process";
  EXPECT_EQ(cluster_of(timing)->name, "dgx-h100");
  timing.gpu = "Abacus-9";
  EXPECT_FALSE(cluster_of(timing).has_value());
}

}  // namespace
}  // namespace shardwright::sim
