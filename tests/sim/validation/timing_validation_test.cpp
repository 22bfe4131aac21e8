// Shipped profiles against published timings, and odd rows of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <tuple>

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

constexpr const char* kGoodGemm =
    R"({"id":"good","gpu":"H100-SXM","op":"gemm","dtype":"bf16","m":4096,"n":4096,"k":4096,"tflops":700})"
    "\n";
constexpr const char* kGoodReduction =
    R"({"id":"good","gpu":"H100-SXM","collective":"all_reduce","gpus":8,"size_bytes":1e9,"busbw_gbs":400})"
    "\n";

// Why a row is skipped that stands below a good one; empty if it is not, or the good one is, too.
std::string reason_among_good(bool kernel, const std::string& row) {
  const std::string file = file_with((kernel ? kGoodGemm : kGoodReduction) + row + "\n");
  const TimingReport report = kernel ? validate_kernels(file) : validate_collectives(file);
  if (report.rows.size() != 2 || report.rows[0].skipped || !report.rows[1].skipped) return "";
  return report.rows[1].reason;
}

std::string with(std::string row, const std::string& key, const std::string& value) {
  const auto place = row.find('"' + key + "\":") + key.size() + 3;
  return row.replace(place, row.find_first_of(",}", place) - place, value);
}

TEST(TimingRows, AnOddKernelIsSkippedAndCostsTheOthersNothing) {
  for (const auto& [key, value, reason] :
       {std::tuple{"gpu", "null", "the source does not name the device"},
        {"gpu", "3", "line 2/gpu: found 3"},
        {"op", "null", "the source does not name the op"},
        {"id", "7", "line 2/id: found 7"},
        {"m", "\"4096\"", "line 2/m: found \"4096\""},
        {"m", "0", "line 2/m: found 0"},
        {"k", "1e12", "line 2/k: found"},
        {"tflops", "0", "line 2/tflops: found 0"},
        {"op", "\"gemm\",\"stage\":\"foo\"", "no model of the stage \"foo\""},
        {"op", "\"gemm\",\"out_dtype\":\"zzz\"", "the number format \"zzz\" is not modelled"},
        {"op",
         "\"attention_fwd\",\"heads\":16,\"kv_heads\":3,\"seq\":4096,\"head_dim\":128,\"causal\":"
         "true",
         "16 heads cannot share 3 kv_heads"},
        {"tflops", "null", "the source gives no rate"},
        {"tflops", "2400", "2400 TFLOP/s are above the device's peak of 989"},
        {"tflops", "700,\"notes\":\"2:4 structured sparsity\"", "sparsity, which is not modelled"},
        {"gpu", "\"V100-SXM2\"", "v100-sxm2-32gb does not multiply in bf16"},
        {"op", "\"grouped_gemm\"", "does not give the number of groups"},
        {"op", "\"adam8bit\"", "no model of \"adam8bit\""},
        {"op", "\"fused_adam\",\"gb_s\":1000", "does not give the number of parameters"}}) {
    const std::string row = with(kGoodGemm, key, value);
    EXPECT_THAT(reason_among_good(true, row), ::testing::HasSubstr(reason)) << row;
  }
  EXPECT_THAT(reason_among_good(true, "not json"), ::testing::HasSubstr("expected"));
  EXPECT_THAT(reason_among_good(true, "[1]"), ::testing::StartsWith("line 2: found an array"));
}

TEST(TimingRows, CollectivesAreKnownByEverySpelling) {
  for (const char* name : {"AllReduce", "all-reduce", "all_reduce_perf", "all_to_all", "all-gather",
                           "ReduceScatter", "send/recv", "p2p", "ncclAllReduce", "All-to-All (v)",
                           "torch.distributed.all_reduce", "reduce_scatter_tensor"}) {
    const std::string row = with(kGoodReduction, "collective", '"' + std::string(name) + '"');
    EXPECT_EQ(validate_collectives(file_with(row)).skipped, 0U) << name;
  }
}

TEST(TimingRows, AnOddCollectiveIsSkippedAndCostsTheOthersNothing) {
  for (const auto& [key, value, reason] :
       {std::tuple{"gpus", "null", "line 2/gpus: found null"},
        {"gpus", "1", "line 2/gpus: found 1"},
        {"collective", "null", "the source does not name the collective"},
        {"size_bytes", "0", "line 2/size_bytes: found 0"},
        {"busbw_gbs", "0", "line 2/busbw_gbs: found 0"}}) {
    const std::string row = with(kGoodReduction, key, value);
    EXPECT_THAT(reason_among_good(false, row), ::testing::HasSubstr(reason)) << row;
  }
  for (const auto& [key, value, reason] :
       {std::tuple{"collective", "\"gather\"", "no model of \"gather\""},
        {"busbw_gbs", "4750", "4750 GB/s are more than twice the 450 of the accelerator's links"},
        {"gpus", "16,\"nodes\":1", "16 accelerators do not fit a node of 8"},
        {"gpus", "64,\"nodes\":9", "64 accelerators do not spread evenly over 9 nodes"},
        {"collective", "\"p2p\",\"notes\":\"bidirectional\"", "both directions"},
        {"collective", "\"all_reduce\",\"algo\":\"MSCCL++\"", "no model of the library"}}) {
    const std::string row = with(kGoodReduction, key, value);
    EXPECT_THAT(reason_among_good(false, row), ::testing::HasSubstr(reason)) << row;
  }
  for (const char* more : {R"("fit":"yes")", R"("nodes":9)"}) {
    std::string row = kGoodReduction;
    row.insert(1, std::string(more) + ",");
    EXPECT_THAT(reason_among_good(false, row), ::testing::StartsWith("line 2/")) << row;
  }
}

TimingComparison compared_collective(const std::string& row) {
  return validate_collectives(file_with(row)).rows.front();
}

// 8 accelerators reduce 1 GB at 400 GB/s of their buses, 7/4 of what goes in.
TEST(TimingRows, ACollectivesTimeIsReadFromEachOfItsFigures) {
  const double seconds = 1e9 * 1.75 / 400e9;
  for (const char* figure : {R"("busbw_gbs":400)", R"("algbw_gbs":228.5714286)",
                             R"("time_us":4375)", R"("time_ms":4.375)", R"("time_s":0.004375)"}) {
    std::string row = kGoodReduction;
    row.replace(row.find(R"("busbw_gbs":400)"), 15, figure);
    EXPECT_NEAR(compared_collective(row).measured.value(), seconds, 1e-9) << figure;
  }
  const std::string both = with(kGoodReduction, "busbw_gbs", "400,\"algbw_gbs\":400");
  EXPECT_NEAR(compared_collective(both).measured.value(), seconds, 1e-9);
  EXPECT_THAT(compared_collective(both).filled_in,
              ::testing::Contains(::testing::HasSubstr("algbw_gbs 400 contradicts")));
}

TEST(TimingRows, NodesThatAreLeftOpenAreAsManyAsTheGroupFills) {
  const std::string open = with(kGoodReduction, "gpus", "16");
  const std::string stated = with(kGoodReduction, "gpus", "16,\"nodes\":2");
  EXPECT_EQ(compared_collective(open).op, "all_reduce across nodes");
  EXPECT_EQ(compared_collective(open).predicted, compared_collective(stated).predicted);
  EXPECT_THAT(compared_collective(open).filled_in, ::testing::Contains("nodes: 2"));
  EXPECT_THAT(compared_collective(stated).filled_in, ::testing::IsEmpty());
  EXPECT_THAT(compared_collective(kGoodReduction).filled_in, ::testing::Contains("nodes: 1"));
  // Two accelerators of different nodes talk over the network.
  const std::string apart = with(kGoodReduction, "gpus", "2,\"nodes\":2");
  EXPECT_GT(compared_collective(apart).predicted,
            compared_collective(with(kGoodReduction, "gpus", "2,\"nodes\":1")).predicted);
}

TEST(TimingRows, AlgorithmsAreForcedOrListed) {
  const auto with_algorithm = [](const char* gpus, const std::string& text) {
    return compared_collective(
        with(kGoodReduction, "gpus", std::string(gpus) + ",\"algo\":\"" + text + '"'));
  };
  const TimingComparison tree = with_algorithm("64,\"nodes\":8", "Tree LL128");
  const TimingComparison ring = with_algorithm("64,\"nodes\":8", "Ring");
  EXPECT_NE(tree.predicted, ring.predicted);
  EXPECT_THAT(tree.filled_in, ::testing::Contains("protocol: the fastest, for \"Tree LL128\""));
  EXPECT_THAT(ring.filled_in, ::testing::IsEmpty());
  // Trees join nodes.
  EXPECT_EQ(with_algorithm("8,\"nodes\":1", "Tree").reason,
            "no model of the algorithm tree on this path");
  EXPECT_THAT(with_algorithm("8,\"nodes\":1", "SHARP").filled_in,
              ::testing::Contains("algo: as NCCL chooses, for \"SHARP\""));
}

// Whatever becomes of them, rows can be told from each other.
TEST(TimingRows, RowsWithoutAnIdOfTheirOwnAreNamedByTheirLine) {
  const std::string row = kGoodGemm;
  const TimingReport report = validate_kernels(file_with(row + with(row, "id", "null") + row));
  EXPECT_EQ(report.all.n, 3U);
  EXPECT_EQ(report.rows[1].id, "line 2");
  EXPECT_THAT(report.rows[1].filled_in, ::testing::ElementsAre("id: line 2"));
  EXPECT_THAT(report.rows[2].filled_in,
              ::testing::ElementsAre("id: another row of the file has it too"));
}

TEST(TimingRows, AFileWithoutAnyReadableRowIsRefused) {
  EXPECT_THROW(read_kernel_timings(file_with("{\"gpu\":3}\nnot json\n")), InputError);
  EXPECT_THROW(read_collective_timings(file_with("{\"gpus\":1}\n")), InputError);
  std::string garbage = kGoodGemm;
  for (int i = 0; i < 5000; ++i) garbage += "garbage\n";
  try {
    read_kernel_timings(file_with(garbage));
    FAIL() << "read garbage";
  } catch (const InputError& error) {
    EXPECT_EQ(error.problems().size(), 100U);
  }
}

// As in training rows: 8-bit formats are fp8, what has no model is no bf16.
TEST(KernelTimings, NumberFormatsAreReadAsThoseOfTrainingRows) {
  const auto compared = [](const std::string& gpu, const std::string& dtype) {
    const std::string row = with(with(kGoodGemm, "gpu", gpu), "dtype", dtype);
    return validate_kernels(file_with(row)).rows.front();
  };
  const Seconds fp8 = compared("\"H100-SXM\"", "\"fp8\"").predicted;
  const Seconds bf16 = compared("\"H100-SXM\"", "\"bf16\"").predicted;
  ASSERT_LT(fp8, bf16);
  for (const char* dtype : {"\"mxfp8\"", "\"e4m3\"", "\"FP8\""})
    EXPECT_EQ(compared("\"H100-SXM\"", dtype).predicted, fp8) << dtype;
  for (const char* dtype : {"\"int8\"", "\"fp64\"", "\"mxfp4\"", "\"posit\""})
    EXPECT_THAT(compared("\"H100-SXM\"", dtype).reason, ::testing::HasSubstr("is not modelled"))
        << dtype;
  EXPECT_THAT(compared("\"H100-SXM\"", "\"nvfp4\"").reason,
              ::testing::HasSubstr("does not multiply in nvfp4"));
  EXPECT_LT(compared("\"B200-SXM\"", "\"fp4\"").predicted,
            compared("\"B200-SXM\"", "\"fp8\"").predicted);
}

TEST(KernelTimings, AFormatThatIsLeftOpenIsAssumedAndSaid) {
  const TimingReport report = validate_kernels(
      file_with(kGoodGemm + with(with(kGoodGemm, "dtype", "null"), "id", "\"open\"")));
  EXPECT_EQ(report.rows[1].predicted, report.rows[0].predicted);
  EXPECT_EQ(report.rows[1].op, "gemm bf16");
  EXPECT_THAT(report.rows[1].filled_in, ::testing::ElementsAre("dtype: bf16"));
  EXPECT_TRUE(report.rows[0].filled_in.empty());
}

TEST(KernelTimings, DevicesAndOpsAreKnownByEverySpelling) {
  const auto compared = [](const std::string& row) {
    return validate_kernels(file_with(row + "\n")).rows.front();
  };
  const Seconds gemm = compared(kGoodGemm).predicted;
  ASSERT_GT(gemm, Seconds(0));
  for (const char* op : {"GEMM", "matmul", "Linear", "bmm"})
    EXPECT_EQ(compared(with(kGoodGemm, "op", '"' + std::string(op) + '"')).predicted, gemm) << op;
  const std::string slow = with(kGoodGemm, "tflops", "50");
  EXPECT_EQ(compared(with(with(slow, "gpu", "\"V100-SXM2-16GB\""), "dtype", "\"fp16\"")).profile,
            "v100-sxm2-32gb");
  for (const auto& [gpu, profile] : {std::pair{"Gaudi 2", "gaudi2"},
                                     {"TPU v4", "tpu-v4"},
                                     {"TPU v5e", "tpu-v5e"},
                                     {"H100 NVL 94GB", "h100-nvl"}})
    EXPECT_EQ(compared(with(slow, "gpu", '"' + std::string(gpu) + '"')).profile, profile);
  const std::string attention =
      R"({"gpu":"A100","op":"attention_fwd","dtype":"fp16","batch":8,"heads":16,"seq":2048,)"
      R"("head_dim":128,"causal":true,"tflops":190})";
  const Seconds forward = compared(attention).predicted;
  for (const char* op : {"flash_attention_fwd", "FlashAttention-2 forward", "SDPA fwd"})
    EXPECT_EQ(compared(with(attention, "op", '"' + std::string(op) + '"')).predicted, forward)
        << op;
  EXPECT_THAT(compared(with(attention, "op", "\"flash attention\"")).reason,
              ::testing::HasSubstr("neither fwd nor bwd"));
}

// A gigabyte that is read and written is two that move.
TEST(KernelTimings, PassesOverAMatrixAndTimesWithoutARateAreRead) {
  const auto compared = [](const std::string& row) {
    return validate_kernels(file_with(row + "\n")).rows.front();
  };
  const std::string softmax =
      R"({"gpu":"A100","op":"softmax","dtype":"fp16","rows":131072,"cols":4096,"gb_s":1500})";
  EXPECT_NEAR(compared(softmax).measured.value(), 2 * 131072.0 * 4096 * 2 / 1500e9, 1e-9);
  EXPECT_GT(compared(softmax).predicted, Seconds(0));
  EXPECT_FALSE(compared(with(with(softmax, "op", "\"LayerNorm\""), "cols", "8192")).skipped);
  EXPECT_THAT(compared(with(softmax, "cols", "null")).reason, ::testing::HasSubstr("whole shape"));
  const std::string timed =
      R"({"gpu":"H100","op":"gemm","dtype":"bf16","m":1,"n":8192,"k":8192,"time_us":45})";
  EXPECT_NEAR(compared(timed).measured.value(), 45e-6, 1e-12);
  EXPECT_THAT(compared(with(timed, "time_us", "null")).reason, ::testing::HasSubstr("no rate"));
}

// Bytes as the lowering counts them: a gate and a linear part in, one result out; of an optimizer
// gradients in, weights and two moments in fp32 in and out, weights of 16 bits out.
TEST(KernelTimings, ActivationsAndOptimizersMoveTheBytesOfAStep) {
  const auto compared = [](const std::string& row) {
    return validate_kernels(file_with(row + "\n")).rows.front();
  };
  const auto moved = [&](const std::string& row) {
    EXPECT_GT(compared(row).predicted, Seconds(0)) << row << compared(row).reason;
    return compared(row).measured.value() * 1000e9;
  };
  const std::string gate =
      R"({"gpu":"A100","op":"swiglu","dtype":"bf16","m":8192,"n":11008,"gb_s":1000})";
  const double elements = 8192.0 * 11008.0;
  EXPECT_NEAR(moved(gate) / elements, 6.0, 1e-9);
  EXPECT_NEAR(moved(with(gate, "op", "\"silu_and_mul\"")) / elements, 6.0, 1e-9);
  EXPECT_NEAR(moved(with(gate, "op", "\"gelu\"")) / elements, 4.0, 1e-9);
  EXPECT_NEAR(moved(with(gate, "op", "\"SwiGLU backward\"")) / elements, 10.0, 1e-9);
  const std::string adam =
      R"({"gpu":"A100","op":"fused_adam","dtype":"bf16","params":1000000000,"gb_s":1000})";
  EXPECT_NEAR(moved(adam) / 1e9, 28.0, 1e-9);
  EXPECT_NEAR(moved(with(adam, "dtype", "null")) / 1e9, 28.0, 1e-9);
  EXPECT_THAT(compared(with(adam, "dtype", "null")).filled_in, ::testing::Contains("dtype: fp32"));
  EXPECT_THAT(compared(with(adam, "gb_s", "5000")).reason, ::testing::HasSubstr("above"));
}

TEST(KernelTimings, TimesRatesAndShapesAreReadInTheirUnits) {
  const auto compared = [](const std::string& row) {
    return validate_kernels(file_with(row + "\n")).rows.front();
  };
  const Seconds time = compared(kGoodGemm).measured;
  for (const std::string& figure :
       {std::string("\"gflops\":700000"), fmt::format("\"time_us\":{}", time.value() * 1e6),
        fmt::format("\"time_ms\":{}", time.value() * 1e3),
        fmt::format("\"time_s\":{}", time.value())}) {
    std::string row = kGoodGemm;
    row.replace(row.find("\"tflops\":700"), 12, figure);
    EXPECT_NEAR(compared(row).measured / time, 1.0, 1e-9) << figure;
  }
  const std::string shape =
      R"({"gpu":"H100-SXM","op":"gemm","dtype":"bf16","shape":[4096,4096,4096],"tflops":700})";
  EXPECT_EQ(compared(shape).predicted, compared(kGoodGemm).predicted);
  const std::string grouped =
      R"({"gpu":"H100-SXM","op":"gemm","dtype":"bf16","groups":8,"m":4096,"n":4096,"k":4096,"tflops":600})";
  const std::string experts =
      R"({"gpu":"H100-SXM","op":"grouped_gemm","dtype":"bf16","experts":8,"m":4096,"n":4096,"k":4096,"tflops":600})";
  EXPECT_EQ(compared(experts).op, "grouped_gemm bf16");
  EXPECT_EQ(compared(experts).predicted, compared(grouped).predicted);
  // One expert alone is a plain product, in each of its passes.
  const std::string alone = with(with(experts, "experts", "1"), "n", "8192");
  for (const char* pass : {"fwd", "bwd_grad_act", "bwd_grad_w"}) {
    std::string row = alone;
    row.insert(1, fmt::format("\"stage\":\"{}\",", pass));
    const TimingComparison one = compared(row);
    ASSERT_FALSE(one.skipped) << one.reason;
    EXPECT_EQ(one.op, "grouped_gemm bf16");
    EXPECT_NEAR(one.measured / compared(with(kGoodGemm, "n", "8192")).measured, 700.0 / 600.0,
                1e-9);
  }
  EXPECT_EQ(compared(alone).predicted, compared(with(kGoodGemm, "n", "8192")).predicted);
  const std::string copy = R"({"gpu":"H100-SXM","op":"copy","size_bytes":67108864,"time_us":200})";
  EXPECT_NEAR(compared(copy).measured.value(), 200e-6, 1e-12);
  EXPECT_GT(compared(with(copy, "size_bytes", "134217728")).predicted, compared(copy).predicted);
}

// At 350 W and 400 W against the 700 W of the module.
TEST(KernelTimings, CardsMultiplySlowerThanModulesByTheirPower) {
  const auto rate = [](const std::string& gpu) {
    std::string row = kGoodGemm;
    for (const char* side : {"m", "n", "k"}) row = with(row, side, "8192");
    const Seconds time =
        validate_kernels(file_with(with(row, "gpu", '"' + gpu + '"'))).rows.front().predicted;
    return 2.0 * 8192 * 8192 * 8192 / time.value() / 1e12;
  };
  EXPECT_NEAR(rate("H100 PCIe") / rate("H100-SXM"), 114.0 / 132.0 * 0.761, 0.06);
  EXPECT_NEAR(rate("H100 NVL") / rate("H100-SXM"), 0.756, 0.06);
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
