// Measured kernels go before the formula in their range, and tables survive writing and reading.
#include "sim/cost/measured_kernels.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "core/base/error.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "tests/scratch_path.hpp"
#include "tests/sim/cost/shipped_hardware.hpp"
#include "tests/thrown.hpp"

namespace shardwright::sim {
namespace {

GemmWork gemm(std::int64_t m) {
  return {.m = m, .n = 4096, .k = 4096};
}

KernelCost cost(const GemmWork& work, const AcceleratorSpec& device) {
  return kernel_cost(OpKind::Gemm, work, Precision::Bf16, device, StackSpec{});
}

// Measured at m = 1024 and 4096, 1.5 and 1.2 times as slow as the formula says.
AcceleratorSpec measured_device() {
  AcceleratorSpec device = fixtures::h100();
  for (const auto& [m, slower] : {std::pair{1024, 1.5}, std::pair{4096, 1.2}}) {
    const Seconds formula = cost(gemm(m), fixtures::h100()).time;
    device.measured_kernels.push_back({OpKind::Gemm, Precision::Bf16, gemm(m), formula * slower});
  }
  return device;
}

double ratio(std::int64_t m) {
  return cost(gemm(m), measured_device()).time / cost(gemm(m), fixtures::h100()).time;
}

TEST(MeasuredKernels, GiveTheTimeOfTheirShapeAndBetweenTwo) {
  EXPECT_NEAR(ratio(1024), 1.5, 1e-12);
  EXPECT_NEAR(ratio(4096), 1.2, 1e-12);
  EXPECT_NEAR(ratio(2048), std::sqrt(1.5 * 1.2), 1e-12);
  EXPECT_EQ(cost(gemm(2048), measured_device()).basis, CostBasis::Measured);
}

TEST(MeasuredKernels, LeaveTheFormulaFarFromThem) {
  EXPECT_NEAR(ratio(256), 1.0, 1e-12);
  EXPECT_NEAR(ratio(16384), 1.0, 1e-12);
  EXPECT_EQ(cost(gemm(16384), measured_device()).basis, CostBasis::Formula);
  GemmWork other = gemm(2048);
  other.k = 512;
  EXPECT_EQ(cost(other, measured_device()).time, cost(other, fixtures::h100()).time);
  GemmWork batched = gemm(2048);
  batched.batch = 2;
  EXPECT_EQ(cost(batched, measured_device()).time, cost(batched, fixtures::h100()).time);
}

TEST(MeasuredKernels, CorrectOtherShapesByThoseNearThem) {
  double last = 1.5;
  for (const std::int64_t k : {4608, 5120, 6144, 8192, 11000}) {
    GemmWork near = gemm(1024);
    near.k = k;
    const KernelCost corrected = cost(near, measured_device());
    const double now = corrected.time / cost(near, fixtures::h100()).time;
    EXPECT_LT(now, last) << k;
    EXPECT_GT(now, 1.0) << k;
    EXPECT_EQ(corrected.basis, CostBasis::Formula) << k;
    last = now;
  }
}

TEST(MeasuredKernels, CorrectProductsThatAddToABufferByThoseThatDoNot) {
  GemmWork adds = gemm(1024);
  adds.accumulate_fp32 = true;
  const double ratio = cost(adds, measured_device()).time / cost(adds, fixtures::h100()).time;
  // The share of the spread between shapes that is not a shape's own.
  EXPECT_NEAR(ratio, std::pow(1.5, 0.01 / (0.01 + 0.055 * 0.055)), 0.01);
}

// Half of the timings, drawn at random, predict the others; measured are those that the formula
// gives on a device whose waves and overheads are other ones.
TEST(MeasuredKernels, HalfOfThemPredictTheOtherHalf) {
  AcceleratorSpec truth = fixtures::h100();
  truth.efficiency.wave_loss = 1.0;
  truth.efficiency.gemm_overhead = microseconds(9.0);
  truth.efficiency.operand_bandwidth_ratio /= 2.0;
  std::mt19937_64 random(29);
  std::uniform_real_distribution<double> octaves(8.0, 13.0);
  const auto size = [&] { return static_cast<std::int64_t>(std::exp2(octaves(random))); };
  AcceleratorSpec device = fixtures::h100();
  for (int i = 0; i < 500; ++i) {
    const GemmWork work{.m = size(), .n = size(), .k = size()};
    device.measured_kernels.push_back(
        {OpKind::Gemm, Precision::Bf16, work, cost(work, truth).time});
  }
  double by_formula = 0.0, by_neighbours = 0.0;
  for (int i = 0; i < 200; ++i) {
    const GemmWork work{.m = size(), .n = size(), .k = size()};
    const double wanted = std::log(cost(work, truth).time.value());
    by_formula += std::abs(std::log(cost(work, fixtures::h100()).time.value()) - wanted);
    by_neighbours += std::abs(std::log(cost(work, device).time.value()) - wanted);
  }
  EXPECT_LT(by_neighbours, 0.5 * by_formula);
}

TEST(CostBasis, ShapesAndDevicesWithoutAFitAreExtrapolated) {
  EXPECT_EQ(cost(gemm(8), fixtures::h100()).basis, CostBasis::Extrapolated);
  AcceleratorSpec unfitted = fixtures::h100();
  unfitted.efficiency.matrix_main_loop = 0.0;
  EXPECT_EQ(cost(gemm(4096), unfitted).basis, CostBasis::Extrapolated);
}

TEST(KernelTable, SurvivesWritingAndReading) {
  const AttentionWork attention{.batch = 2,
                                .heads = 32,
                                .kv_heads = 8,
                                .q_tokens = 4096,
                                .kv_tokens = 8192,
                                .qk_head_dim = 192,
                                .v_head_dim = 128,
                                .score_share = 0.5,
                                .backward = true};
  GemmWork grouped{.m = 1024, .n = 2048, .k = 512, .batch = 3, .groups = 8};
  grouped.groups_share_k = grouped.accumulate_fp32 = true;
  const MemoryWork norm{.read = Bytes(1e6), .written = Bytes(2e6), .flop = Flop(0), .kernels = 4};
  const std::vector<MeasuredKernel> kernels = {
      {OpKind::GroupedGemm, Precision::Fp8, grouped, microseconds(12.5)},
      {OpKind::Attention, Precision::Bf16, attention, microseconds(0.1)},
      {OpKind::Norm, Precision::Bf16, norm, microseconds(3.0)}};
  const std::string file = scratch_path("kernels.csv");
  {
    std::ofstream stream(file);
    write_kernel_table(stream, kernels);
  }
  EXPECT_EQ(read_kernel_table(file), kernels);
}

std::vector<std::string> findings_in(const std::string& table) {
  std::istringstream stream(table);
  std::vector<std::string> found;
  for (const Problem& each : problems_thrown_by([&] { read_kernel_table(stream, "table"); }))
    found.push_back(each.where + ": " + each.found);
  return found;
}

TEST(KernelTable, RefusesWhatIsNoTable) {
  using Found = std::vector<std::string>;
  const std::string header = "op,precision,m,n,k,time_s\n";
  EXPECT_EQ(findings_in(""), Found{": an empty file"});
  EXPECT_EQ(findings_in(std::string("\x7f"
                                    "ELF\0\1",
                                    6)),
            Found{"line 1: binary data"});
  EXPECT_EQ(findings_in(header + std::string("gemm\0", 5)), Found{"line 2: binary data"});
  EXPECT_EQ(findings_in(std::string(1 << 20, 'x')), Found{"line 1: more than 65536 bytes"});
  EXPECT_EQ(findings_in("op,precision,op\n"),
            (Found{"line 1: \"op\" again", "line 1: a header without it"}));
  EXPECT_EQ(findings_in(header + "gemm,bf16,1,2,3,nan\n"), Found{"line 2/time_s: \"nan\""});
  EXPECT_EQ(findings_in(header + "gemm,bf16,1,2,1e300,1e-5\n"), Found{"line 2/k: \"1e300\""});
  EXPECT_EQ(findings_in(header + "gemm,bf16,1.5,2,3,1e-5\n"), Found{"line 2/m: \"1.5\""});
  EXPECT_EQ(
      findings_in(header + "gemm,bf16,1,2,3,1e-5\ngemm,bf16,1,2,4,1e-5\ngemm,bf16,1,2,3,2e-5\n"),
      Found{"line 4: the shape of line 2 again"});
  EXPECT_THROW(read_kernel_table(std::filesystem::temp_directory_path().string()), InputError);
}

TEST(KernelTable, GoesOnAfterBadLinesButNotForever) {
  std::string table = "op,precision,m,n,k,time_s\n";
  for (int i = 0; i < 1000; ++i) table += "gemm,bf16,1\n";
  EXPECT_EQ(findings_in(table).size(), 100U);
}

TEST(KernelTable, BadCellsAreAllNamed) {
  const std::string file = scratch_path("bad.csv");
  std::ofstream(file) << "op,precision,m,n,k,time_s\n"
                         "gemm,bf16,0,2,3,1e-5\n"
                         "gem,bf16,1,2,3,-1\n"
                         "gemm,bf16,1\n";
  EXPECT_EQ(problems_of([&file] { read_kernel_table(file); }),
            (std::vector<std::string>{"line 2/m", "line 3/op", "line 3/time_s", "line 4"}));
}

}  // namespace
}  // namespace shardwright::sim
