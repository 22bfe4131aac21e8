// Runs of real processes, one of which is killed or frozen at a random time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>
#include <tuple>

#include "core/spec/scenario.hpp"
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "executor/comm/socket.hpp"
#include "executor/data/hash.hpp"
#include "executor/launch/local_launcher.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/process_end.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

using testing::HasSubstr;

// The environment variable SHARDWRIGHT_HITS asks for more.
std::uint64_t hits_of_each_kind() {
  const char* asked = std::getenv("SHARDWRIGHT_HITS");
  return asked == nullptr ? 2 : std::strtoull(asked, nullptr, 10);
}

// The figures for node exporter are as new as the metrics.
void expect_prometheus_of_last_line(const std::filesystem::path& run) {
  std::ifstream file(run / "metrics.jsonl");
  std::string last;
  for (std::string line; std::getline(file, line) && !file.eof();) last = line;
  if (last.empty()) return;
  const auto step = nlohmann::json::parse(last).at("step").get<std::int64_t>();
  EXPECT_THAT(content_of(run / "metrics.prom"),
              HasSubstr("\nshardwright_step{run=\"" + run.filename().string() + "\"} " +
                        std::to_string(step) + "\n"));
}

class FailingRank : public testing::TestWithParam<int> {
 protected:
  static std::vector<std::string> with(std::vector<std::string> more) {
    more.insert(more.begin(), kLimit.begin(), kLimit.end());
    return more;
  }

  // Hits a rank after a random step or while the ranks start; returns its number.
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

// Wherever it is hit, the run ends by itself, names the rank, leaves no process and only intact
// checkpoints, and resumes to the losses of an undisturbed run.
TEST_P(FailingRank, EndsTheRunAndLosesNothingBeyondTheLastCheckpoint) {
  ASSERT_EQ(undisturbed_losses().size(), static_cast<std::size_t>(kSteps));
  for (std::uint64_t number = 0; number < hits_of_each_kind(); ++number) {
    const auto folder = scratch_path("hit");
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
    expect_intact_checkpoints(folder);
    expect_prometheus_of_last_line(folder);
    // The run may have been hit before its first checkpoint.
    StartedRun again(folder, with({"--resume", "--force"}));
    EXPECT_EQ(again.wait(), 0) << again.messages();
    EXPECT_EQ(losses_in(folder), undisturbed_losses());
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, FailingRank, testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& hit) {
                           return hit.param == SIGKILL ? "Killed" : "Frozen";
                         });

void expect_undisturbed_within_rounding(const std::filesystem::path& folder) {
  const std::vector<double> losses = losses_in(folder);
  ASSERT_EQ(losses.size(), undisturbed_losses().size());
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step] / undisturbed_losses()[step], 1.0, 1e-5) << step;
}

// A run that was hit twice has the losses of an undisturbed one.
TEST(Restart, RepeatsTheLossesFromTheLastCheckpoint) {
  const auto folder = scratch_path("restart");
  StartedRun run(folder, {"--restarts", "2"});
  for (const std::size_t steps : {std::size_t{7}, std::size_t{16}}) {
    run.wait_for_steps(steps);
    kill(run.ranks().back(), SIGKILL);
  }
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_EQ(losses_in(folder), undisturbed_losses());
  EXPECT_THAT(run.messages(), HasSubstr("restart 1 of 2\n")) << "after a checkpoint, at once";
}

// With this learning rate the weights overflow before the first checkpoint, each time.
TEST(Restart, WaitsLongerEachTimeThatNothingWasGained) {
  const auto began = std::chrono::steady_clock::now();
  StartedRun run(scratch_path("futile"), {"--restarts", "2", "--checkpoint-every", "1000", "--lr",
                                          "1e12", "--warmup-steps", "4", "--clip", "0"});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_GT(std::chrono::steady_clock::now() - began, std::chrono::seconds(1 + 2));
  EXPECT_THAT(run.messages(), HasSubstr("restart 1 of 2 in 1 s: there is no new checkpoint\n"));
  EXPECT_THAT(run.messages(), HasSubstr("restart 2 of 2 in 2 s: there is no new checkpoint\n"));
}

// Two replicas and two parameter servers.
std::filesystem::path served_plan_file(ServerUpdates updates) {
  Plan plan = one_rank_plan();
  plan.dp = 2;
  plan.replicas.sync = ReplicaSync::ParameterServer;
  plan.replicas.servers = 2;
  plan.replicas.server_updates = updates;
  plan.replicas.staleness = updates == ServerUpdates::BoundedStaleness ? 2 : 0;
  auto file = scratch_path("served.json");
  write_scenario(small_llama(), plan, file);
  return file;
}

// Whether a replica or a server is hit, the run goes on from the last checkpoint. Two addends have
// the same sum in any order.
TEST(Restart, OfReplicasAndParameterServersLosesNothing) {
  const std::filesystem::path plan = served_plan_file(ServerUpdates::Synchronous);
  const auto undisturbed = scratch_path("served");
  StartedRun alone(undisturbed, kLimit, kSteps, {}, plan);
  EXPECT_EQ(alone.wait(), 0) << alone.messages();
  ASSERT_EQ(losses_in(undisturbed).size(), static_cast<std::size_t>(kSteps));
  const auto folder = scratch_path("served-restart");
  StartedRun run(folder, {"--restarts", "2"}, kSteps, {}, plan);
  run.wait_for_steps(7);
  kill(run.ranks()[3], SIGKILL);
  run.wait_for_steps(16);
  kill(run.ranks()[1], SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_THAT(run.messages(), HasSubstr("rank 3 on " + host_name()));
  EXPECT_THAT(run.messages(), HasSubstr("parameter server 1, after "));
  EXPECT_EQ(losses_in(folder), losses_in(undisturbed));
  expect_intact_checkpoints(folder);
}

// The states of parameter servers go on under an all-reduce: the losses agree within rounding.
TEST(Restart, UnderAnAllReduceContinuesParameterServers) {
  const auto folder = scratch_path("served-then-not");
  StartedRun first(folder, {"--stop-after", "15"}, kSteps, {},
                   served_plan_file(ServerUpdates::Synchronous));
  EXPECT_EQ(first.wait(), 0) << first.messages();
  StartedRun second(folder, {"--resume", "--force"});
  EXPECT_EQ(second.wait(), 0) << second.messages();
  expect_undisturbed_within_rounding(folder);
}

// Replicas that push without an agreement report how stale their updates were.
TEST(StaleUpdates, AreReportedWithinTheirBound) {
  const auto folder = scratch_path("stale");
  StartedRun run(folder, kLimit, kSteps, {}, served_plan_file(ServerUpdates::BoundedStaleness));
  EXPECT_EQ(run.wait(), 0) << run.messages();
  const std::vector<double> staleness = figures_in(folder, "staleness_updates");
  const std::vector<double> ahead = figures_in(folder, "steps_ahead");
  ASSERT_EQ(staleness.size(), static_cast<std::size_t>(kSteps));
  ASSERT_EQ(ahead.size(), static_cast<std::size_t>(kSteps));
  EXPECT_LE(*std::max_element(ahead.begin(), ahead.end()), 2.0);
  EXPECT_LE(*std::max_element(staleness.begin(), staleness.end()), 2.0 * 2.0 + 1.0);
}

// The disk is full from the tenth step on: for the files of rank 0, whose size is limited then.
TEST(UnwrittenTelemetry, IsOneWarningAndChangesNoRun) {
  const auto folder = scratch_path("unwritten");
  StartedRun run(folder, {"--checkpoint-every", "0"});
  run.wait_for_steps(10);
  // Less than the metrics have by then, and more than messages.
  const rlimit full{1'000, RLIM_INFINITY};
  EXPECT_EQ(prlimit(run.ranks().front(), RLIMIT_FSIZE, &full, nullptr), 0);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.messages(), (folder / "metrics.jsonl").string() +
                                ": cannot be written: File too large; training goes on without "
                                "what cannot be written, and tries again\n");
  const std::vector<double> losses = losses_in(folder);
  EXPECT_GE(losses.size(), 10U);
  EXPECT_LT(losses.size(), static_cast<std::size_t>(kSteps));
  EXPECT_TRUE(std::equal(losses.begin(), losses.end(), undisturbed_losses().begin()));
}

// The launcher asks for no more open files than it may have.
TEST(OpenFiles, AreAsManyAsTheRanksNeedOrTheRunIsRefused) {
  rlimit before{}, after{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit few{40, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  raise_file_limit(10);
  getrlimit(RLIMIT_NOFILE, &after);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_GE(after.rlim_cur, 100U);
  EXPECT_THAT(thrown_by([] { raise_file_limit(1'000'000'000'000); }),
              HasSubstr("open files (ulimit -Hn): found "));
}

// A run whose messages cannot be written ends normally.
TEST(UnreadMessages, ChangeNoRun) {
  const auto folder = scratch_path("unread");
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

// A rank that writes to the connection of a killed one gets this signal.
TEST(ClosedConnection, EndsNoOtherRank) {
  StartedRun run(scratch_path("closed-connection"), kLimit);
  run.wait_for_steps(1);
  for (const pid_t rank : run.ranks()) kill(rank, SIGPIPE);
  EXPECT_EQ(run.wait(), 0) << run.messages();
}

// The run continues with fewer ranks under a new plan; the losses agree within rounding.
TEST(Elastic, ContinuesWithTheRemainingRanks) {
  const auto folder = scratch_path("elastic");
  StartedRun run(folder, {"--restarts", "2", "--elastic", "--planner", SHARDWRIGHT_COMMAND});
  run.wait_for_steps(12);
  kill(run.ranks()[2], SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_THAT(run.messages(), HasSubstr("3 of 4 ranks are left; continuing with "));
  const Scenario after = load_scenario((folder / "plan.json").string());
  EXPECT_LE(after.plan.world_size(), 3);
  EXPECT_EQ(after.plan.global_batch, one_rank_plan().global_batch);
  expect_undisturbed_within_rounding(folder);
}

// A rank is lost and comes back: the run goes on under the plan that it began with.
TEST(Elastic, GrowsAgainWhenRanksAreBack) {
  const auto folder = scratch_path("elastic-grown");
  const int steps = 100;
  StartedRun run(folder,
                 {"--restarts", "1", "--elastic", "--planner", SHARDWRIGHT_COMMAND,
                  "--checkpoint-every", "10"},
                 steps);
  run.wait_for_steps(12);
  kill(run.launcher(), SIGUSR2);
  kill(run.ranks()[2], SIGKILL);
  const auto program = [&] { return load_scenario((folder / "plan.json").string()).plan; };
  while (run.is_running() && program().world_size() == kRanks)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LT(program().world_size(), kRanks);
  run.wait_for_steps(30);
  kill(run.launcher(), SIGUSR2);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_THAT(run.messages(), testing::StartsWith("SIGUSR2 has no effect: no rank is left out\n"));
  EXPECT_THAT(run.messages(), HasSubstr("all 4 ranks are back; continuing with "));
  EXPECT_EQ(program().world_size(), kRanks);
  EXPECT_EQ(figures_in(folder, "step").size(), static_cast<std::size_t>(steps));
  const auto undisturbed = scratch_path("elastic-alone");
  StartedRun alone(undisturbed, {"--checkpoint-every", "0"}, steps);
  EXPECT_EQ(alone.wait(), 0);
  const std::vector<double> losses = losses_in(folder), expected = losses_in(undisturbed);
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step] / expected[step], 1.0, 1e-4) << step;
}

// No plan of this two-layer model uses three ranks. One of the two used ranks is lost; with the
// spare one, two remain.
TEST(Elastic, CountsTheRanksThatAPlanLeavesSpare) {
  const auto folder = scratch_path("spare");
  std::ifstream four_layers(run_arguments(folder)[1]);
  auto plan = nlohmann::json::parse(four_layers);
  plan.at("model").at("layers") = 2;
  const std::filesystem::path file = folder.string() + ".plan.json";
  std::ofstream(file) << plan.dump();
  StartedRun run(folder, {"--restarts", "2", "--elastic", "--planner", SHARDWRIGHT_COMMAND}, kSteps,
                 {}, file);
  run.wait_for_steps(7);
  kill(run.ranks()[2], SIGKILL);
  const std::string again = "3 of 4 ranks are left; continuing with ";
  while (run.is_running() && run.messages().find(again) == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(load_scenario((folder / "plan-for-3.json").string()).plan.world_size(), 2);
  kill(run.first_ranks(2)[1], SIGKILL);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_THAT(run.messages(), HasSubstr("2 of 4 ranks are left; continuing with "));
  EXPECT_EQ(load_scenario((folder / "plan.json").string()).plan.world_size(), 2);
}

// The rank is frozen before it joins the others, which wait for it. It is named, and the run
// continues without it.
TEST(FrozenStart, IsNamedAndLeftOut) {
  const auto folder = scratch_path("frozen-start");
  StartedRun run(
      folder, {"--timeout", "4", "--restarts", "1", "--elastic", "--planner", SHARDWRIGHT_COMMAND});
  kill(run.first_ranks(2)[1], SIGSTOP);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  EXPECT_THAT(run.messages(), HasSubstr("rank 1 on " + host_name() + " did not join in time"));
  EXPECT_THAT(run.messages(), HasSubstr("3 of 4 ranks are left; continuing with "));
  EXPECT_EQ(losses_in(folder).size(), static_cast<std::size_t>(kSteps));
}

// The time that the launcher gives its ranks before it kills them, which none of them needs.
constexpr auto kGrace = LaunchLimits{}.grace;

// Signals from a terminal or from kill, while the ranks start or during a step.
class AskedToStop : public testing::TestWithParam<std::tuple<int, std::size_t>> {};

TEST_P(AskedToStop, EndsAtOnceAndLeavesNoProcess) {
  const auto [signal, steps] = GetParam();
  StartedRun run(scratch_path("stopped"), {"--restarts", "3"}, 1'000'000'000);
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

// The launcher itself is killed by a signal that it cannot handle.
TEST(KilledLauncher, LeavesNoRank) {
  StartedRun run(scratch_path("orphans"), {}, 1'000'000'000);
  const std::vector<pid_t> ranks = run.ranks();
  run.wait_for_steps(3);
  kill(run.launcher(), SIGKILL);
  EXPECT_EQ(run.wait(), -2);
  for (const pid_t rank : ranks) EXPECT_TRUE(ends_soon(rank));
}

// Lines of the launcher and of each rank, and nothing without the option.
TEST(Verbose, LogsWhatTheProcessesDo) {
  StartedRun run(scratch_path("verbose"), {"--verbose", "--warmup-steps", "1"}, 2);
  EXPECT_EQ(run.wait(), 0) << run.messages();
  const std::string host = " on " + host_name() + R"(\] )";
  EXPECT_THAT(run.messages(),
              testing::ContainsRegex(R"(debug \[launcher)" + host + "started rank 3"));
  for (int rank = 0; rank < kRanks; ++rank)
    EXPECT_THAT(run.messages(), testing::ContainsRegex(R"(debug \[rank )" + std::to_string(rank) +
                                                       host + "the inputs of all 4 ranks agree"));
  EXPECT_THAT(run.messages(),
              testing::ContainsRegex(R"(debug \[rank 0)" + host + "step 1: loss [0-9.]+, "));
  StartedRun quiet(scratch_path("quiet"), {"--warmup-steps", "1"}, 2);
  EXPECT_EQ(quiet.wait(), 0);
  EXPECT_EQ(quiet.messages(), "");
}

TEST(Resume, ReportsThatThereIsNoCheckpoint) {
  const auto folder = scratch_path("no-checkpoint");
  StartedRun run(folder, {"--resume", "--warmup-steps", "1"}, 2);
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(run.messages(),
            "no checkpoint in " + (folder / "checkpoints").string() + ": starting at step 0\n");
}

// The running means of the noise scale are in the checkpoint. The last checkpoint, of step 30, is
// removed. Steps between measurements (every fourth) repeat the previous one.
TEST(Resume, ContinuesTheNoiseScaleExactly) {
  const auto folder = scratch_path("noise");
  EXPECT_EQ(StartedRun(folder, {}).wait(), 0);
  const char* const noise = "gradient_noise_scale_tokens";
  const std::vector<double> losses = losses_in(folder), noise_scales = figures_in(folder, noise);
  ASSERT_GT(noise_scales.size(), static_cast<std::size_t>(kCheckpointEvery));
  std::filesystem::remove_all(folder / "checkpoints/step-00000030");
  EXPECT_EQ(StartedRun(folder, {"--resume"}).wait(), 0);
  EXPECT_EQ(losses_in(folder), losses);
  EXPECT_EQ(figures_in(folder, noise), noise_scales);
}

TEST(Resume, NamesOtherHyperparameters) {
  const auto folder = scratch_path("changed");
  EXPECT_EQ(StartedRun(folder, {"--stop-after", "10"}).wait(), 0);
  StartedRun same(folder, {"--resume", "--stop-after", "15"});
  EXPECT_EQ(same.wait(), 0);
  EXPECT_EQ(same.messages(), "");
  StartedRun other(folder, {"--resume", "--lr", "0.001", "--clip", "2"}, 20);
  EXPECT_EQ(other.wait(), 0);
  EXPECT_EQ(other.messages(),
            "from step 15 on the run has other hyperparameters: --clip 2 in place of 1, --lr 0.001 "
            "in place of 0.0003, --steps 20 in place of 30\n");
}

TEST(Resume, ReportsOnceThatNoCheckpointIsIntact) {
  const auto folder = scratch_path("damaged");
  EXPECT_EQ(StartedRun(folder, {}).wait(), 0);
  for (const auto& checkpoint : std::filesystem::directory_iterator(folder / "checkpoints"))
    std::filesystem::resize_file(checkpoint.path() / "model.safetensors", 100);
  StartedRun again(folder, {"--resume"});
  EXPECT_EQ(again.wait(), 1);
  const std::string reported = again.messages(), expected = "no checkpoint is intact";
  const std::size_t first = reported.find(expected);
  ASSERT_NE(first, std::string::npos) << reported;
  EXPECT_EQ(reported.find(expected, first + 1), std::string::npos) << reported;
}

// With this learning rate the weights overflow within a few steps.
TEST(NotANumber, EndsTheRunBeforeItGetsIntoACheckpoint) {
  const auto folder = scratch_path("nan");
  StartedRun run(folder, {"--lr", "1e12", "--warmup-steps", "4", "--clip", "0"});
  EXPECT_EQ(run.wait(), 1);
  EXPECT_THAT(run.messages(),
              testing::ContainsRegex("rank [0-3] on " + host_name() +
                                     ": step [0-9]+, [a-z_.]+.*: [0-9]+ values of its result.* are "
                                     "not finite; the loss is .*, the gradient norm .*(nan|inf)"));
  expect_intact_checkpoints(folder);
  expect_prometheus_of_last_line(folder);
}

}  // namespace
}  // namespace shardwright::executor
