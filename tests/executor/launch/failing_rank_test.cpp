// Runs of real processes, of which one is killed or frozen at a random time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>
#include <tuple>

#include "core/spec/scenario.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/comm/socket.hpp"
#include "executor/data/counter_random.hpp"
#include "executor/launch/local_launcher.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/process_end.hpp"

namespace shardwright::executor {
namespace {

using testing::HasSubstr;

// The machine that runs the tests may be busy: what a silent rank may take is generous.
const std::vector<std::string> kLimit = {"--timeout", "4"};

// The environment variable SHARDWRIGHT_HITS asks for more.
std::uint64_t hits_of_each_kind() {
  const char* asked = std::getenv("SHARDWRIGHT_HITS");
  return asked == nullptr ? 2 : std::strtoull(asked, nullptr, 10);
}

// Of a run that nobody disturbs.
const std::vector<double>& undisturbed_losses() {
  static const std::vector<double> losses = [] {
    const auto folder = empty_run_folder("undisturbed");
    EXPECT_EQ(StartedRun(folder, kLimit).wait(), 0);
    return losses_in(folder);
  }();
  return losses;
}

void expect_whole_checkpoints(const std::filesystem::path& run) {
  CheckpointFolder checkpoints(run / "checkpoints");
  for (const std::int64_t steps : checkpoints.steps())
    EXPECT_EQ(checkpoints.find_damage(steps), std::nullopt) << steps;
}

// What node exporter collects is no older than the metrics.
void expect_prometheus_of_last_line(const std::filesystem::path& run) {
  std::ifstream file(run / "metrics.jsonl");
  std::string last;
  for (std::string line; std::getline(file, line) && !file.eof();) last = line;
  if (last.empty()) return;
  std::ostringstream text;
  text << std::ifstream(run / "metrics.prom").rdbuf();
  const auto step = nlohmann::json::parse(last).at("step").get<std::int64_t>();
  EXPECT_THAT(text.str(), HasSubstr("\nshardwright_step " + std::to_string(step) + "\n"));
}

class FailingRank : public testing::TestWithParam<int> {
 protected:
  static std::vector<std::string> with(std::vector<std::string> more) {
    more.insert(more.begin(), kLimit.begin(), kLimit.end());
    return more;
  }

  // Strikes after a random step, or while the ranks start, and says which rank was hit.
  static std::int64_t hit(StartedRun& run, std::uint64_t number) {
    const std::uint64_t random = random_bits(static_cast<std::uint64_t>(GetParam()), number);
    const std::vector<pid_t> ranks = run.ranks();
    EXPECT_EQ(ranks.size(), static_cast<std::size_t>(kRanks));
    const auto victim = static_cast<std::int64_t>(random % kRanks);
    run.wait_for_steps((random >> 8U) % (kSteps - 2));
    std::this_thread::sleep_for(std::chrono::microseconds((random >> 16U) % 30'000));
    kill(ranks[static_cast<std::size_t>(victim)], GetParam());
    return victim;
  }
};

// Wherever it is hit, the run ends by itself, names the rank, leaves no process and no checkpoint
// that is not whole, and goes on to the losses of a run that was not disturbed.
TEST_P(FailingRank, EndsTheRunOfAllAndLosesNothingBeyondTheLastCheckpoint) {
  ASSERT_EQ(undisturbed_losses().size(), static_cast<std::size_t>(kSteps));
  for (std::uint64_t number = 0; number < hits_of_each_kind(); ++number) {
    const auto folder = empty_run_folder("hit");
    std::vector<pid_t> ranks;
    {
      // Every other run writes its checkpoints in the background.
      StartedRun run(folder, number % 2 == 0 ? kLimit : with({"--async-checkpoints"}));
      ranks = run.ranks();
      const std::int64_t victim = hit(run, number);
      EXPECT_GT(run.wait(), 0) << run.messages();
      const std::string name = "rank " + std::to_string(victim) + " on " + host_name();
      EXPECT_THAT(run.messages(), HasSubstr(name)) << number;
      if (run.steps_done() > 0) {
        EXPECT_THAT(run.messages(), HasSubstr(name + ", last in "));
      }
    }
    for (const pid_t rank : ranks) EXPECT_NE(kill(rank, 0), 0);
    expect_whole_checkpoints(folder);
    expect_prometheus_of_last_line(folder);
    // Which may have been hit before its first checkpoint.
    StartedRun again(folder, with({"--resume", "--force"}));
    EXPECT_EQ(again.wait(), 0) << again.messages();
    EXPECT_EQ(losses_in(folder), undisturbed_losses());
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, FailingRank, testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& hit) {
                           return hit.param == SIGKILL ? "Killed" : "Frozen";
                         });

// The losses of a run that was broken twice are those of one that was not.
TEST(Restart, BringsBackTheLossesFromTheLastCheckpoint) {
  const auto folder = empty_run_folder("restart");
  StartedRun run(folder, {"--restarts", "2"});
  for (const std::size_t steps : {std::size_t{7}, std::size_t{16}}) {
    run.wait_for_steps(steps);
    kill(run.ranks().back(), SIGKILL);
  }
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_EQ(losses_in(folder), undisturbed_losses());
}

// Where messages cannot be written, a run goes on and ends as if they could.
TEST(UnreadMessages, ChangeNoRun) {
  const auto folder = empty_run_folder("unread");
  const std::filesystem::path messages = folder.string() + ".messages";
  std::filesystem::remove(messages);
  std::filesystem::create_symlink("/dev/full", messages);
  {
    StartedRun run(folder, {"--restarts", "1"});
    run.wait_for_steps(7);
    kill(run.ranks()[1], SIGKILL);
    EXPECT_EQ(run.wait(), 0);
  }
  EXPECT_EQ(losses_in(folder), undisturbed_losses());
  EXPECT_EQ(StartedRun(folder, {}).wait(), 2) << "the folder of an earlier run";
  EXPECT_EQ(StartedRun(folder, {"--restarts", "many"}).wait(), 2);
  std::filesystem::remove(messages);
}

// A rank that writes to the connection of one that was killed gets this signal.
TEST(ClosedConnection, EndsNoOtherRank) {
  StartedRun run(empty_run_folder("closed-connection"), kLimit);
  run.wait_for_steps(1);
  for (const pid_t rank : run.ranks()) kill(rank, SIGPIPE);
  EXPECT_EQ(run.wait(), 0) << run.messages();
}

// The run goes on with fewer ranks, under a plan that did not exist when it began, and the losses
// are those of before within rounding.
TEST(Elastic, GoesOnWithTheRanksThatAreLeft) {
  const auto folder = empty_run_folder("elastic");
  StartedRun run(folder, {"--restarts", "2", "--elastic", "--planner", SHARDWRIGHT_COMMAND});
  run.wait_for_steps(12);
  kill(run.ranks()[2], SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_THAT(run.messages(), HasSubstr("3 of 4 ranks are left; going on with "));
  const Scenario after = load_scenario((folder / "plan.json").string());
  EXPECT_LE(after.plan.world_size(), 3);
  EXPECT_EQ(after.plan.global_batch, one_rank_plan().global_batch);
  const std::vector<double> losses = losses_in(folder);
  ASSERT_EQ(losses.size(), undisturbed_losses().size());
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step] / undisturbed_losses()[step], 1.0, 1e-5) << step;
}

// A model of two layers, for which no plan uses three ranks. Of the two that are used one is lost:
// with the spare one, two are left.
TEST(Elastic, CountsTheRanksThatAPlanLeavesSpare) {
  const auto folder = empty_run_folder("spare");
  std::ifstream four_layers(run_arguments(folder)[1]);
  auto plan = nlohmann::json::parse(four_layers);
  plan.at("model").at("layers") = 2;
  const std::filesystem::path file = folder.string() + ".plan.json";
  std::ofstream(file) << plan.dump();
  StartedRun run(folder, {"--restarts", "2", "--elastic", "--planner", SHARDWRIGHT_COMMAND}, kSteps,
                 {}, file);
  run.wait_for_steps(7);
  kill(run.ranks()[2], SIGKILL);
  const std::string again = "3 of 4 ranks are left; going on with ";
  while (run.is_running() && run.messages().find(again) == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(load_scenario((folder / "plan-for-3.json").string()).plan.world_size(), 2);
  kill(run.first_ranks(2)[1], SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_THAT(run.messages(), HasSubstr("2 of 4 ranks are left; going on with "));
  EXPECT_EQ(load_scenario((folder / "plan.json").string()).plan.world_size(), 2);
}

// Frozen as soon as it is there: it has not joined the others, which wait for it. It is named, and
// the run goes on without it.
TEST(FrozenStart, IsNamedAndGoneOnWithout) {
  const auto folder = empty_run_folder("frozen-start");
  StartedRun run(
      folder, {"--timeout", "4", "--restarts", "1", "--elastic", "--planner", SHARDWRIGHT_COMMAND});
  kill(run.first_ranks(2)[1], SIGSTOP);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_THAT(run.messages(), HasSubstr("rank 1 on " + host_name() + " did not join in time"));
  EXPECT_THAT(run.messages(), HasSubstr("3 of 4 ranks are left; going on with "));
  EXPECT_EQ(losses_in(folder).size(), static_cast<std::size_t>(kSteps));
}

// What the launcher gives its ranks before it ends them by force, which none of them needs.
constexpr auto kGrace = LaunchLimits{}.grace;

// As by the keys of a terminal or by kill; while the ranks start, or in a step.
class AskedToStop : public testing::TestWithParam<std::tuple<int, std::size_t>> {};

TEST_P(AskedToStop, EndsAtOnceAndLeavesNoProcess) {
  const auto [signal, steps] = GetParam();
  StartedRun run(empty_run_folder("stopped"), {"--restarts", "3"}, 1'000'000'000);
  const std::vector<pid_t> ranks = run.ranks();
  run.wait_for_steps(steps);
  const auto asked = std::chrono::steady_clock::now();
  kill(run.launcher(), signal);
  EXPECT_EQ(run.wait(), 128 + signal) << run.messages();
  EXPECT_LT(std::chrono::steady_clock::now() - asked, kGrace);
  EXPECT_THAT(run.messages(), testing::Not(HasSubstr("restart ")));
  for (const pid_t rank : ranks) EXPECT_NE(kill(rank, 0), 0);
}

INSTANTIATE_TEST_SUITE_P(Signals, AskedToStop,
                         testing::Combine(testing::Values(SIGINT, SIGTERM),
                                          testing::Values(std::size_t{0}, std::size_t{3})));

// The launcher itself, by a signal that it cannot hear.
TEST(KilledLauncher, LeavesNoRank) {
  StartedRun run(empty_run_folder("orphans"), {}, 1'000'000'000);
  const std::vector<pid_t> ranks = run.ranks();
  run.wait_for_steps(3);
  kill(run.launcher(), SIGKILL);
  EXPECT_EQ(run.wait(), -2);
  for (const pid_t rank : ranks) EXPECT_TRUE(ends_soon(rank));
}

TEST(Resume, SaysThatThereIsNoCheckpoint) {
  const auto folder = empty_run_folder("no-checkpoint");
  StartedRun run(folder, {"--resume", "--warmup-steps", "1"}, 2);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.messages(), "no checkpoint in " + (folder / "checkpoints").string() +
                                ": the run begins at its first step\n");
}

// The means that the noise scale is made of are in the checkpoint: the last one, of step 30, is
// taken away. Steps between measurements (every fourth) repeat the one before.
TEST(Resume, GoesOnWithTheNoiseScaleAsIfNothingHadBeen) {
  const auto folder = empty_run_folder("noise");
  EXPECT_EQ(StartedRun(folder, {}).wait(), 0);
  const std::vector<double> losses = losses_in(folder), noise_scales = noise_scales_in(folder);
  ASSERT_GT(noise_scales.size(), static_cast<std::size_t>(kCheckpointEvery));
  std::filesystem::remove_all(folder / "checkpoints/step-00000030");
  EXPECT_EQ(StartedRun(folder, {"--resume"}).wait(), 0);
  EXPECT_EQ(losses_in(folder), losses);
  EXPECT_EQ(noise_scales_in(folder), noise_scales);
}

TEST(Resume, SaysOnceThatNoCheckpointIsWhole) {
  const auto folder = empty_run_folder("damaged");
  EXPECT_EQ(StartedRun(folder, {}).wait(), 0);
  for (const auto& checkpoint : std::filesystem::directory_iterator(folder / "checkpoints"))
    std::filesystem::resize_file(checkpoint.path() / "model.safetensors", 100);
  StartedRun again(folder, {"--resume"});
  EXPECT_EQ(again.wait(), 1);
  const std::string said = again.messages(), expected = "no checkpoint is whole";
  const std::size_t first = said.find(expected);
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_EQ(said.find(expected, first + 1), std::string::npos) << said;
}

// A learning rate beyond reason: the weights overflow within a few steps.
TEST(NotANumber, EndsTheRunOfAllBeforeItGetsIntoACheckpoint) {
  const auto folder = empty_run_folder("nan");
  StartedRun run(folder, {"--lr", "1e12", "--warmup-steps", "4", "--clip", "0"});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.messages(),
              testing::ContainsRegex("rank [0-3] on " + host_name() +
                                     ": step [0-9]+, [a-z_.]+.*: [0-9]+ values of its result.* are "
                                     "not finite; the loss is .*, the gradient norm .*(nan|inf)"));
  expect_whole_checkpoints(folder);
  expect_prometheus_of_last_line(folder);
}

}  // namespace
}  // namespace shardwright::executor
