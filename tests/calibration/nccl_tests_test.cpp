// Output of nccl-tests, as the program prints it (github.com/NVIDIA/nccl-tests, src/util.cu).
#include "calibration/nccl_tests.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "calibration/collective_timings.hpp"
#include "calibration/inspector_matching.hpp"
#include "core/base/error.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

class NcclTests : public ::testing::Test {
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
  const NcclTimings timings = read_nccl_tests(write("table.txt", kTable));
  EXPECT_FALSE(timings.has_wrong_data);
  const auto& samples = timings.samples;
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[0].kind, OpKind::AllReduce);
  EXPECT_EQ(samples[0].members, 2);
  EXPECT_DOUBLE_EQ(samples[0].time.value(), 12.5e-6);
  EXPECT_DOUBLE_EQ(samples[1].bytes.value(), 33554432.0);
  EXPECT_DOUBLE_EQ(samples[1].time.value(), 240.5e-6);
}

TEST_F(NcclTests, KnowsThatDataWereWrong) {
  std::string table = kTable;
  table.replace(table.find("0 OK"), 4, "14 FAILED");
  EXPECT_TRUE(read_nccl_tests(write("table.txt", table)).has_wrong_data);
}

TEST_F(NcclTests, ReadsTheJsonOfTheSameRun) {
  const std::string report = R"({"version": 3, "args": ["./build/all_reduce_perf", "-J", "x"],
    "config": {"nthreads": 1, "devices": [{"rank": 0}, {"rank": 1}]},
    "results": [
      {"size": 8, "count": 2, "type": "float", "redop": "sum", "root": "    -1",
       "out_of_place": {"time": 12.5, "alg_bw": 0.0, "bus_bw": 0.0, "nwrong": 0.0},
       "in_place": {"time": 11.2, "alg_bw": 0.0, "bus_bw": 0.0, "nwrong": 0.0}},
      {"size": 33554432, "count": 8388608, "type": "float", "redop": "sum", "root": "    -1",
       "out_of_place": {"time": 240.5, "alg_bw": 139.5, "bus_bw": 139.5, "nwrong": 0.0}}]})";
  EXPECT_EQ(read_nccl_tests(write("run.json", report)).samples,
            read_nccl_tests(write("table.txt", kTable)).samples);
}

TEST_F(NcclTests, TakesTheCollectiveFromTheFilesNameWhereTheTableIsSilent) {
  std::string table = kTable;
  table.erase(0, table.find("# nThread"));
  EXPECT_EQ(read_nccl_tests(write("reduce_scatter.log", table)).samples.front().kind,
            OpKind::ReduceScatter);
  EXPECT_THROW(read_nccl_tests(write("some.log", table)), InputError);
}

// Lines of a job's script that runs one test after the other.
TEST_F(NcclTests, RowsBelongToTheTestAboveThem) {
  std::string second = kTable;
  second.replace(second.find("all_reduce"), 10, "all_gather");
  second.replace(second.find("240.5"), 5, "120.5");
  const auto samples = parse_nccl_tests(kTable + second, "job.log").samples;
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(samples[1].kind, OpKind::AllReduce);
  EXPECT_EQ(samples[3].kind, OpKind::AllGather);
  EXPECT_DOUBLE_EQ(samples[3].time.value(), 120.5e-6);

  const std::string unnamed = second.substr(second.find("# nThread"));
  const auto named = parse_nccl_tests("+ ./build/alltoall_perf -b 8\n" + unnamed +
                                          "mpirun -np 2 reduce_scatter_perf -b 8\n" + unnamed,
                                      "job.log")
                         .samples;
  ASSERT_EQ(named.size(), 4U);
  EXPECT_EQ(named[1].kind, OpKind::AllToAll);
  EXPECT_EQ(named[2].kind, OpKind::ReduceScatter);
  EXPECT_THROW(parse_nccl_tests(kTable + unnamed, "all_reduce.log"), InputError);
}

// The name of the program decides, not its folder and not where its output goes; a line of another
// program's errors ends no table.
TEST_F(NcclTests, TheCommandNamesTheProgram) {
  std::string table = kTable;
  table.erase(0, table.find("# nThread"));
  table.insert(table.find("    33554432"), "host1: Test NCCL failure in all_reduce_perf(+0x123)\n");
  for (const char* command : {"$ /opt/all_reduce_bench/nccl-tests/build/all_gather_perf -b 128M",
                              "+ mpirun -np 2 all_gather_perf -b 8 | tee all_reduce.log",
                              "Running \"/opt/all_gather_perf_mpi\", please wait",
                              "./build/all_gather_perf -b 8 > /x/all_reduce_perf"}) {
    const auto samples =
        parse_nccl_tests(fmt::format("{}\n{}", command, table), "reduce_scatter.log").samples;
    ASSERT_EQ(samples.size(), 2U) << command;
    EXPECT_EQ(samples[1].kind, OpKind::AllGather) << command;
  }
}

// reduce_perf times what no plan uses, whatever the file's name.
TEST_F(NcclTests, ProgramsOfOtherCollectivesAreNamedAndLeftOut) {
  std::string other = kTable;
  other.replace(other.find("all_reduce_perf"), 15, "reduce_perf");
  const NcclTimings timings = parse_nccl_tests(other + kTable, "job.log");
  EXPECT_EQ(timings.samples, parse_nccl_tests(kTable, "job.log").samples);
  EXPECT_EQ(timings.left_out, std::set<std::string>{"reduce_perf"});
  EXPECT_THAT(thrown_by([&] { parse_nccl_tests(other, "alltoall.log"); }),
              testing::HasSubstr("found reduce_perf alone"));
}

TEST_F(NcclTests, LauncherLabelsDoNotCount) {
  for (const char* label : {"[1,0]<stdout>:", "0: ", " 0: ", "[node-1:0]: ", "node1: ",
                            "2025-10-01T10:00:00.000 ", "[2025-10-01 10:00:00] 0:"}) {
    std::string labelled;
    std::istringstream lines(kTable);
    for (std::string line; std::getline(lines, line);) labelled += label + line + "\n";
    EXPECT_EQ(parse_nccl_tests(labelled, "job.log").samples,
              parse_nccl_tests(kTable, "job.log").samples)
        << label;
  }
}

// The programs of 2019 to 2021 print errors in place of counts, and columns of their own.
std::string older_table(const char* names, const char* row) {
  return fmt::format(R"(# nThread 1 nGpus 2 minBytes 8 maxBytes 8 step: 2(factor) warmup iters: 5
#   Rank  0 Pid  71327 on 51e6e7896958 device  0 [0x1a] Tesla V100-SXM3-32GB
#   Rank  1 Pid  71327 on 51e6e7896958 device  1 [0x1b] Tesla V100-SXM3-32GB
#                                                     out-of-place                       in-place
#       size         count    {}     time   algbw   busbw  error     time   algbw   busbw  error
#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     6000000       1500000    {}    20.00  300.00  300.00  1e-07    21.00  285.71  285.71  0e+00
)",
                     names, row);
}

TEST_F(NcclTests, FindsTheTimeInTheTablesOfAllVersions) {
  const std::vector<std::pair<const char*, const char*>> tables = {
      {"  type   redop    root", " float     sum      -1"},
      {"  type   redop", " float     sum"},
      {"  type    root", " float       0"},
      {"  type", " float"},
      {"  type   redop", " float        "},  // of a collective that reduces nothing
      {"  type   redop    root", " float               0"}};
  for (const auto& [names, row] : tables) {
    const auto samples = read_nccl_tests(write("all_reduce.txt", older_table(names, row))).samples;
    ASSERT_EQ(samples.size(), 1U) << names;
    EXPECT_DOUBLE_EQ(samples[0].bytes.value(), 6e6) << names;
    EXPECT_DOUBLE_EQ(samples[0].time.value(), 20e-6) << names << row;
  }
}

Problem problem_of(const std::string& text) {
  const std::vector<Problem> problems =
      problems_thrown_by([&text] { parse_nccl_tests(text, "all_reduce.txt"); });
  return problems.empty() ? Problem{} : problems.front();
}

TEST_F(NcclTests, RefusesRowsThatDoNotStandUnderTheirColumns) {
  const std::string whole = older_table("type redop", "float sum");
  const auto with = [&](const std::string& old, const std::string& text) {
    std::string changed = whole;
    for (std::size_t at = 0; (at = changed.find(old, at)) != std::string::npos; at += text.size())
      changed.replace(at, old.size(), text);
    return problem_of(changed);
  };
  const Problem nameless = with("#       size", "#       what");
  EXPECT_EQ(nameless.where, "line 7");
  EXPECT_EQ(nameless.found, "a row without names of columns above it");
  const Problem no_time = with("   time", "cputime");
  EXPECT_EQ(no_time.where, "line 5");
  EXPECT_THAT(no_time.found, ::testing::HasSubstr("cputime"));
  EXPECT_THAT(no_time.expected.text, ::testing::HasSubstr("\"time\""));
  const Problem cut = with("  21.00  285.71  285.71  0e+00", "");
  EXPECT_EQ(cut.where, "line 7");
  EXPECT_THAT(cut.found, ::testing::HasSubstr("8 columns"));
  EXPECT_EQ(with(" 20.00", "   N/A").found, "the time \"N/A\"");
  EXPECT_EQ(with(" 20.00", " -5.00").found, "the time \"-5.00\"");
  EXPECT_EQ(with("     6000000 ", "    -6000000 ").found, "the size \"-6000000\"");
  EXPECT_EQ(with(" 20.00", " 9e300").found, "the time \"9e300\"");
  EXPECT_EQ(with("     6000000 ", "    6e300 ").found, "the size \"6e300\"");
  EXPECT_EQ(with("     6000000 ", "    6e300 ").expected.text, "a number of bytes, at most 1e+30");
  // A redop may be left out; what is gone of a row that has one is not it.
  const Problem short_row = with("  0e+00", "");
  EXPECT_EQ(short_row.where, "line 7");
  EXPECT_EQ(short_row.found, "a row of 11 columns");
  EXPECT_EQ(short_row.expected.text, "12, as the line above names");
}

// nccl-tests prints 0.00 for small sizes, and 0 bytes for a size that is less than an element a
// rank.
TEST_F(NcclTests, CountsTheRowsThatSayNothing) {
  std::string table = kTable;
  table.replace(table.find("   12.50"), 8, "    0.00");
  const NcclTimings timings = parse_nccl_tests(table, "table.txt");
  EXPECT_EQ(timings.samples.size(), 1U);
  EXPECT_EQ(timings.empty_rows, 1);
  EXPECT_EQ(parse_nccl_tests(kTable, "table.txt").empty_rows, 0);
}

// Ranks on hosts named by letters, in groups named by digits.
std::string on_hosts(const std::string& program, const std::string& hosts,
                     const std::string& groups = "") {
  std::string table = "# Collective test starting: " + program + "\n";
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    table += fmt::format("#  Rank {:2} Group {:2} Pid 1234 on     host-{} device {:2} [0x07] GPU\n",
                         i, groups.empty() ? '0' : groups[i], hosts[i], i);
  }
  return table +
         "# size count type redop root time algbw busbw #wrong\n"
         "  1048576 262144 float sum -1 104.9 10.0 10.0 0\n";
}

ExchangeSample sample_on(const std::string& program, const std::string& hosts,
                         const std::string& groups = "") {
  return parse_nccl_tests(on_hosts(program, hosts, groups), "table.txt").samples.at(0);
}

TEST_F(NcclTests, KnowsTheHostsOfTheRanks) {
  EXPECT_EQ(sample_on("all_reduce_perf", "aaaa").spread, (HostSpread{1, 1}));
  EXPECT_EQ(sample_on("all_reduce_perf", "ab").spread, (HostSpread{2, 1}));
  EXPECT_EQ(sample_on("all_reduce_perf", "abab").spread, (HostSpread{2, 1}));
  // NCCL_TESTS_SPLIT: two groups at the same time, each with a rank on either host; or one on each.
  const ExchangeSample split = sample_on("all_reduce_perf", "aabb", "0101");
  EXPECT_EQ(split.members, 2);
  EXPECT_EQ(split.spread, (HostSpread{2, 2}));
  EXPECT_EQ(sample_on("all_reduce_perf", "aabb", "0011").spread, (HostSpread{1, 1}));
}

// Each rank sends to the next: one message leaves a host whose ranks follow each other, all do
// where the hosts take turns.
TEST_F(NcclTests, CountsTheMessagesThatLeaveAHost) {
  EXPECT_EQ(sample_on("sendrecv_perf", "aaa").spread, (HostSpread{1, 1}));
  EXPECT_EQ(sample_on("sendrecv_perf", "aaabbb").spread, (HostSpread{2, 1}));
  EXPECT_EQ(sample_on("sendrecv_perf", "ababab").spread, (HostSpread{2, 3}));
  EXPECT_EQ(sample_on("sendrecv_perf", "ababab").members, 2);
}

TEST_F(NcclTests, RefusesHostsThatNoGroupOfAProfileLiesOn) {
  const Problem uneven = problem_of(on_hosts("all_reduce_perf", "aaab"));
  EXPECT_EQ(uneven.found, "ranks: 1 on host-b, 3 on host-a");
  EXPECT_EQ(uneven.expected.text, "as many on each host");
  const Problem twice = problem_of(on_hosts("all_reduce_perf", "ab") +
                                   "#  Rank  0 Group  0 Pid 1 on host-c device 0 [0x07] GPU\n");
  EXPECT_EQ(twice.where, "line 6");
  EXPECT_EQ(twice.found, "rank 0 on host-c");
}

std::string json_of(const char* config) {
  return fmt::format(R"({{"args": ["all_reduce_perf"], "config": {},
    "results": [{{"size": 1048576, "out_of_place": {{"time": 104.9}}}}]}})",
                     config);
}

TEST_F(NcclTests, KnowsTheHostsOfAJsonFile) {
  const auto sample = [](const char* config) {
    return parse_nccl_tests(json_of(config), "run.json").samples.at(0);
  };
  EXPECT_EQ(sample(R"({"devices": [{"rank": 0, "hostname": "a"}, {"rank": 1, "hostname": "b"}]})"),
            sample_on("all_reduce_perf", "ab"));
  EXPECT_EQ(sample(R"({"devices": [{"rank": 0, "hostname": "a"}, {"rank": 1, "hostname": "a"}]})"),
            sample_on("all_reduce_perf", "aa"));
  // The list has the first device alone of each process.
  EXPECT_EQ(sample(R"({"nthreads": 1, "ngpus": 4, "devices": [
              {"rank": 0, "hostname": "a"}, {"rank": 4, "hostname": "b"}]})"),
            sample_on("all_reduce_perf", "aaaabbbb"));
}

TEST_F(NcclTests, RefusesWhatIsNoOutput) {
  EXPECT_THROW(read_nccl_tests(write("all_reduce.txt", "hello")), InputError);
  EXPECT_THROW(read_nccl_tests(write("all_reduce.json", "{}")), InputError);
  EXPECT_THROW(read_nccl_tests(write("all_reduce.bin", std::string("\x7f\0", 2))), InputError);
  EXPECT_THROW(read_nccl_tests(write("all_reduce.none", "")), InputError);
  EXPECT_THROW(read_nccl_tests(::testing::TempDir()), InputError);
}

// One problem that says what it is, in place of all that it lacks.
TEST_F(NcclTests, SaysWhatAFileIsThatIsNoOutput) {
  const std::pair<const char*, const char*> files[] = {
      {"", "an empty file"},
      {"\n \n", "blank lines"},
      {"Dear all,\nthe meeting is at 10.\n", "text without a table of nccl-tests"},
      {"[1, 2]", "text without a table of nccl-tests"},
      {"{}", "a JSON object without keys"},
      {R"({"step": 1})", R"(a JSON object with the key "step")"},
      {R"({"a": 1, "b": 2, "c": 3, "d": 4})", R"(a JSON object with the keys "a", "b", "c", …)"},
  };
  for (const auto& [text, found] : files) {
    const auto read = [&text = text] { parse_nccl_tests(text, "all_reduce.txt"); };
    EXPECT_THAT(thrown_by(read), ::testing::StartsWith("all_reduce.txt"));
    const std::vector<Problem> problems = problems_thrown_by(read);
    ASSERT_EQ(problems.size(), 1U) << text;
    EXPECT_EQ(problems[0].found, found);
    EXPECT_THAT(problems[0].expected.text, ::testing::HasSubstr("the output of nccl-tests"));
  }
  const Problem lines = problem_of("{\"step\": 0}\n{\"step\": 1}\n");
  EXPECT_THAT(lines.found, ::testing::HasSubstr("a syntax error at line 2"));
  EXPECT_THAT(lines.expected.text, ::testing::HasSubstr("of a run its folder"));
  // The problem of a part that is there names the parts that are missing.
  const Problem part = problem_of(R"({"args": ["all_reduce_perf"]})");
  EXPECT_EQ(part.where, "/config");
}

TEST(NcclInspector, TakesTimesOfTheDeviceByKindSizeAndGroup) {
  const std::string header = R"({"header": {"rank": 0, "n_ranks": 16, "nnodes": 2},)";
  const auto line = [&](const char* coll, int bytes, int us, const char* source) {
    return fmt::format(
        R"({} "coll_perf": {{"coll": "{}", "coll_msg_size_bytes": {}, "coll_exec_time_us": {}, "coll_timing_source": "{}"}}}}{})",
        header, coll, bytes, us, source, "\n");
  };
  std::string text;
  for (const int us : {100, 120, 140, 160, 900})
    text += line("AllReduce", 1 << 20, us, "kernel_gpu");
  text += line("AllReduce", 1 << 20, 7, "collective_cpu") +
          line("ReduceScatter", 4096, 30, "kernel_gpu") + "not JSON\n{\"dump\": 1}\n" +
          line("AllGather", 4096, 50, "collective_cpu");
  const NcclTimings timings = parse_nccl_tests(text, "inspector.log");
  // Of all-gathers the host alone took times.
  ASSERT_EQ(timings.samples.size(), 3U);
  EXPECT_EQ(timings.samples[1].kind, OpKind::AllGather);
  EXPECT_NEAR(timings.samples[1].time.value(), 50e-6, 1e-12);
  for (const CollectiveTimings& each : timings_of(parse_inspector(text, "inspector.log")))
    EXPECT_EQ(each.by_host, each.kind == OpKind::AllGather);
  const ExchangeSample& reduction = timings.samples.front();
  EXPECT_EQ(reduction.kind, OpKind::AllReduce);
  EXPECT_EQ(reduction.members, 16);
  EXPECT_EQ(reduction.spread->hosts, 2);
  EXPECT_NEAR(reduction.time.value(), 120e-6, 1e-12);
  EXPECT_THROW(parse_nccl_tests(header + "\"coll_perf\": {}}", "empty.log"), InputError);
}

// A line of a rank; `number` is that of the call.
std::string inspector_line(int rank, int number, int us) {
  return fmt::format(
      R"({{"header": {{"id": "0xabc", "rank": {0}, "n_ranks": 4, "nnodes": 1}}, "metadata": {{"hostname": "h", "pid": 7}}, )"
      R"("coll_perf": {{"coll": "AllReduce", "coll_sn": {1}, "coll_msg_size_bytes": 8000000, "coll_exec_time_us": {2}, )"
      R"("coll_timing_source": "kernel_gpu"}}}}{3})",
      rank, number, us, "\n");
}

// The example of Inspector's README states 418.4 GB/s for the algorithm, 366.1 GB/s for the bus.
TEST(NcclInspector, SizesAreThoseOfAllRanks) {
  const auto timings = [](const char* coll) {
    return timings_of(parse_inspector(
        fmt::format(
            R"({{"header": {{"rank": 0, "n_ranks": 8, "nnodes": 1}}, "coll_perf": {{"coll": "{}", "coll_msg_size_bytes": 2147483648, "coll_exec_time_us": 41057, "coll_timing_source": "kernel_gpu"}}}})",
            coll),
        "inspector.log"));
  };
  for (const char* coll : {"ReduceScatter", "AllGather"}) {
    const CollectiveTimings timing = timings(coll).front();
    EXPECT_NEAR((timing.bytes / timing.median).value(), 418.44e9, 0.01e9) << coll;
    EXPECT_NEAR(timing.bus_bandwidth.value(), 366.13e9, 0.01e9) << coll;
  }
  EXPECT_DOUBLE_EQ(timings("AllReduce").front().bytes.value(), 2147483648.0);
  EXPECT_EQ(timings("All2All").front().kind, OpKind::AllToAll);
}

TEST(NcclInspector, CountsCallsOfOtherKinds) {
  std::string text = inspector_line(0, 1, 100), reduction = inspector_line(0, 2, 100);
  reduction.replace(reduction.find("AllReduce"), 9, "Reduce");
  const auto processes = parse_inspector(text + reduction + reduction, "inspector.log");
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes.front().calls.size(), 1U);
  EXPECT_EQ(processes.front().left_out.at("Reduce"), 2);
}

// Rank 1 is last each time. Ranks are told apart though the metadata do not.
TEST(NcclInspector, RanksOfOneJobAreMatchedByTheNumbersOfTheirCalls) {
  std::string first, others;
  for (int i = 0; i < 20; ++i) {
    first += inspector_line(0, i, 300);
    if (i != 7) others += inspector_line(1, i, 100);
    others += inspector_line(2, i, 160);
  }
  std::vector<InspectorProcess> processes = parse_inspector(others, "others.jsonl");
  ASSERT_EQ(processes.size(), 2U);
  for (InspectorProcess& each : parse_inspector(first, "first.jsonl"))
    processes.push_back(std::move(each));
  const auto matching = match_processes(processes);
  ASSERT_TRUE(matching);
  EXPECT_EQ(matching->matched, 59);
  EXPECT_EQ(matching->unmatched, 0);
  ASSERT_EQ(matching->collectives.size(), 1U);
  const MatchedCollectives& reduction = matching->collectives.front();
  EXPECT_EQ(reduction.count, 20);
  EXPECT_EQ(reduction.ranks, 3);
  EXPECT_NEAR(reduction.transfer.value(), 100e-6, 1e-12);
  EXPECT_NEAR(reduction.skew.value(), 200e-6, 1e-12);
  EXPECT_NEAR(reduction.bus_bandwidth->value(), 8e6 * 1.5 / 100e-6, 1.0);
  EXPECT_EQ(matching->ranks.at(0).last_arrivals, 19);
  EXPECT_NEAR(matching->ranks.at(2).waited.value(), 19 * 200e-6 + 140e-6, 1e-9);
  EXPECT_FALSE(match_processes({processes.front()}));
}

// 70 MB, more than nccl-tests ever prints.
TEST(NcclInspector, ReadsLongFilesLineByLine) {
  const std::string file = ::testing::TempDir() + "/long_inspector.jsonl";
  const std::string line = inspector_line(0, 1, 100);
  std::string block;
  while (block.size() < (1U << 20U)) block += line;
  {
    std::ofstream stream(file);
    for (int i = 0; i < 67; ++i) stream << block;
  }
  const auto samples = read_nccl_tests(file).samples;
  std::filesystem::remove(file);
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_NEAR(samples.front().time.value(), 100e-6, 1e-12);
}

}  // namespace
}  // namespace shardwright::calibration
