// Exports of Nsight Systems: databases with the tables and columns that its versions write.
#include "calibration/traces/nsys.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include <fstream>

#include "calibration/traces/gemm_timings.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/trace_file.hpp"
#include "calibration/traces/trace_report.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

Trace nsys_trace(const std::string& file) {
  return std::get<Trace>(read_recording(file));
}

std::string database(const std::string& statements) {
  const std::string file = scratch_path("report.sqlite");
  sqlite3* opened = nullptr;
  sqlite3_open(file.c_str(), &opened);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(opened, statements.c_str(), nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(opened);
  return file;
}

// Two processes with a device each, whose correlations are the same. The second one's all-to-all
// starts when the first one's has run for 3 µs.
constexpr const char* kTwoProcesses = R"(
CREATE TABLE StringIds (id INTEGER, value TEXT);
INSERT INTO StringIds VALUES (1, 'void flash::flash_fwd_kernel<128>()'), (2, 'ncclDevKernel_SendRecv(args)'), (3, 'aten::mm, op_id = 4');
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES
  (20000, 30000, 0, 7, 5, 83886080, 1, 1), (31000, 41000, 0, 9, 6, 83886080, 2, 2),
  (20000, 34000, 1, 7, 5, 100663296, 1, 1), (34000, 41000, 1, 9, 6, 100663296, 2, 2);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1500, 1600, 83886081, 5, 0), (3500, 3600, 83886081, 6, 0), (1700, 1800, 100663299, 5, 0), (3700, 3800, 100663299, 6, 0);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER, globalTid INTEGER);
INSERT INTO NVTX_EVENTS VALUES
  (1000, 2000, 59, 'FlashAttnFunc, seq = 9, op_id = 3', NULL, 83886081), (3000, 4000, 59, 'nccl:all_to_all, op_id = 7', NULL, 83886081),
  (3400, 3700, 59, 'ncclGroupEnd', NULL, 83886081), (1000, 2000, 59, NULL, 3, 100663299), (3000, NULL, 59, 'open', NULL, 100663299),
  (0, 10000, 60, 'training_step_12', NULL, 83886081);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT);
INSERT INTO TARGET_INFO_GPU VALUES (0, 'NVIDIA H100 80GB HBM3');
)";

TEST(Nsys, LinksKernelsByProcessAndRange) {
  const std::string file = database(kTwoProcesses);
  const Trace trace = nsys_trace(file);
  ASSERT_EQ(trace.activities.size(), 4U);
  EXPECT_EQ(trace.gpu, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(trace.names[trace.activities[0].op], "FlashAttnFunc");
  EXPECT_EQ(trace.activities[0].launched, 1500);
  EXPECT_EQ(trace.activities[0].category, KernelCategory::Attention);
  EXPECT_EQ(trace.names[trace.activities[1].op], "aten::mm");
  EXPECT_EQ(trace.activities[1].launched, 1700);
  EXPECT_EQ(trace.names[trace.activities[2].op], "ncclGroupEnd");
  EXPECT_EQ(kind_of_collective(trace, trace.activities[2]), "all_to_all");
  // Its process has marked no collective.
  EXPECT_EQ(kind_of_collective(trace, trace.activities[3]), "send_receive");
  ASSERT_EQ(trace.steps.size(), 1U);
  EXPECT_EQ(trace.steps[0].number, 12);
}

// PyTorch's emit_nvtx(record_shapes=True) writes sizes, the kernel's name has the format.
TEST(Nsys, ReadsTheSizesOfProducts) {
  for (const auto& [name, precision] :
       {std::pair("nvjet_tst_128x64_1x2_h_bz_TNT", Precision::Bf16),
        {"nvjet_sm100_hsh_128x256_64x6_2x1_2cta_v_bz_TNT", Precision::Fp16},
        {"ampere_h16816gemm_128x64_ldg8_stages_64x4_nn", Precision::Fp16}}) {
    const std::string text = kTwoProcesses + fmt::format(R"(
    DELETE FROM NVTX_EVENTS;
    UPDATE StringIds SET value = '{}' WHERE id = 1;
    INSERT INTO NVTX_EVENTS VALUES
      (1000, 2000, 59, 'aten::addmm, op_id = 4, sizes = [[16], [64, 32], [32, 16], [], []], input_op_ids = [(3,0)]', NULL, 83886081);)",
                                                         name);
    const std::vector<MeasuredKernel> kernels = gemm_timings({nsys_trace(database(text))});
    GemmWork work;
    work.m = 64;
    work.n = 16;
    work.k = 32;
    ASSERT_EQ(kernels.size(), 1U) << name;
    EXPECT_EQ(kernels[0].work, Work(work)) << name;
    EXPECT_EQ(kernels[0].precision, precision) << name;
    EXPECT_DOUBLE_EQ(kernels[0].time.value(), 10e-6) << name;
  }
}

TEST(Nsys, ReadsOldAndPartialExports) {
  const Trace trace = nsys_trace(database(R"(
    CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, shortName INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 0, 7, 3, 1), (9, 3, 0, 7, 3, 1);
    CREATE TABLE StringIds (id INTEGER, value TEXT); INSERT INTO StringIds VALUES (1, 'nvjet_tst');)"));
  ASSERT_EQ(trace.activities.size(), 1U);
  EXPECT_EQ(trace.activities[0].category, KernelCategory::Gemm);
  EXPECT_EQ(trace.unusable_events, 1);
}

TEST(Nsys, NamesTheTablesThatAreMissing) {
  const Trace nameless = nsys_trace(database(std::string(kTwoProcesses) + "DROP TABLE StringIds;"));
  EXPECT_EQ(nameless.activities.size(), 4U);
  EXPECT_THAT(nameless.gaps, testing::ElementsAre(testing::HasSubstr("StringIds")));
  const Trace idle =
      nsys_trace(database(std::string(kTwoProcesses) + "DROP TABLE CUPTI_ACTIVITY_KIND_KERNEL;"));
  EXPECT_THAT(idle.gaps, testing::ElementsAre(testing::HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL")));
  EXPECT_TRUE(nsys_trace(database(kTwoProcesses)).gaps.empty());
}

std::vector<std::int32_t> devices_of(const Trace& trace) {
  std::vector<std::int32_t> devices;
  for (const DeviceActivity& each : trace.activities) devices.push_back(each.device);
  return devices;
}

// A launcher that gives each process a GPU makes it device 0 in all of them.
TEST(Nsys, DevicesAreThoseOfTheirProcess) {
  using testing::ElementsAre;
  EXPECT_THAT(devices_of(nsys_trace(database(kTwoProcesses))), ElementsAre(0, 1, 0, 1));
  const std::string same =
      std::string(kTwoProcesses) + "UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET deviceId = 0;";
  const Trace guessed = nsys_trace(database(same));
  EXPECT_THAT(devices_of(guessed), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(guessed.gaps, ElementsAre(testing::HasSubstr("TARGET_INFO_CUDA_DEVICE")));
  const std::string table =
      "CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
      "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (3, 0, 5), ({}, 0, 6);";
  const Trace stated = nsys_trace(database(same + fmt::format(fmt::runtime(table), 2)));
  EXPECT_THAT(devices_of(stated), ElementsAre(3, 2, 3, 2));
  EXPECT_TRUE(stated.gaps.empty());
  // Two processes on one GPU.
  EXPECT_THAT(devices_of(nsys_trace(database(same + fmt::format(fmt::runtime(table), 3)))),
              ElementsAre(3, 3, 3, 3));
}

// Each process marks its steps; the second one is 2.5 µs behind.
TEST(Nsys, StepsAreThoseOfTheProcessThatLaunched) {
  const Trace trace = nsys_trace(database(std::string(kTwoProcesses) + R"(
    DELETE FROM NVTX_EVENTS;
    INSERT INTO NVTX_EVENTS VALUES
      (1000, 3000, 59, 'step 4', NULL, 83886081), (3000, 5000, 59, 'step 5', NULL, 83886081),
      (1500, 3650, 59, 'step 4', NULL, 100663299), (3650, 6000, 59, 'step 5', NULL, 100663299);
    UPDATE CUPTI_ACTIVITY_KIND_RUNTIME SET start = 3600, end = 3640 WHERE globalTid = 100663299 AND correlationId = 6;)"));
  ASSERT_EQ(trace.steps.size(), 2U);
  std::vector<TraceIndex> steps;
  for (const DeviceActivity& each : trace.activities) steps.push_back(each.step);
  // In the order of starts: attention of both, then the collectives of the first and the second.
  EXPECT_THAT(steps, testing::ElementsAre(0, 0, 1, 0));
}

TEST(Nsys, GraphsThatWereRecordedAsAWholeKeepTheDeviceBusy) {
  const Trace trace = nsys_trace(database(std::string(kTwoProcesses) + R"(
    CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start INTEGER, end INTEGER, deviceId INTEGER, graphId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER);
    INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (50000, 58000, 0, 1, 7, 9, 83886080);)"));
  ASSERT_EQ(trace.activities.size(), 5U);
  const DeviceActivity& graph = trace.activities.back();
  EXPECT_EQ(graph.duration, 8000);
  EXPECT_EQ(graph.category, KernelCategory::Other);
  EXPECT_THAT(trace.gaps, testing::ElementsAre(testing::HasSubstr("--cuda-graph-trace=node")));
}

TEST(Nsys, RefusesOtherAndBrokenDatabases) {
  EXPECT_THAT(thrown_by([] { nsys_trace(database("CREATE TABLE people (name TEXT)")); }),
              testing::HasSubstr("a database of something else"));
  const std::string text = content_of(database(kTwoProcesses));
  const std::string cut = scratch_path("cut.sqlite");
  std::ofstream(cut, std::ios::binary) << text.substr(0, 5000);
  EXPECT_THAT(thrown_by([&] { nsys_trace(cut); }), testing::HasSubstr("malformed"));
}

}  // namespace
}  // namespace shardwright::calibration
