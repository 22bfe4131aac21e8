// Tokens beyond the vocabulary, found before the ranks start or by a rank during training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "executor/data/batch_loader.hpp"
#include "executor/data/token_file.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr std::uint64_t kDataTokens = 1U << 16U;
// The model's vocabulary has 256 tokens.
constexpr std::uint16_t kForeign = 300;
constexpr int kManySteps = 60, kBadStep = 24;

std::filesystem::path good_tokens() {
  auto file = scratch_path("corpus.u16");
  std::vector<std::uint16_t> tokens(kDataTokens);
  for (std::uint64_t i = 0; i < kDataTokens; ++i)
    tokens[i] = static_cast<std::uint16_t>(i * i % 251);
  std::ofstream stream(file, std::ios::binary);
  stream.write(reinterpret_cast<const char*>(tokens.data()),
               static_cast<std::streamsize>(tokens.size() * sizeof(std::uint16_t)));
  return file;
}

// Writes an unknown token into a sample that only the second data-parallel rank reads, in step
// `kBadStep`; returns its position.
std::uint64_t spoil(const std::filesystem::path& data) {
  const Plan plan = one_rank_plan();
  const auto seq_len = static_cast<std::uint64_t>(plan.seq_len);
  const std::uint64_t samples = (kDataTokens - 1) / seq_len;
  const auto number = static_cast<std::uint64_t>(kBadStep * plan.global_batch + plan.micro_batch);
  EXPECT_LT(number, samples) << "met in an earlier step, too";
  // Not the first token, which also ends the previous sample.
  const std::uint64_t position =
      SampleOrder(TrainingOptions{}.seed, samples).sample(number) * seq_len + 1;
  std::fstream stream(data, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekp(static_cast<std::streamoff>(position * sizeof kForeign));
  stream.write(reinterpret_cast<const char*>(&kForeign), sizeof kForeign);
  return position;
}

// Lets every rank read this file.
LaunchedRanks::Change reading(const std::filesystem::path& data) {
  return [data](int, std::vector<std::string>& arguments) {
    *(std::find(arguments.begin(), arguments.end(), "--data") + 1) = data;
  };
}

std::string refusal(const std::filesystem::path& data, std::uint64_t position) {
  return data.string() + ": position " + std::to_string(position) +
         ": found the token 300; expected 0 to 255, the model's vocabulary\n";
}

TEST(ForeignToken, IsReportedOnceBeforeRanksStart) {
  const auto data = good_tokens();
  const std::uint64_t position = spoil(data);
  const auto folder = scratch_path("foreign");
  StartedRun run(folder, {"--restarts", "3"}, kManySteps, data);
  EXPECT_EQ(run.wait(), 2);
  EXPECT_EQ(run.messages(), refusal(data, position));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// The run does not reach it.
TEST(ForeignToken, IsIrrelevantIfNoStepReadsIt) {
  const auto data = good_tokens();
  spoil(data);
  StartedRun run(scratch_path("foreign"), {}, kBadStep, data);
  EXPECT_EQ(run.wait(), 0) << run.messages();
}

// Under another launcher each rank checks, and none waits for one that has exited.
TEST(ForeignToken, IsReportedByEachRankUnderAnotherLauncher) {
  const auto data = good_tokens();
  const std::uint64_t position = spoil(data);
  LaunchedRanks ranks(scratch_path("foreign"), kManySteps, {}, reading(data));
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 2) << rank;
    EXPECT_EQ(ranks.messages(rank), refusal(data, position)) << rank;
  }
}

// The file changes while the ranks train, as if it had more tokens than are checked before. Two
// ranks read the token and the others learn of it; no rank takes it for a failure.
TEST(ForeignTokenInMidRun, IsReportedOnceWithoutARestart) {
  for (int time = 0; time < 2; ++time) {
    const auto data = good_tokens();
    StartedRun run(scratch_path("foreign"), {"--restarts", "3"}, kManySteps, data);
    run.wait_for_steps(3);
    const std::uint64_t position = spoil(data);
    EXPECT_EQ(run.wait(), 2);
    EXPECT_EQ(run.messages(), refusal(data, position));
    EXPECT_EQ(run.steps_done(), static_cast<std::size_t>(kBadStep));
  }
}

TEST(ForeignTokenInMidRun, EndsAllRanksUnderAnotherLauncherAlike) {
  const auto data = good_tokens();
  LaunchedRanks ranks(scratch_path("foreign"), kManySteps, {}, reading(data));
  ranks.wait_for_steps(3);
  const std::uint64_t position = spoil(data);
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 2) << rank;
    EXPECT_THAT(ranks.messages(rank),
                AllOf(HasSubstr(refusal(data, position)), Not(HasSubstr("Connection")),
                      Not(HasSubstr("no sign of")), Not(HasSubstr("not answer"))))
        << rank;
  }
}

}  // namespace
}  // namespace shardwright::executor
