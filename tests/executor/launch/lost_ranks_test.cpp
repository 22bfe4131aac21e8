// Failures without our launcher: torchrun's environment, and no process beside the ranks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>
#include <vector>

#include "executor/comm/socket.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kEndless = 100'000;
const std::vector<std::string> kLostRankLimit = {"--timeout", "3"};

struct Loss {
  std::size_t victim;
  int signal;
};

class LostRank : public testing::TestWithParam<Loss> {};

// Every other rank exits by itself and names the rank that was hit, and no other, with its last
// activity.
TEST_P(LostRank, IsNamedByAllOthers) {
  const auto folder = scratch_path("lost");
  LaunchedRanks ranks(folder, kEndless, kLostRankLimit);
  ranks.wait_for_steps(5);
  const auto [victim, signal] = GetParam();
  ranks.send(victim, signal);
  const auto name = [](std::size_t rank) {
    return "sign of life for [0-9.]+ s from rank " + std::to_string(rank) + " on " + host_name() +
           ", last in (step [0-9]+, [a-z_.]+|the checkpoint after step [0-9]+|the start)";
  };
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    if (rank == victim) continue;
    EXPECT_EQ(ranks.wait(rank), 1) << rank;
    EXPECT_THAT(ranks.messages(rank),
                HasSubstr("rank " + std::to_string(rank) + " on " + host_name() + ": "));
    EXPECT_THAT(ranks.messages(rank), testing::ContainsRegex(name(victim)));
    for (std::size_t other = 0; other < kRanks; ++other) {
      if (other == victim) continue;
      EXPECT_THAT(ranks.messages(rank), Not(testing::ContainsRegex(name(other)))) << rank;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, LostRank, testing::Values(Loss{2, SIGKILL}, Loss{3, SIGSTOP}),
                         [](const auto& loss) {
                           return loss.param.signal == SIGKILL ? "Killed" : "Frozen";
                         });

// The store ends with rank 0.
TEST(LostStore, IsNamedByAllOthers) {
  LaunchedRanks ranks(scratch_path("lost"), kEndless, kLostRankLimit);
  ranks.wait_for_steps(5);
  ranks.send(0, SIGKILL);
  for (std::size_t rank = 1; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 1) << rank;
    EXPECT_THAT(ranks.messages(rank), HasSubstr("; rank 0 at 127.0.0.1:"));
  }
}

// A failure of all ranks is no loss of a rank.
TEST(LostRanks, AreNoneIfAllHaveFailed) {
  LaunchedRanks ranks(scratch_path("none-lost"), kSteps,
                      {"--lr", "1e12", "--warmup-steps", "4", "--clip", "0", "--timeout", "3"});
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 1) << rank;
    EXPECT_THAT(ranks.messages(rank), AllOf(HasSubstr(": step "), Not(HasSubstr("no sign of"))));
  }
}

}  // namespace
}  // namespace shardwright::executor
