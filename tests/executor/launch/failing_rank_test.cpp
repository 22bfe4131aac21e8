// Runs of real processes, of which one is killed or frozen at a random time.
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "executor/data/counter_random.hpp"
#include "tests/executor/runtime/training_fixture.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr int kRanks = 4, kSteps = 30;

std::filesystem::path plan_file() {
  Scenario scenario;
  scenario.model = small_llama();
  scenario.cluster = load_cluster("h100-pcie-server");
  scenario.stack = load_stack("shardwright");
  scenario.plan = one_rank_plan();
  scenario.plan.dp = scenario.plan.pp = 2;
  scenario.plan.zero_stage = 1;
  auto file = std::filesystem::path(testing::TempDir()) / "shardwright-failing-plan.json";
  std::ofstream(file) << to_json(scenario).dump();
  return file;
}

std::filesystem::path text_file() {
  auto file = std::filesystem::path(testing::TempDir()) / "shardwright-failing.txt";
  std::ofstream stream(file);
  for (int i = 0; i < 2000; ++i) stream << "token " << i * i % 97 << ' ';
  return file;
}

// The executor with its ranks.
class StartedRun {
 public:
  StartedRun(const std::filesystem::path& out, std::vector<std::string> more) {
    std::vector<std::string> arguments = {SHARDWRIGHT_EXECUTOR,
                                          plan_file(),
                                          "--data",
                                          text_file(),
                                          "--out",
                                          out,
                                          "--steps",
                                          std::to_string(kSteps),
                                          "--checkpoint-every",
                                          "5",
                                          "--timeout",
                                          "2"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    std::vector<char*> pointers;
    pointers.reserve(arguments.size() + 1);
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    EXPECT_EQ(
        posix_spawn(&launcher_, SHARDWRIGHT_EXECUTOR, nullptr, nullptr, pointers.data(), environ),
        0);
  }

  // The ranks' processes, once all have been started.
  std::vector<pid_t> ranks() const {
    std::vector<pid_t> found;
    const auto deadline = Clock::now() + 10s;
    while (found.size() < kRanks && Clock::now() < deadline) {
      found.clear();
      std::ifstream children("/proc/" + std::to_string(launcher_) + "/task/" +
                             std::to_string(launcher_) + "/children");
      for (pid_t child = 0; children >> child;) found.push_back(child);
      std::this_thread::sleep_for(2ms);
    }
    return found;
  }

  // Exit status; -1 if it does not end within a minute.
  int wait() const {
    const auto deadline = Clock::now() + 60s;
    int status = 0;
    while (waitpid(launcher_, &status, WNOHANG) == 0) {
      if (Clock::now() > deadline) return -1;
      std::this_thread::sleep_for(5ms);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
  }

 private:
  pid_t launcher_ = 0;
};

std::filesystem::path empty_folder() {
  auto folder = std::filesystem::path(testing::TempDir()) / "shardwright-failing";
  std::filesystem::remove_all(folder);
  return folder;
}

std::vector<double> losses_in(const std::filesystem::path& folder) {
  std::ifstream file(folder / "metrics.jsonl");
  std::vector<double> losses;
  for (std::string line; std::getline(file, line);) {
    const nlohmann::json read = nlohmann::json::parse(line, nullptr, false);
    if (read.is_object()) losses.push_back(read.at("loss"));  // unless it is being written
  }
  return losses;
}

bool is_running(pid_t process) {
  return kill(process, 0) == 0;
}

class FailingRank : public testing::TestWithParam<int> {};

// One rank is hit a random time after the start; the run ends by itself and leaves no process.
TEST_P(FailingRank, EndsTheRunOfAll) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    StartedRun run(empty_folder(), {});
    const std::vector<pid_t> ranks = run.ranks();
    ASSERT_EQ(ranks.size(), static_cast<std::size_t>(kRanks));
    const std::uint64_t random = random_bits(static_cast<std::uint64_t>(GetParam()), i);
    std::this_thread::sleep_for(std::chrono::milliseconds(random % 1500));
    kill(ranks[random % kRanks], GetParam());
    EXPECT_GT(run.wait(), 0);
    for (const pid_t rank : ranks) EXPECT_FALSE(is_running(rank));
  }
}

INSTANTIATE_TEST_SUITE_P(Signals, FailingRank, testing::Values(SIGKILL, SIGSTOP),
                         [](const auto& hit) {
                           return hit.param == SIGKILL ? "Killed" : "Frozen";
                         });

// The losses of a run that was broken twice are those of one that was not.
TEST(Restart, BringsBackTheLossesFromTheLastCheckpoint) {
  const auto folder = empty_folder();
  ASSERT_EQ(StartedRun(folder, {}).wait(), 0);
  const std::vector<double> expected = losses_in(folder);
  ASSERT_EQ(expected.size(), static_cast<std::size_t>(kSteps));
  const auto again = empty_folder();
  StartedRun run(again, {"--restarts", "2"});
  for (const std::size_t lines : {std::size_t{7}, std::size_t{16}}) {
    const auto deadline = Clock::now() + 30s;
    while (losses_in(again).size() < lines && Clock::now() < deadline)
      std::this_thread::sleep_for(2ms);
    kill(run.ranks().back(), SIGKILL);
  }
  EXPECT_EQ(run.wait(), 0);
  EXPECT_EQ(losses_in(again), expected);
}

}  // namespace
}  // namespace shardwright::executor
