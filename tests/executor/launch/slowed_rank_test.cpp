// Runs of real processes, one of which becomes slower in mid-run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "core/program/shard_shape.hpp"
#include "core/spec/pools.hpp"
#include "core/spec/scenario.hpp"
#include "executor/comm/socket.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

constexpr int kTrained = 110;
constexpr std::size_t kSlowed = 1;

ModelSpec wider_llama() {
  ModelSpec model = small_llama();
  model.layers = 6;
  model.hidden = 96;
  model.attention.head_dim = 24;
  model.mlp.ffn_hidden = 192;
  return model;
}

Plan plan_of_shape(std::int64_t dp, std::int64_t pp) {
  Plan plan = one_rank_plan();
  plan.dp = dp;
  plan.pp = pp;
  plan.global_batch = 16;
  return plan;
}

std::filesystem::path file_of(const Plan& plan) {
  auto file = scratch_path("to-balance.json");
  write_scenario(wider_llama(), plan, file);
  return file;
}

// No checkpoint but those that the run itself asks for.
const std::vector<std::string> kNoCheckpoints = {"--checkpoint-every", "1000"};

const std::vector<double>& losses_of_one_rank() {
  static const std::vector<double> losses = [] {
    const auto folder = scratch_path("one-rank");
    StartedRun run(folder, kNoCheckpoints, kTrained, {}, file_of(plan_of_shape(1, 1)));
    EXPECT_EQ(run.wait(), 0) << run.messages();
    return losses_in(folder);
  }();
  return losses;
}

// The microbatches of each replica, or the layers of each stage.
std::vector<std::int64_t> shares_in(const std::filesystem::path& file) {
  const Scenario scenario = load_scenario(file.string());
  const Plan& plan = scenario.plan;
  std::vector<std::int64_t> shares;
  if (plan.pp > 1) {
    for (const LayerRange& range : split_layers(scenario.model, plan))
      shares.push_back(range.count);
  } else {
    for (std::int64_t replica = 0; replica < plan.dp; ++replica)
      shares.push_back(plan_of_part(plan, part_of_replica(plan, replica)).microbatches());
  }
  return shares;
}

// The programs of the steps, by their checksums.
std::vector<std::string> programs_in(const std::filesystem::path& folder) {
  std::ifstream file(folder / "metrics.jsonl");
  std::vector<std::string> programs;
  for (std::string line; std::getline(file, line);)
    programs.push_back(nlohmann::json::parse(line).at("program"));
  return programs;
}

// The median time of steps over that of a microbatch on rank 0, which runs so many of them: unlike
// seconds, it does not depend on what else the machine does.
double median_in_microbatches(const std::filesystem::path& folder, std::size_t first,
                              std::size_t end, std::int64_t microbatches) {
  const std::vector<double> step = figures_in(folder, "step_s");
  const std::vector<double> forward = figures_in(folder, "forward_s");
  const std::vector<double> backward = figures_in(folder, "backward_s");
  std::vector<double> ratios;
  for (std::size_t i = first; i < end; ++i)
    ratios.push_back(step[i] / (forward[i] + backward[i]) * static_cast<double>(microbatches));
  const auto middle = ratios.begin() + static_cast<std::ptrdiff_t>(ratios.size() / 2);
  std::nth_element(ratios.begin(), middle, ratios.end());
  return *middle;
}

// Lets the rank run for short times only, until `until` holds or the run ends. On a busy machine it
// is then no slower than one that waits for a core, so that the times between are long.
void slow_down(StartedRun& run, const std::function<bool()>& until) {
  while (run.is_running() && !until()) {
    const pid_t rank = run.first_ranks(kSlowed + 1).at(kSlowed);
    kill(rank, SIGSTOP);
    std::this_thread::sleep_for(50ms);
    kill(rank, SIGCONT);
    std::this_thread::sleep_for(2ms);
  }
}

class SlowedRank : public testing::TestWithParam<Plan> {};

// The rank is named and work moves away from it. Of replicas, steps get shorter while it stays
// slow, and it gets its work back when it is fast again. The losses are those of one rank.
TEST_P(SlowedRank, GetsLessWorkUntilItIsFastAgain) {
  if (std::getenv("SHARDWRIGHT_SLOWED_RANKS") == nullptr)
    GTEST_SKIP() << "takes a minute of an idle machine: ctest -R SlowedRanks";
  const std::filesystem::path plan = file_of(GetParam()), folder = scratch_path("slowed");
  std::vector<std::string> options = {"--rebalance", "--planner", SHARDWRIGHT_COMMAND};
  options.insert(options.end(), kNoCheckpoints.begin(), kNoCheckpoints.end());
  StartedRun run(folder, options, kTrained, {}, plan);
  run.wait_for_steps(15);
  const std::size_t slow_from = run.steps_done() + 1;
  std::size_t asked = 0;
  // For some steps of the ranks that continue, most of all those with which stages are compared.
  constexpr std::size_t kFurther = 18, kMost = 80;
  slow_down(run, [&] {
    const std::size_t done = run.steps_done();
    if (asked == 0 && run.messages().find("continuing with ") != std::string::npos) asked = done;
    return done >= (asked == 0 ? kMost : asked + kFurther);
  });
  const std::size_t slow_until = run.steps_done();
  EXPECT_EQ(run.wait(), 0) << run.messages();

  const std::string name = "rank " + std::to_string(kSlowed) + " on " + host_name();
  EXPECT_THAT(run.messages(), HasSubstr(name + " computes "));
  EXPECT_THAT(run.messages(), HasSubstr("the planner expects steps that are "));
  const std::vector<std::int64_t> shares = shares_in(folder / "plan-balanced-1.json");
  EXPECT_LT(shares.at(kSlowed), shares.at(1 - kSlowed));
  const std::vector<std::string> programs = programs_in(folder);
  const auto changed = static_cast<std::size_t>(
      std::find_if(programs.begin(), programs.end(),
                   [&](const std::string& each) { return each != programs.front(); }) -
      programs.begin());
  const auto next = static_cast<std::size_t>(
      std::find_if(programs.begin() + static_cast<std::ptrdiff_t>(changed), programs.end(),
                   [&](const std::string& each) { return each != programs.at(changed); }) -
      programs.begin());
  const std::size_t balanced_until = std::min(next, slow_until);
  ASSERT_LT(changed + 4, balanced_until) << run.messages();
  // A stage that is stopped also holds up each message, however few layers it has, and is compared
  // with its own first steps, so that it is known less exactly when it is fast again.
  if (GetParam().dp > 1) {
    const double before =
        median_in_microbatches(folder, slow_from, changed, shares_in(plan).front());
    EXPECT_LT(median_in_microbatches(folder, changed + 2, balanced_until, shares.front()),
              0.8 * before);
    EXPECT_THAT(run.messages(), HasSubstr(name + " computes as fast as the others again"));
    EXPECT_EQ(load_scenario((folder / "plan.json").string()), load_scenario(plan.string()));
  }

  const std::vector<double> losses = losses_in(folder), &expected = losses_of_one_rank();
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step] / expected[step], 1.0, 1e-5) << step;
}

INSTANTIATE_TEST_SUITE_P(Plans, SlowedRank,
                         testing::Values(plan_of_shape(2, 1), plan_of_shape(1, 2)),
                         [](const auto& plan) {
                           return plan.param.pp > 1 ? "Stages" : "Replicas";
                         });

}  // namespace
}  // namespace shardwright::executor
