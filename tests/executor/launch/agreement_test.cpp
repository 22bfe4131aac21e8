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

#include "executor/comm/socket.hpp"
#include "executor/launch/heartbeat.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

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
      outcomes[rank] = thrown_by<std::runtime_error>([&] {
        agree_on_inputs(store, static_cast<std::int64_t>(rank), world, inputs[rank], kLimit);
      });
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

// A launcher may have been given one number twice.
TEST(Agreement, RefusesASecondProcessOfARank) {
  LocalStore store;
  const RunInputs same = {{"--seed", "1"}};
  const auto join = [&](std::int64_t rank) {
    return thrown_by([&] { agree_on_inputs(store, rank, 2, same, std::chrono::seconds(20)); });
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

// Expects that all ranks exit as bad input ends them, with messages that match, and that all but
// the `odd` one name it.
void expect_refusal(LaunchedRanks& ranks, const testing::Matcher<std::string>& reported,
                    std::size_t odd = kRanks) {
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    EXPECT_EQ(ranks.wait(rank), 2) << rank << ranks.messages(rank);
    EXPECT_THAT(ranks.messages(rank), reported) << rank;
    if (rank == odd || odd == kRanks) continue;
    EXPECT_THAT(ranks.messages(rank), HasSubstr(fmt::format("rank {} on {}", odd, host_name())));
  }
}

// The option that differs on one of four ranks, and its name in messages.
struct Odd {
  const char* name;
  LaunchedRanks::Change change;
  std::string reported;
};

LaunchedRanks::Change adding(const std::vector<std::string>& more) {
  return [more](int, std::vector<std::string>& arguments) {
    arguments.insert(arguments.end(), more.begin(), more.end());
  };
}

void use_other_data(std::vector<std::string>& arguments) {
  std::string& data = *(std::find(arguments.begin(), arguments.end(), "--data") + 1);
  std::ifstream whole(data);
  std::string text(std::istreambuf_iterator<char>(whole), {});
  // The file keeps its size.
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
  const auto folder = scratch_path("odd");
  LaunchedRanks ranks(folder, kSteps, {}, [](int rank, std::vector<std::string>& arguments) {
    if (rank == 1) GetParam().change(rank, arguments);
  });
  expect_refusal(ranks,
                 AllOf(HasSubstr("rank 1 on " + host_name()), HasSubstr(GetParam().reported)));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

INSTANTIATE_TEST_SUITE_P(
    Inputs, OddRank,
    testing::Values(
        Odd{"Seed", adding({"--seed", "2"}), "--seed: found 2; expected 1, as on rank 0"},
        Odd{"Rate", adding({"--lr", "0.5"}), "--lr: found 0.5; expected 0.0003, as on rank 0"},
        Odd{"Data", [](int, auto& arguments) { use_other_data(arguments); }, ", data: found "},
        Odd{"Plan", [](int, auto& arguments) { use_other_plan(arguments, "micro_batch", 2); },
            "/plan/micro_batch: found 2; expected 1, as on rank 0"}),
    [](const auto& odd) { return odd.param.name; });

// Two runs have a checkpoint of one step; a rank with the other run's checkpoint is noticed before
// the tensors are read.
TEST(OddCheckpoint, IsRefusedByAll) {
  const auto folder = scratch_path("resumed"), other = scratch_path("another");
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

constexpr const char* kPlanForTwo =
    "found a plan for 2 ranks; expected one for the 4 that torchrun started";

// All have the same plan for two ranks fewer than were started.
TEST(PlanForOthers, IsRefusedByAllWithTheNumberOfRanks) {
  std::vector<std::string> of_two = run_arguments(scratch_path("fewer"));
  use_other_plan(of_two, "dp", 1);
  LaunchedRanks ranks(scratch_path("fewer"), kSteps, {},
                      [&](int, std::vector<std::string>& arguments) { arguments[1] = of_two[1]; });
  expect_refusal(ranks, HasSubstr(kPlanForTwo));
}

// Only one rank has such a plan, which it notices before the rendezvous.
TEST(PlanForOthers, OfOneRankIsReportedToTheOthers) {
  for (const std::size_t odd : {0U, 1U}) {
    LaunchedRanks ranks(scratch_path("fewer"), kSteps, {},
                        [&](int rank, std::vector<std::string>& arguments) {
                          if (rank == static_cast<int>(odd)) use_other_plan(arguments, "dp", 1);
                        });
    expect_refusal(ranks, HasSubstr(kPlanForTwo), odd);
  }
}

// Rank 0 can inform no other rank: it knows of no others and trains by itself.
TEST(PlanForOthers, IsReportedWithoutOtherRanks) {
  const auto folder = scratch_path("alone");
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
  struct OddCase {
    int rank, world;
    std::string reported;
  };
  const OddCase cases[] = {
      {1, 8, "found a plan for 4 ranks; expected one for the 8 that torchrun started"},
      {1, 0, "WORLD_SIZE: found \"0\"; expected an integer from 1 to"},
      {3, 3, "RANK: found 3; expected less than 3, which WORLD_SIZE says"},
      {0, 8, "found a plan for 4 ranks; expected one for the 8 that torchrun started"},
      {0, 2, "found a plan for 4 ranks; expected one for the 2 that torchrun started"},
      {0, 0, "WORLD_SIZE: found \"0\"; expected an integer from 1 to"},
      {0, 1, "found a plan for 4 ranks; expected one for the 1 that torchrun started"}};
  for (const OddCase& odd : cases) {
    const auto folder = scratch_path("odd");
    // Rank 0 waits this long for ranks that do not exist.
    LaunchedRanks ranks(folder, kSteps, {"--timeout", "6"}, nullptr,
                        [&](int rank) { return rank == odd.rank ? odd.world : kRanks; });
    expect_refusal(ranks, HasSubstr(odd.reported), static_cast<std::size_t>(odd.rank));
    EXPECT_FALSE(std::filesystem::exists(folder));
  }
}

// A rank whose plan matches its world size finds no error before the rendezvous.
TEST(OddWorld, WithAPlanForItIsNamedWithBothNumbers) {
  const auto folder = scratch_path("odd");
  LaunchedRanks ranks(
      folder, kSteps, {"--timeout", "6"},
      [](int rank, std::vector<std::string>& arguments) {
        if (rank == 1) use_other_plan(arguments, "dp", 1);
      },
      [](int rank) { return rank == 1 ? 2 : kRanks; });
  const std::string host = " on " + host_name(),
                    reported = ", number of ranks: found 2; expected 4, as on rank 0";
  expect_refusal(ranks, AllOf(HasSubstr("rank 1" + host + reported + host),
                              HasSubstr("/plan/dp: found 1; expected 2, as on rank 0")));
  EXPECT_FALSE(std::filesystem::exists(folder));
}

// Bad input that one rank finds before the rendezvous; the others have none.
class RefusedRankOfSeveral : public testing::TestWithParam<int> {};

TEST_P(RefusedRankOfSeveral, EndsTheOthersAlike) {
  const auto expect = [&](const LaunchedRanks::Change& change, const std::string& reported) {
    const auto folder = scratch_path("refused");
    LaunchedRanks ranks(folder, kSteps, {}, [&](int rank, std::vector<std::string>& arguments) {
      if (rank == GetParam()) change(rank, arguments);
    });
    expect_refusal(ranks, HasSubstr(reported), static_cast<std::size_t>(GetParam()));
    EXPECT_FALSE(std::filesystem::exists(folder));
  };
  expect([](int, auto& arguments) { arguments[1] = "/nowhere/plan.json"; },
         "/nowhere/plan.json: found no such file; expected");
  expect(adding({"--seed", "many"}), "--seed: found many; expected an integer");
  expect(adding({"--warmup-steps", "9999"}), "--warmup-steps: found 9999; expected");
}

INSTANTIATE_TEST_SUITE_P(Ranks, RefusedRankOfSeveral, testing::Values(0, 2));

// Rank 0 creates the folder once all agree.
TEST(FolderThatCannotBeMade, IsReportedByAll) {
  const auto blocked = scratch_path("blocked");
  std::ofstream(blocked) << "a file";
  LaunchedRanks ranks(
      scratch_path("ranks"), kSteps, {}, [&](int, std::vector<std::string>& arguments) {
        *(std::find(arguments.begin(), arguments.end(), "--out") + 1) = blocked / "run";
      });
  expect_refusal(
      ranks, HasSubstr("rank 0 on " + host_name() + ", --out: found Not a directory; expected"));
}

// Rank 2 is never started; each of the others names it.
TEST(AbsentRank, IsNamedByAllOthers) {
  LaunchedRanks ranks(scratch_path("absent"), kSteps, {"--timeout", "3"},
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
