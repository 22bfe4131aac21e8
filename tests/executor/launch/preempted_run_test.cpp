// Runs that a scheduler asks for a checkpoint, by a signal.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "executor/checkpoint/checkpoint_folder.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

std::int64_t only_checkpoint(const std::filesystem::path& run) {
  const std::vector<std::int64_t> steps = CheckpointFolder(run / "checkpoints").steps();
  EXPECT_EQ(steps.size(), 1U);
  return steps.empty() ? 0 : steps.front();
}

// A scheduler sends its signal to the launcher, or to processes of its choice.
class Preempted : public testing::TestWithParam<bool> {
 protected:
  // The only checkpoint of the run is the one that the signal asks for.
  Preempted() : run_(folder_, with_no_other_checkpoint()) {}

  static std::vector<std::string> with_no_other_checkpoint() {
    return {"--timeout", "4", "--restarts", "1", "--checkpoint-every", "0"};
  }
  void send(int signal) {
    const std::vector<pid_t> ranks = run_.ranks();
    run_.wait_for_steps(7);
    kill(GetParam() ? run_.launcher() : ranks[2], signal);
  }
  void expect_resumes_as_undisturbed() {
    StartedRun again(folder_, {"--resume"});
    EXPECT_EQ(again.wait(), 0) << again.messages();
    EXPECT_EQ(losses_in(folder_), undisturbed_losses());
  }

  std::filesystem::path folder_ = scratch_path("preempted");
  StartedRun run_;
};

TEST_P(Preempted, WritesACheckpointAndEnds) {
  send(SIGTERM);
  EXPECT_EQ(run_.wait(), 128 + SIGTERM) << run_.messages();
  const std::int64_t steps = only_checkpoint(folder_);
  EXPECT_EQ(steps, static_cast<std::int64_t>(run_.steps_done()));
  EXPECT_LT(steps, kSteps);
  EXPECT_EQ(run_.messages(), "stopped by SIGTERM after " + std::to_string(steps) +
                                 " of 30 steps, with the checkpoint " +
                                 CheckpointFolder(folder_ / "checkpoints").path(steps).string() +
                                 "; the same command with --resume trains the rest\n");
  expect_intact_checkpoints(folder_);
  expect_resumes_as_undisturbed();
}

TEST_P(Preempted, WritesACheckpointAndGoesOnWhereAskedTo) {
  send(SIGUSR1);
  EXPECT_EQ(run_.wait(), 0) << run_.messages();
  EXPECT_EQ(losses_in(folder_), undisturbed_losses());
  const std::int64_t steps = only_checkpoint(folder_);
  EXPECT_LT(steps, kSteps);
  EXPECT_THAT(run_.messages(),
              testing::StartsWith("checkpoint after " + std::to_string(steps) + " of 30 steps"));
  expect_intact_checkpoints(folder_);
  expect_resumes_as_undisturbed();
}

INSTANTIATE_TEST_SUITE_P(Signals, Preempted, testing::Bool(),
                         [](const auto& hit) { return hit.param ? "ByTheLauncher" : "ByOneRank"; });

// torchrun's ranks, of which one gets the signal.
TEST(Preemption, OfOneRankEndsAllUnderAnotherLauncher) {
  const auto folder = scratch_path("preempted-rank");
  LaunchedRanks ranks(folder, 1'000'000'000, kLimit);
  ranks.wait_for_steps(3);
  ranks.send(2, SIGTERM);
  for (std::size_t rank = 0; rank < kRanks; ++rank)
    EXPECT_EQ(ranks.wait(rank), 128 + SIGTERM) << ranks.messages(rank);
  EXPECT_EQ(CheckpointFolder(folder / "checkpoints").steps().front(),
            static_cast<std::int64_t>(losses_in(folder).size()));
}

// Two replicas with local steps keep what no checkpoint holds, and end at once.
TEST(Preemption, WritesNoCheckpointThatWouldLackSomething) {
  Plan plan = one_rank_plan();
  plan.dp = 2;
  plan.replicas.sync = ReplicaSync::LocalSteps;
  plan.replicas.inner_steps = 4;
  const auto file = scratch_path("local-steps.json"), folder = scratch_path("local-steps");
  write_scenario(small_llama(), plan, file);
  StartedRun run(folder, {"--checkpoint-every", "0"}, 1'000'000'000, {}, file);
  run.wait_for_steps(3);
  kill(run.launcher(), SIGTERM);
  EXPECT_EQ(run.wait(), 128 + SIGTERM) << run.messages();
  EXPECT_FALSE(std::filesystem::exists(folder / "checkpoints"));
}

}  // namespace
}  // namespace shardwright::executor
