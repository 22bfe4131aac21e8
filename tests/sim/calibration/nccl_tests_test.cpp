// Output of nccl-tests, as the program prints it (github.com/NVIDIA/nccl-tests, src/util.cu).
#include "sim/calibration/nccl_tests.hpp"

#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "core/base/error.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::sim {
namespace {

class NcclTests : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::filesystem::path file = scratch_path(name);
    std::ofstream(file) << text;
    return file.string();
  }
};

constexpr const char* kTable = R"(# nccl-tests version 2.17.1
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 step: 2(factor) warmup iters: 5 iters: 20
#
# Using devices
#  Rank  0 Group  0 Pid   9973 on      host device  0 [0000:10:00] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid   9973 on      host device  1 [0000:11:00] NVIDIA A100-SXM4-40GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
           8             2     float     sum      -1    12.50    0.00    0.00      0    11.20    0.00    0.00      0
    33554432       8388608     float     sum      -1   240.5   139.5   139.5      0    239.1   140.3   140.3      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 69.9
)";

TEST_F(NcclTests, ReadsThePrintedTable) {
  const auto samples = read_nccl_tests(write("table.txt", kTable));
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].kind, OpKind::AllReduce);
  EXPECT_EQ(samples[0].members, 2);
  EXPECT_DOUBLE_EQ(samples[0].time.value(), 12.5e-6);
  EXPECT_DOUBLE_EQ(samples[1].bytes.value(), 33554432.0);
  EXPECT_DOUBLE_EQ(samples[1].time.value(), 240.5e-6);
}

TEST_F(NcclTests, ReadsTheJsonOfTheSameRun) {
  const std::string json = R"({"version": 3, "args": ["./build/all_reduce_perf", "-J", "x"],
    "config": {"nthreads": 1, "devices": [{"rank": 0}, {"rank": 1}]},
    "results": [
      {"size": 8, "count": 2, "type": "float", "redop": "sum", "root": "    -1",
       "out_of_place": {"time": 12.5, "alg_bw": 0.0, "bus_bw": 0.0, "nwrong": 0.0},
       "in_place": {"time": 11.2, "alg_bw": 0.0, "bus_bw": 0.0, "nwrong": 0.0}},
      {"size": 33554432, "count": 8388608, "type": "float", "redop": "sum", "root": "    -1",
       "out_of_place": {"time": 240.5, "alg_bw": 139.5, "bus_bw": 139.5, "nwrong": 0.0}}]})";
  EXPECT_EQ(read_nccl_tests(write("run.json", json)), read_nccl_tests(write("table.txt", kTable)));
}

TEST_F(NcclTests, TakesTheCollectiveFromTheFilesNameWhereTheTableIsSilent) {
  std::string table = kTable;
  table.erase(0, table.find("# nThread"));
  EXPECT_EQ(read_nccl_tests(write("reduce_scatter.log", table)).front().kind,
            OpKind::ReduceScatter);
  EXPECT_THROW(read_nccl_tests(write("some.log", table)), InputError);
}

TEST_F(NcclTests, RefusesWhatIsNoOutput) {
  EXPECT_THROW(read_nccl_tests(write("all_reduce.txt", "hello")), InputError);
  EXPECT_THROW(read_nccl_tests(write("all_reduce.json", "{}")), InputError);
  EXPECT_THROW(read_nccl_tests(write("all_reduce.bin", std::string("\x7f\0", 2))), InputError);
  EXPECT_THROW(read_nccl_tests(write("all_reduce.none", "")), InputError);
  EXPECT_THROW(read_nccl_tests(testing::TempDir()), InputError);
}

}  // namespace
}  // namespace shardwright::sim
