// Ranks that would train different models, and ranks that do not join.
#include "executor/launch/agreement.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "core/base/error.hpp"
#include "executor/comm/socket.hpp"
#include "executor/launch/heartbeat.hpp"
#include "tests/executor/launch/launched_ranks.hpp"
#include "tests/executor/launch/started_run.hpp"

namespace shardwright::executor {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Not;

// Returns the error of each rank; "" if it continues.
std::vector<std::string> outcomes_of(const std::vector<RunInputs>& inputs, std::int64_t world) {
  constexpr std::chrono::milliseconds kLimit{300};
  LocalStore store;
  std::vector<std::string> outcomes(inputs.size());
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < inputs.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        agree_on_inputs(store, static_cast<std::int64_t>(rank), world, inputs[rank], kLimit);
      } catch (const InputError& error) {
        outcomes[rank] = error.what();
      } catch (const RuntimeFailure& error) {
        outcomes[rank] = error.what();
      }
    });
  }
  ranks.clear();
  return outcomes;
}

TEST(Agreement, LetsRanksOfOneRunContinue) {
  const RunInputs same = {{"--seed", "1"}, {"data", "5 tokens"}};
  EXPECT_THAT(outcomes_of({same, same, same}, 3), Each(""));
}

// Thrown on every rank with exactly the ranks and inputs that differ.
TEST(Agreement, NamesRankInputAndBothValues) {
  const std::string host = " on " + host_name();
  const std::vector<std::string> outcomes =
      outcomes_of({{{"--seed", "1"}, {"data", "5 tokens"}},
                   {{"--seed", "2"}, {"data", "5 tokens"}},
                   {{"--seed", "1"}, {"data", "5 tokens"}},
                   {{"--seed", "1"}, {"data", "9 tokens"}, {"--clip", "3"}}},
                  4);
  EXPECT_THAT(outcomes,
              Each(AllOf(HasSubstr("rank 1" + host + ", --seed: found 2; expected 1, as on rank 0"),
                         HasSubstr("rank 3" + host + ", data: found 9 tokens; expected 5 tokens"),
                         HasSubstr("rank 3" + host + ", --clip: found 3; expected nothing"),
                         Not(HasSubstr("rank 2")))));
}

TEST(Agreement, NamesTheRankThatDoesNotJoin) {
  const RunInputs same = {{"--seed", "1"}};
  EXPECT_THAT(outcomes_of({same, same}, 3), Each("rank 2 did not join within 0.3 s"));
}

// For instance if a launcher was given one number twice.
TEST(Agreement, RefusesASecondProcessOfARank) {
  LocalStore store;
  const RunInputs same = {{"--seed", "1"}};
  const auto join = [&](std::int64_t rank) -> std::string {
    try {
      agree_on_inputs(store, rank, 2, same, std::chrono::seconds(20));
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  auto first = std::async(std::launch::async, join, 0);
  auto second = std::async(std::launch::async, join, 1);
  EXPECT_EQ(first.get() + second.get(), "");
  EXPECT_THAT(join(1), AllOf(HasSubstr("rank 1: found two processes"), HasSubstr(host_name())));
}

// The rank is lost, however short the watch has waited for it.
TEST(RankWatch, CountsAbsentRanksAsLost) {
  LocalStore table;
  const RankWatch watch(table, 3, "node7");
  constexpr std::chrono::hours kLong{1};
  EXPECT_THAT(watch.silent(kLong), testing::IsEmpty());
  report_absent(table, 1);
  EXPECT_THAT(watch.silent(kLong), testing::ElementsAre(1));
  EXPECT_EQ(watch.describe_silence(1), "rank 1 on node7 did not join in time");
}

// The option that differs on one of four ranks, and its name in messages.
struct Odd {
  const char* name;
  LaunchedRanks::Change change;
  std::vector<std::string> reported;
};

void add(std::vector<std::string>& arguments, const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
}

void use_other_data(std::vector<std::string>& arguments) {
  std::string& data = *(std::find(arguments.begin(), arguments.end(), "--data") + 1);
  std::ifstream whole(data);
  std::string text(std::istreambuf_iterator<char>(whole), {});
  // Of the same size.
  text.back() = '!';
  data += ".other";
  std::ofstream(data) << text;
}

void use_other_plan(std::vector<std::string>& arguments, const char* member, int value) {
  std::ifstream stream(arguments[1]);
  nlohmann::json plan = nlohmann::json::parse(stream);
  plan["plan"][member] = value;
  arguments[1] += ".other";
  std::ofstream(arguments[1]) << plan.dump();
}

class OddRank : public testing::TestWithParam<Odd> {};

TEST_P(OddRank, IsRefusedByAllBeforeTheFirstStep) {
  const auto folder = empty_run_folder("odd");
  LaunchedRanks ranks(folder, kSteps, {}, [](int rank, std::vector<std::string>& arguments) {
    if (rank == 1) GetParam().change(rank, arguments);
  });
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 2) << rank << ranks.messages(rank);
    EXPECT_THAT(ranks.messages(rank), HasSubstr("rank 1 on " + host_name()));
    for (const std::string& each : GetParam().reported)
      EXPECT_THAT(ranks.messages(rank), HasSubstr(each)) << rank;
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, OddRank,
    testing::Values(
        Odd{"Seed",
            [](int, auto& arguments) {
              add(arguments, {"--seed", "2"});
            },
            {"--seed: found 2; expected 1, as on rank 0"}},
        Odd{"Rate",
            [](int, auto& arguments) {
              add(arguments, {"--lr", "0.5"});
            },
            {"--lr: found 0.5; expected 0.0003, as on rank 0"}},
        Odd{"Data", [](int, auto& arguments) { use_other_data(arguments); }, {", data: found "}},
        Odd{"Plan",
            [](int, auto& arguments) { use_other_plan(arguments, "micro_batch", 2); },
            {"/plan/micro_batch: found 2; expected 1, as on rank 0"}}),
    [](const auto& odd) { return odd.param.name; });

// Two runs have a checkpoint of one step; a rank with the other run's checkpoint is noticed before
// the tensors are read.
TEST(OddCheckpoint, IsRefusedByAll) {
  const auto folder = empty_run_folder("resumed"), other = empty_run_folder("another");
  EXPECT_EQ(StartedRun(folder, {}, kCheckpointEvery).wait(), 0);
  EXPECT_EQ(StartedRun(other, {"--lr", "0.01"}, kCheckpointEvery).wait(), 0);
  LaunchedRanks ranks(folder, kSteps, {"--resume", "--timeout", "3"},
                      [&](int rank, std::vector<std::string>& arguments) {
                        if (rank != 1) return;
                        *(std::find(arguments.begin(), arguments.end(), "--out") + 1) = other;
                      });
  for (std::size_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(ranks.wait(rank), 1) << rank;
  EXPECT_THAT(ranks.messages(1), HasSubstr("is not the checkpoint that rank 0 resumes from"));
  EXPECT_EQ(losses_in(folder).size(), static_cast<std::size_t>(kCheckpointEvery));
}

// All have the same plan for two ranks fewer than were started.
TEST(PlanForOthers, IsRefusedByAllWithTheNumberOfRanks) {
  std::vector<std::string> of_two = run_arguments(empty_run_folder("fewer"));
  use_other_plan(of_two, "dp", 1);
  LaunchedRanks ranks(empty_run_folder("fewer"), kSteps, {},
                      [&](int, std::vector<std::string>& arguments) { arguments[1] = of_two[1]; });
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 2) << rank;
    EXPECT_THAT(ranks.messages(rank), HasSubstr("found a plan for 2 ranks; expected one for the 4 "
                                                "that torchrun started"));
  }
}

// Only one rank has such a plan, which it notices before the rendezvous.
TEST(PlanForOthers, OfOneRankIsReportedToTheOthers) {
  for (const std::size_t odd : {0U, 1U}) {
    LaunchedRanks ranks(empty_run_folder("fewer"), kSteps, {},
                        [&](int rank, std::vector<std::string>& arguments) {
                          if (rank == static_cast<int>(odd)) use_other_plan(arguments, "dp", 1);
                        });
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(ranks.wait(rank), 2) << rank << ranks.messages(rank);
      EXPECT_THAT(ranks.messages(rank),
                  AllOf(HasSubstr(rank == odd ? "" : fmt::format("rank {} on ", odd)),
                        HasSubstr("found a plan for 2 ranks; expected one for the 4 that torchrun "
                                  "started")));
    }
  }
}

// No other rank can be told: rank 0 knows of no others and trains by itself.
TEST(PlanForOthers, IsReportedWithoutOtherRanks) {
  const auto folder = empty_run_folder("alone");
  LaunchedRanks ranks(
      folder, kSteps, {"--timeout", "3"},
      [](int rank, std::vector<std::string>& arguments) {
        if (rank > 1) return arguments.clear();
        for (const char* degree : {"dp", "pp"}) use_other_plan(arguments, degree, 1);
      },
      [](int rank) { return rank + 1; });
  EXPECT_EQ(ranks.wait(0), 0) << ranks.messages(0);
  EXPECT_EQ(losses_in(folder).size(), static_cast<std::size_t>(kSteps));
  EXPECT_EQ(ranks.wait(1), 2);
  EXPECT_THAT(ranks.messages(1), HasSubstr("found a plan for 1 rank; expected one for the 2 that "
                                           "torchrun started"));
}

// One rank gets another world size than the others: rank 0, another one, or a world of one.
TEST(OddWorld, IsRefusedByAllAndTheRankIsNamed) {
  struct Told {
    int rank, world;
    std::string reported;
  };
  const Told cases[] = {
      {1, 8, "found a plan for 4 ranks; expected one for the 8 that torchrun started"},
      {1, 0, "WORLD_SIZE: found \"0\"; expected an integer from 1 to"},
      {3, 3, "RANK: found 3; expected less than 3, which WORLD_SIZE says"},
      {0, 8, "found a plan for 4 ranks; expected one for the 8 that torchrun started"},
      {0, 2, "found a plan for 4 ranks; expected one for the 2 that torchrun started"},
      {0, 0, "WORLD_SIZE: found \"0\"; expected an integer from 1 to"},
      {0, 1, "found a plan for 4 ranks; expected one for the 1 that torchrun started"}};
  for (const Told& odd : cases) {
    const auto folder = empty_run_folder("odd");
    // Rank 0 waits this long for ranks that do not exist.
    LaunchedRanks ranks(folder, kSteps, {"--timeout", "6"}, nullptr,
                        [&](int rank) { return rank == odd.rank ? odd.world : kRanks; });
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(ranks.wait(rank), 2) << odd.rank << rank << ranks.messages(rank);
      const bool is_odd = static_cast<int>(rank) == odd.rank;
      EXPECT_THAT(ranks.messages(rank),
                  AllOf(HasSubstr(is_odd ? "" : fmt::format("rank {} on ", odd.rank)),
                        HasSubstr(odd.reported)));
    }
    EXPECT_FALSE(std::filesystem::exists(folder));
  }
}

// A rank whose plan matches its world size finds no error before the rendezvous.
TEST(OddWorld, WithAPlanForItIsNamedWithBothNumbers) {
  const auto folder = empty_run_folder("odd");
  LaunchedRanks ranks(
      folder, kSteps, {"--timeout", "6"},
      [](int rank, std::vector<std::string>& arguments) {
        if (rank == 1) use_other_plan(arguments, "dp", 1);
      },
      [](int rank) { return rank == 1 ? 2 : kRanks; });
  const std::string host = " on " + host_name(),
                    reported = ", number of ranks: found 2; expected 4, as on rank 0";
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 2) << rank << ranks.messages(rank);
    EXPECT_THAT(ranks.messages(rank),
                AllOf(HasSubstr("rank 1" + host + reported + host),
                      HasSubstr("/plan/dp: found 1; expected 2, as on rank 0")));
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// Bad input that one rank finds before the rendezvous; the others have none.
class RefusedRankOfSeveral : public testing::TestWithParam<int> {};

TEST_P(RefusedRankOfSeveral, EndsTheOthersAlike) {
  const auto refused = static_cast<std::size_t>(GetParam());
  const std::string name = fmt::format("rank {} on {}, ", refused, host_name());
  const auto expect = [&](const LaunchedRanks::Change& change, const std::string& reported) {
    const auto folder = empty_run_folder("refused");
    LaunchedRanks ranks(folder, kSteps, {}, [&](int rank, std::vector<std::string>& arguments) {
      if (rank == GetParam()) change(rank, arguments);
    });
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      EXPECT_EQ(ranks.wait(rank), 2) << rank << ranks.messages(rank);
      EXPECT_THAT(ranks.messages(rank),
                  AllOf(HasSubstr(rank == refused ? "" : name), HasSubstr(reported)));
    }
    EXPECT_FALSE(std::filesystem::exists(folder));
  };
  expect([](int, auto& arguments) { arguments[1] = "/nowhere/plan.json"; },
         "/nowhere/plan.json: found no such file; expected");
  expect(
      [](int, auto& arguments) {
        add(arguments, {"--seed", "many"});
      },
      "--seed: found many; expected an integer");
  expect(
      [](int, auto& arguments) {
        add(arguments, {"--warmup-steps", "9999"});
      },
      "--warmup-steps: found 9999; expected");
}

INSTANTIATE_TEST_SUITE_P(Ranks, RefusedRankOfSeveral, testing::Values(0, 2));

// Rank 0 creates the folder once all agree.
TEST(FolderThatCannotBeMade, IsReportedByAll) {
  const auto blocked = empty_run_folder("blocked");
  std::ofstream(blocked) << "a file";
  LaunchedRanks ranks(
      empty_run_folder("ranks"), kSteps, {}, [&](int, std::vector<std::string>& arguments) {
        *(std::find(arguments.begin(), arguments.end(), "--out") + 1) = blocked / "run";
      });
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 2) << rank;
    EXPECT_THAT(ranks.messages(rank),
                HasSubstr("rank 0 on " + host_name() + ", --out: found Not a directory; expected"));
  }
}

// Rank 2 is never started; each of the others names it.
TEST(AbsentRank, IsNamedByAllOthers) {
  LaunchedRanks ranks(empty_run_folder("absent"), kSteps, {"--timeout", "3"},
                      [](int rank, std::vector<std::string>& arguments) {
                        if (rank == 2) arguments.clear();
                      });
  for (const std::size_t rank : {0U, 1U, 3U}) {
    EXPECT_EQ(ranks.wait(rank), 1) << rank;
    EXPECT_THAT(ranks.messages(rank), AllOf(HasSubstr("rank 2 did not join within 3.0 s"),
                                            HasSubstr("; rank 2 on an unknown host did not join")));
  }
}

}  // namespace
}  // namespace shardwright::executor
