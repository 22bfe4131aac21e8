// import: timings of collectives, as nccl-tests and NCCL Inspector print them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <string>
#include <vector>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// The figures of nccl-tests: 2 ranks have a factor of 1, and 33,554,432 B in 240.5 µs are 139.5
// GB/s.
TEST(ImportCollectives, ReadsTimingsOfCollectives) {
  const ScratchFolder folder;
  const std::string table = folder.write("nccl.txt", R"(# nThread 1 nGpus 2 iters: 20
#  Rank  0 Group  0 Pid   9973 on      host device  0 [0000:10:00] NVIDIA A100-SXM4-40GB
#  Rank  1 Group  0 Pid   9973 on      host device  1 [0000:11:00] NVIDIA A100-SXM4-40GB
#       size         count      type   redop    root     time   algbw   busbw #wrong
    33554432       8388608     float     sum      -1   240.5   139.5   139.5      0
# Collective test concluded: all_reduce_perf
)");
  std::string lines;
  for (const int us : {100, 120, 140, 160, 900})
    lines += R"({"header": {"rank": 0, "n_ranks": 16, "nnodes": 2}, "coll_perf": {"coll": )"
             R"("AllGather", "coll_msg_size_bytes": 1048576, "coll_timing_source": "kernel_gpu", )"
             R"("coll_exec_time_us": )" +
             std::to_string(us) + "}}\n";
  const json files =
      json_of("import " + table + " " + folder.write("inspector.log", lines)).at("files");
  ASSERT_EQ(files.size(), 2U);
  const json& reduction = files.at(0).at("collectives").at(0);
  EXPECT_EQ(reduction.at("kind"), "all_reduce");
  EXPECT_EQ(reduction.at("bytes"), 33'554'432);
  EXPECT_EQ(reduction.at("group_size"), 2);
  EXPECT_NEAR(reduction.at("bus_bandwidth_bytes_per_s").get<double>(), 139.5e9, 0.05e9);
  const json& gather = files.at(1).at("collectives").at(0);
  EXPECT_EQ(gather.at("kind"), "all_gather");
  EXPECT_EQ(gather.at("group_size"), 16);
  EXPECT_EQ(gather.at("count"), 5);
  EXPECT_DOUBLE_EQ(gather.at("median_s").get<double>(), 140e-6);
  // Inspector states what each of the 16 ranks has.
  EXPECT_NEAR(gather.at("bus_bandwidth_bytes_per_s").get<double>(), 1048576.0 * 15.0 / 140e-6, 1.0);
}

// Files of NCCL's Inspector of ranks 0, 1, … with what each call took, in µs.
std::string inspector_files(const ScratchFolder& folder,
                            const std::vector<std::vector<int>>& times) {
  std::string files;
  for (std::size_t rank = 0; rank < times.size(); ++rank) {
    std::string lines;
    for (std::size_t i = 0; i < times[rank].size(); ++i)
      lines += fmt::format(
          R"({{"header": {{"id": "0xabc", "rank": {0}, "n_ranks": {4}, "nnodes": 1}}, "coll_perf": )"
          R"({{"coll": "AllGather", "coll_sn": {1}, "coll_msg_size_bytes": 1000000, )"
          R"("coll_exec_time_us": {2}, "coll_timing_source": "kernel_gpu"}}}}{3})",
          rank, i, times[rank][i], "\n", times.size());
    files += " " + folder.write(fmt::format("rank{}.jsonl", rank), lines);
  }
  return files;
}

// Rank 0 arrives last at most calls, by a microsecond; rank 2 is the one that is waited for.
TEST(ImportCollectives, NamesTheRankThatCausesTheWaiting) {
  const ScratchFolder folder;
  std::vector<std::vector<int>> times(3);
  for (int i = 0; i < 20; ++i) {
    const bool is_waited_for = i % 4 == 0;
    times[0].push_back(is_waited_for ? 500 : 100);
    times[1].push_back(is_waited_for ? 600 : 101);
    times[2].push_back(is_waited_for ? 100 : 102);
  }
  const CommandResult result =
      run_command("import" + inspector_files(folder, times), {.environment = {{"COLUMNS", "200"}}});
  for (const char* text : {"The straggler is rank2.jsonl: it causes 99.0 % of the waiting.",
                           "Each other rank waits 2.25 ms for it", "it waits 30 µs for others.",
                           "It arrives last at 5 of its 20 matched collectives."})
    EXPECT_THAT(result.output, HasSubstr(text));
}

// Where ranks arrive at the same microsecond, none is last.
TEST(ImportCollectives, CountsLastArrivalsAmongAllMatchedCalls) {
  const ScratchFolder folder;
  std::vector<std::vector<int>> times(2);
  for (int i = 0; i < 20; ++i) {
    times[0].push_back(100);
    times[1].push_back(i < 10 ? 100 : 200);
  }
  const CommandResult result =
      run_command("import" + inspector_files(folder, times), {.environment = {{"COLUMNS", "200"}}});
  EXPECT_THAT(result.output, HasSubstr("It arrives last at 10 of its 20 matched collectives."));
}

// A job that was killed leaves half a line.
TEST(ImportCollectives, CountsTheLinesOfNcclInspectorThatAreNoJson) {
  const ScratchFolder folder;
  inspector_files(folder, {std::vector<int>(4, 100), std::vector<int>(4, 100)});
  const std::string text = content_of(folder.file("rank0.jsonl"));
  const std::string torn = folder.write("torn.jsonl", text.substr(0, text.size() - 4));
  const CommandResult result = run_command("import " + torn);
  EXPECT_THAT(result.output, HasSubstr("1 line that is no JSON is left out."));
  EXPECT_EQ(json_of("import " + torn).at("files").at(0).at("collectives").at(0).at("count"), 3);
}

// Ranks of one job are one page; messages are no reason to refuse a file, nor is compression.
TEST(ImportCollectives, ReadsRanksOfNcclInspectorAsOneJob) {
  const ScratchFolder folder;
  const std::string files =
      inspector_files(folder, {std::vector<int>(4, 100), std::vector<int>(4, 250)});
  const json report = json_of("import" + files);
  EXPECT_EQ(report.at("files").at(1).at("rank"), 1);
  EXPECT_EQ(report.at("files").at(1).at("world_size"), 2);
  EXPECT_TRUE(report.at("files").at(1).at("gpu").is_null());
  EXPECT_NEAR(report.at("files").at(1).at("time").at("collective_s").get<double>(), 1e-3, 1e-9);
  EXPECT_EQ(report.at("across_ranks").at("matched"), 8);
  EXPECT_NEAR(report.at("across_ranks").at("collectives").at(0).at("median_skew_s").get<double>(),
              150e-6, 1e-9);
  EXPECT_THAT(run_command("import" + files).output, HasSubstr("The straggler is rank0.jsonl"));
  const std::string messages = folder.write(
      "messages.jsonl",
      R"({"header": {"id": "0xabc", "rank": 0, "n_ranks": 8, "nnodes": 1}, "p2p_perf": {"p2p": )"
      R"("Send", "peer": 1, "p2p_sn": 0, "p2p_msg_size_bytes": 1048576, "p2p_exec_time_us": 50, )"
      R"("p2p_timing_source": "kernel_gpu"}})");
  const std::string packed = folder.file("messages.jsonl.gz");
  gzFile stream = gzopen(packed.c_str(), "wb");
  const std::string text = content_of(messages);
  gzwrite(stream, text.data(), static_cast<unsigned>(text.size()));
  gzclose(stream);
  for (const std::string& file : {messages, packed}) {
    const json sent = json_of("import " + file).at("files").at(0).at("collectives").at(0);
    EXPECT_EQ(sent.at("kind"), "send");
    EXPECT_EQ(sent.at("group_size"), 2);
    EXPECT_NEAR(sent.at("median_s").get<double>(), 50e-6, 1e-12);
  }
}

}  // namespace
}  // namespace shardwright::cli
