// Shipped profiles against published timings, and odd rows of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"
#include "tests/validation/shipped_measurements.hpp"
#include "validation/timing_report.hpp"

namespace shardwright::validation {
namespace {

using nlohmann::json;

calibration::ErrorSummary errors_of(const TimingReport& report, const std::string& part) {
  std::vector<calibration::ErrorSample> samples;
  for (const TimingComparison& row : report.rows)
    if (!row.skipped && row.op.find(part) != std::string::npos)
      samples.push_back({row.error(), false});
  return calibration::summarise(samples);
}

TEST(KernelTimings, ShippedProfilesReachThePublishedTolerance) {
  const TimingReport report = validate_kernels(shipped_file("kernels"));
  EXPECT_GT(report.all.n, 1100U);
  EXPECT_LE(report.all.median_abs, 0.08);
  EXPECT_LE(report.all.p90_abs, 0.25);
  EXPECT_LE(errors_of(report, "gemm").median_abs, 0.07);
  EXPECT_LE(errors_of(report, "gemm").p90_abs, 0.22);
  EXPECT_LE(errors_of(report, "grouped").p90_abs, 0.25);
  EXPECT_LE(errors_of(report, "attention").median_abs, 0.08);
  EXPECT_LE(errors_of(report, "attention").p90_abs, 0.22);
}

// Medians and 90th percentiles; no shape of the file is among those of the tables.
TEST(KernelTimings, BurstsReachTheToleranceOfTheirDevice) {
  const TimingReport report = validate_kernels(shipped_file("operators"));
  EXPECT_EQ(report.skipped, 0U);
  EXPECT_EQ(report.by_device.size(), 7U);
  for (const auto& [name, errors] : report.by_device) {
    EXPECT_LE(errors.median_abs, 0.05) << name;
    EXPECT_LE(errors.p90_abs, 0.14) << name;
  }
  for (const auto& [name, errors] : report.by_device_and_op) {
    EXPECT_LE(errors.median_abs, 0.055) << name;
    EXPECT_LE(errors.p90_abs, name == "GB200  attention_fwd bf16" ? 0.24 : 0.15) << name;
  }
}

std::string shape_of(OpKind kind, Precision precision, const Work& work) {
  if (const auto* gemm = std::get_if<GemmWork>(&work))
    return fmt::format("{} {} {} {} {} {}", name_of(kind), name_of(precision), gemm->m, gemm->n,
                       gemm->k, gemm->groups);
  const auto* attention = std::get_if<AttentionWork>(&work);
  if (attention == nullptr) return "";
  return fmt::format("{} {} {} {} {} {}", name_of(kind), attention->batch, attention->heads,
                     attention->kv_heads, attention->q_tokens, attention->qk_head_dim);
}

TEST(KernelTimings, TablesOfBurstsHoldNoShapeThatValidates) {
  std::map<std::string, std::set<std::string>> shapes;
  for (const calibration::KernelTiming& timing : read_kernel_timings(shipped_file("operators")))
    for (const auto& [kind, work, call] : timing.kernels)
      shapes[timing.accelerator].insert(shape_of(kind, timing.precision, work));
  EXPECT_EQ(shapes.size(), 7U);
  for (const auto& [accelerator, measured] : shapes) {
    const std::vector<MeasuredKernel> table = calibration::burst_kernels(accelerator);
    EXPECT_GT(table.size(), 1500U) << accelerator;
    for (const MeasuredKernel& kernel : table)
      EXPECT_EQ(measured.count(shape_of(kernel.kind, kernel.precision, kernel.work)), 0U);
  }
}

TEST(CollectiveTimings, ShippedClustersReachThePublishedTolerance) {
  const TimingReport report = validate_collectives(shipped_file("collectives"));
  EXPECT_GT(report.all.n, 1000U);
  EXPECT_LE(report.all.median_abs, 0.07);
  EXPECT_LE(report.all.p90_abs, 0.29);
}

// Latency rules small messages and links the large ones: none may hide behind the other. Between 8
// and 130 MB lies the step of NCCL on Blackwell (docs/models/collectives.md).
TEST(CollectiveTimings, EachSizeClassReachesItsTolerance) {
  const TimingReport report = validate_collectives(shipped_file("collectives"));
  std::vector<std::string> names;
  std::size_t counted = 0;
  for (const auto& [name, errors] : report.by_size) {
    names.push_back(name);
    counted += errors.n;
    const bool small = name == "below 1 MB" || name == "1 to 8 MB";
    const bool steps = name == "8 to 130 MB";
    EXPECT_LE(errors.median_abs, small ? 0.15 : steps ? 0.08 : 0.05) << name;
    EXPECT_LE(errors.p90_abs, small ? 0.45 : steps ? 0.26 : 0.15) << name;
  }
  EXPECT_THAT(names, testing::ElementsAre("below 1 MB", "1 to 8 MB", "8 to 130 MB", "from 130 MB"));
  EXPECT_EQ(counted, report.all.n);
  EXPECT_TRUE(validate_kernels(shipped_file("kernels")).by_size.empty());
}

json gemm() {
  return json::parse(R"({"id": "gemm", "source": {"title": "An example"}, "device": "H100",
    "op": "gemm bf16", "accelerator": "h100-sxm", "precision": "bf16",
    "kernels": [{"kind": "gemm", "m": 8192, "n": 8192, "k": 8192}], "measured_s": 1.6e-3})");
}

json reduction() {
  return json::parse(R"({"id": "reduction", "source": {"title": "An example"},
    "accelerator": "H100", "cluster": "dgx-h100", "collective": "all_reduce", "members": 8,
    "bytes": 1e9, "measured_s": 4.4e-3})");
}

std::string file_with(const json& row) {
  const std::string file = scratch_path("timings.jsonl");
  std::ofstream(file) << row.dump() << '\n';
  return file;
}

TimingComparison compared_kernel(const json& row) {
  return validate_kernels(file_with(row)).rows.front();
}

TimingComparison compared_collective(const json& row) {
  return validate_collectives(file_with(row)).rows.front();
}

TEST(KernelTimings, OddRowsAreRefusedAtTheirPlace) {
  for (const auto& [pointer, value, place] :
       {std::tuple{"/accelerator", json("h100-sxmm"), "line 1/accelerator"},
        {"/precision", "int8", "line 1/precision"},
        {"/measured_s", 0, "line 1/measured_s"},
        {"/burst", "yes", "line 1/burst"},
        {"/kernels/0/m", 0, "line 1/kernels/0/m"},
        {"/kernels/0/kind", "gem", "line 1/kernels/0/kind"},
        {"/kernels/0/heads", 8, "line 1/kernels/0/heads"},
        {"/gpu", "H100", "line 1/gpu"}})
    EXPECT_THAT(problems_of([&] { compared_kernel(with(gemm(), pointer, value)); }),
                ::testing::ElementsAre(place));
}

TEST(CollectiveTimings, OddRowsAreRefusedAtTheirPlace) {
  for (const auto& [pointer, value, place] :
       {std::tuple{"/cluster", json("dgx-h10"), "line 1/cluster"},
        {"/cluster", 3, "line 1/cluster"},
        {"/collective", "gather", "line 1/collective"},
        {"/members", 1, "line 1/members"},
        {"/bytes", 0, "line 1/bytes"},
        {"/nodes", 3, "line 1/nodes"},
        {"/algorithm", "msccl", "line 1/algorithm"}})
    EXPECT_THAT(problems_of([&] { compared_collective(with(reduction(), pointer, value)); }),
                ::testing::ElementsAre(place));
}

TEST(TimingRows, WhatNoDeviceReachesIsSkipped) {
  EXPECT_FALSE(compared_kernel(gemm()).skipped);
  EXPECT_THAT(compared_kernel(with(gemm(), "/measured_s", 1e-4)).reason,
              ::testing::HasSubstr("above the device's peak of 989"));
  EXPECT_THAT(compared_kernel(with(gemm(), "/accelerator", "v100-sxm2-32gb")).reason,
              ::testing::HasSubstr("does not multiply in bf16"));
  EXPECT_FALSE(compared_collective(reduction()).skipped);
  EXPECT_THAT(compared_collective(with(reduction(), "/measured_s", 4e-4)).reason,
              ::testing::HasSubstr("more than twice the 450 GB/s of the accelerator's links"));
  json crowded = with(reduction(), "/members", 16);
  crowded["nodes"] = 1;
  EXPECT_EQ(compared_collective(crowded).reason,
            "16 accelerators do not fit a node of 8 (dgx-h100)");
}

TEST(TimingRows, UnsupportedRowsAreSkippedWithTheirReason) {
  const json kernel = json::parse(R"({"id": "a", "source": {"title": "An example"},
    "device": "H100", "op": "sort", "unsupported": "no model of \"sort\""})");
  EXPECT_EQ(compared_kernel(kernel).reason, "no model of \"sort\"");
  const json collective = json::parse(R"({"id": "a", "source": {"title": "An example"},
    "collective": "gather", "members": 8, "unsupported": "no model of \"gather\""})");
  EXPECT_EQ(compared_collective(collective).reason, "no model of \"gather\"");
}

TEST(TimingRows, NodesThatAreLeftOpenAreAsManyAsTheGroupFills) {
  const json open = with(reduction(), "/members", 16);
  EXPECT_EQ(compared_collective(open).op, "all_reduce across nodes");
  EXPECT_EQ(compared_collective(open).predicted,
            compared_collective(with(open, "/nodes", 2)).predicted);
  EXPECT_THAT(compared_collective(open).filled_in, ::testing::Contains("nodes: 2"));
  // Two accelerators of different nodes talk over the network.
  const json pair = with(reduction(), "/members", 2);
  EXPECT_GT(compared_collective(with(pair, "/nodes", 2)).predicted,
            compared_collective(with(pair, "/nodes", 1)).predicted);
}

TEST(TimingRows, AlgorithmsAreForced) {
  json large = with(reduction(), "/members", 64);
  large["nodes"] = 8;
  EXPECT_NE(compared_collective(with(large, "/algorithm", "tree")).predicted,
            compared_collective(with(large, "/algorithm", "ring")).predicted);
  // Trees join nodes.
  EXPECT_EQ(compared_collective(with(reduction(), "/algorithm", "tree")).reason,
            "no model of the algorithm tree on this path");
}

TEST(TimingRows, CallsOfAFrameworkAreAddedToCollectivesAndBoundKernels) {
  const Seconds alone = compared_collective(reduction()).predicted;
  EXPECT_NEAR((compared_collective(with(reduction(), "/call_s", 24e-6)).predicted - alone).value(),
              24e-6, 1e-12);
  const Seconds kernel = compared_kernel(gemm()).predicted;
  EXPECT_EQ(compared_kernel(with(gemm(), "/kernels/0/call_s", 1e-6)).predicted, kernel);
  EXPECT_EQ(compared_kernel(with(gemm(), "/kernels/0/call_s", 1.0)).predicted, Seconds(1.0));
}

TEST(TimingRows, KernelsOfOneTimingRunAfterEachOther) {
  json twice = gemm();
  const json kernel = twice["kernels"][0];
  twice["kernels"].push_back(kernel);
  twice["measured_s"] = 3.2e-3;
  EXPECT_NEAR(compared_kernel(twice).predicted / compared_kernel(gemm()).predicted, 2.0, 1e-12);
}

// At 350 W and 400 W against the 700 W of the module.
TEST(KernelTimings, CardsMultiplySlowerThanModulesByTheirPower) {
  const auto rate = [](const char* accelerator) {
    return 1.0 / compared_kernel(with(gemm(), "/accelerator", accelerator)).predicted.value();
  };
  EXPECT_NEAR(rate("h100-pcie") / rate("h100-sxm"), 114.0 / 132.0 * 0.761, 0.06);
  EXPECT_NEAR(rate("h100-nvl") / rate("h100-sxm"), 0.756, 0.06);
}

TEST(TimingReport, CountsWhatItSkipsByReason) {
  const TimingReport report = validate_kernels(shipped_file("kernels"));
  std::size_t counted = 0;
  for (const auto& [reason, count] : report.skipped_by_reason) counted += count;
  EXPECT_EQ(counted, report.skipped);
  EXPECT_EQ(report.all.n + report.skipped, report.rows.size());
  for (const TimingComparison& row : report.rows) EXPECT_EQ(row.skipped, !row.reason.empty());
}

}  // namespace
}  // namespace shardwright::validation
