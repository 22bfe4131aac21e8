// Jobs whose stragglers are known.
#include "calibration/traces/straggler_analysis.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>
#include <variant>

#include "calibration/traces/trace_file.hpp"
#include "core/base/error.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

JobRecord read_job(const std::string& text) {
  std::size_t at = 0;
  return read_job_record(
      [&](char* to, std::size_t most) {
        const std::size_t count = std::min(most, text.size() - at);
        std::memcpy(to, text.data() + at, count);
        at += count;
        return count;
      },
      "job.csv");
}

// Two stages of two replicas with one microbatch: forward through both, backward through both, and
// the gradients' reduction over replicas. Stage 1 of replica 0 computes for 3 s instead of 1 s.
std::string two_by_two() {
  std::string text = "duration_s,step,stage,dp_rank,op,start_s,seq_id\n";
  for (int replica = 0; replica < 2; ++replica) {
    const double slow = replica == 0 ? 3.0 : 1.0;
    const auto add = [&](int stage, const char* op, double start, double duration) {
      text += fmt::format("{},7,{},{},{},{},0\n", duration, stage, replica, op, start);
    };
    add(0, "forward-compute", 0, 1);
    add(0, "forward-send", 1, 0.5);
    add(1, "forward-recv", 0, 1.5);
    add(1, "forward-compute", 1.5, slow);
    add(1, "backward-send", 1.5 + slow, 0.5);
    add(0, "backward-recv", 1.5, slow + 0.5);
    add(0, "grads-reduce-scatter", 2 + slow, replica == 0 ? 1 : 3);
    add(1, "grads-reduce-scatter", 2 + slow, replica == 0 ? 1 : 3);
  }
  return text;
}

TEST(StragglerAnalysis, BlamesTheWorkerThatIsSlow) {
  const StragglerAnalysis job = analyse_stragglers(read_job(two_by_two()));
  EXPECT_EQ(job.stages, 2);
  EXPECT_EQ(job.replicas, 2);
  EXPECT_NEAR(job.recorded.value(), 6.0, 1e-9);
  EXPECT_NEAR(job.replayed.value(), 6.0, 1e-9);
  // Computation takes the mean of 1, 3, 1 and 1 s.
  EXPECT_NEAR(job.ideal.value(), 1.5 + 0.5 + 1.5 + 0.5 + 1.0, 1e-9);
  EXPECT_NEAR(job.by_worker.at({1, 0}), (1.5 + 0.5 + 3.0 + 0.5 + 1.0) / 5.0, 1e-9);
  EXPECT_LE(job.by_worker.at({1, 1}), 1.0);
  EXPECT_NEAR(job.by_op.at("grads-reduce-scatter"), 1.0, 1e-9);
  EXPECT_EQ(job.incomplete_steps, 0);
}

TEST(StragglerAnalysis, CountsStepsThatLackOps) {
  std::string text = two_by_two();
  const std::size_t line = text.find("1,7,0,1,forward-compute");
  text.erase(line, text.find('\n', line) + 1 - line);
  EXPECT_EQ(analyse_stragglers(read_job(text)).incomplete_steps, 1);
}

// The slowdowns that the authors of two published jobs computed of them:
// https://github.com/ByteDance-Seed/StragglerAnalysis at 8efcd7f, data/*.result.json. Their replay
// is another one, and of the first job a quarter of the steps is here.
TEST(StragglerAnalysis, FindsThePublishedAnswers) {
  const auto analyse = [](const char* job) {
    return analyse_stragglers(std::get<JobRecord>(read_recording(fmt::format(
        "{}/tests/calibration/traces/files/stragglers/{}.csv.gz", SHARDWRIGHT_SOURCE_DIR, job))));
  };
  constexpr double kWithin = 0.004;
  const StragglerAnalysis slow = analyse("slow-worker");
  EXPECT_NEAR(slow.slowdown(), 1.9730, kWithin);
  EXPECT_NEAR(slow.by_stage.at(0), 1.9792, kWithin);
  EXPECT_NEAR(slow.by_stage.at(2), 0.9956, kWithin);
  EXPECT_NEAR(slow.by_replica.at(0), 1.9730, kWithin);
  EXPECT_NEAR(slow.by_replica.at(1), 1.0109, kWithin);
  EXPECT_NEAR(slow.by_op.at("backward-compute"), 1.5805, kWithin);
  EXPECT_NEAR(slow.by_op.at("forward-compute"), 1.3689, kWithin);
  EXPECT_NEAR(slow.by_op.at("grads-reduce-scatter"), 1.0108, kWithin);
  const StragglerAnalysis stage = analyse("stage-imbalance");
  EXPECT_NEAR(stage.slowdown(), 1.1787, kWithin);
  EXPECT_NEAR(stage.by_stage.at(3), 1.2323, kWithin);
  EXPECT_NEAR(stage.by_stage.at(1), 0.9831, kWithin);
  EXPECT_NEAR(stage.by_replica.at(1), 1.1779, kWithin);
  EXPECT_NEAR(stage.by_op.at("forward-compute"), 1.0875, kWithin);
  EXPECT_NEAR(stage.by_op.at("backward-compute"), 1.0742, kWithin);
}

// Without dp_rank the ranks of a stage are its replicas; a spreadsheet may write semicolons.
TEST(StragglerAnalysis, TellsReplicasApartByRank) {
  std::string ranks = two_by_two();
  ranks.replace(ranks.find("dp_rank"), 7, "rank");
  // Rank 4 + 2 stage + replica.
  for (const auto& [stage, replica] : {std::pair(0, 0), {0, 1}, {1, 0}, {1, 1}}) {
    const std::string from = fmt::format(",7,{},{},", stage, replica),
                      to = fmt::format(",7,{},{},", stage, 4 + 2 * stage + replica);
    for (std::size_t at = ranks.find(from); at != std::string::npos; at = ranks.find(from))
      ranks.replace(at, from.size(), to);
  }
  const StragglerAnalysis expected = analyse_stragglers(read_job(two_by_two()));
  const StragglerAnalysis job = analyse_stragglers(read_job(ranks));
  EXPECT_EQ(job.replicas, 2);
  EXPECT_EQ(job.by_worker, expected.by_worker);
  std::ranges::replace(ranks, ',', ';');
  EXPECT_TRUE(is_job_header(ranks.substr(0, ranks.find('\n'))));
  EXPECT_EQ(analyse_stragglers(read_job(ranks)).by_worker, expected.by_worker);
  std::string neither = two_by_two();
  neither.replace(neither.find("dp_rank"), 7, "host");
  EXPECT_THAT(thrown_by([&] { read_job(neither); }),
              testing::HasSubstr("two ops \"forward-compute\" at the same time"));
}

TEST(StragglerAnalysis, RefusesLinesThatAreNoOps) {
  EXPECT_TRUE(is_job_header("step,rank,stage,op,start_s,duration_s"));
  EXPECT_FALSE(is_job_header("step 5, loss 3"));
  const std::string header = "step,stage,op,start_s,duration_s\n";
  for (const char* line : {"1,0,forward-compute,0", "1,0,forward-compute,0,x",
                           "1,0,forward-compute,nan,1", "1,0.5,forward-compute,0,1"})
    EXPECT_THROW(read_job(header + line), InputError) << line;
  EXPECT_THROW(read_job(header), InputError);
  // Without replicas and numbers, and with a receiver that was not recorded.
  const StragglerAnalysis job =
      analyse_stragglers(read_job(header + "1,0,forward-compute,0,2\n1,0,forward-send,2,1\n"));
  EXPECT_NEAR(job.replayed.value(), 3.0, 1e-9);
}

// Excel writes a byte-order mark before a table in UTF-8.
TEST(StragglerAnalysis, ReadsATableThatBeginsWithAByteOrderMark) {
  const std::string file = scratch_path("job.csv");
  std::ofstream(file, std::ios::binary) << "\xef\xbb\xbf" << two_by_two();
  EXPECT_EQ(std::get<JobRecord>(read_recording(file)).steps.size(), 1U);
}

}  // namespace
}  // namespace shardwright::calibration
