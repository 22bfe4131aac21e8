// The same seed gives the same loss curve under every plan on GPUs as on the CPU. Ranks are
// processes that share a GPU if there are too few. Skipped without a GPU.
//
// bf16 has 8 significant bits, and ranks add rounded parts in another order: losses agree within 2
// % over 20 steps, the first one, before any update, within 0.5 %.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>

#include "executor/launch/rank_backend.hpp"
#include "tests/executor/launch/started_run.hpp"
#include "tests/executor/runtime/training_fixture.hpp"
#include "tests/scratch_path.hpp"

namespace shardwright::executor {
namespace {

constexpr double kTolerance = 0.02, kFirstTolerance = 0.005;

// Returns the losses of a run of real processes.
std::vector<double> run_processes(const ModelSpec& model, Plan plan, const std::string& device) {
  const std::filesystem::path folder = scratch_path("cuda-plan");
  std::filesystem::create_directories(folder);
  plan.precision = device == "cuda" ? Precision::Bf16 : Precision::Fp32;
  write_scenario(model, plan, folder / "plan.json");
  const TrainingOptions& options = kTwentySteps;
  const std::string command = fmt::format(
      "'{}' '{}' --data '{}' --out '{}' --steps {} --lr {} --warmup-steps {} --device {} "
      "--share-gpu --no-progress > '{}' 2>&1",
      program("SHARDWRIGHT_EXECUTOR", SHARDWRIGHT_EXECUTOR), (folder / "plan.json").string(),
      text_file().string(), (folder / "run").string(), options.steps, options.learning_rate,
      options.warmup_steps, device, (folder / "log").string());
  const int status = std::system(command.c_str());
  EXPECT_EQ(status, 0) << content_of(folder / "log");
  return losses_in(folder / "run");
}

const std::vector<double>& losses_of_one_gpu(const ModelSpec& model) {
  static std::map<std::string, std::vector<double>> known;
  std::vector<double>& losses = known[model.name];
  if (losses.empty()) losses = run_processes(model, one_rank_plan(), "cuda");
  return losses;
}

void expect_same_curve(const std::vector<double>& losses, const std::vector<double>& expected) {
  ASSERT_EQ(losses.size(), 20U);
  ASSERT_EQ(expected.size(), 20U);
  EXPECT_NEAR(losses.front() / expected.front(), 1.0, kFirstTolerance);
  for (std::size_t step = 0; step < losses.size(); ++step)
    EXPECT_NEAR(losses[step] / expected[step], 1.0, kTolerance) << "step " << step;
}

class CudaPlan : public testing::TestWithParam<PlanCase> {
 protected:
  void SetUp() override {
    std::string why;
    if (visible_gpus(why) == 0) GTEST_SKIP() << "no CUDA device: " << why;
  }
};

TEST_P(CudaPlan, LossesAreThoseOfOneRank) {
  Plan plan = one_rank_plan();
  GetParam().change(plan);
  const ModelSpec model = GetParam().model();
  if (!runs_on_gpus(GetParam())) GTEST_SKIP() << "it runs on CPUs alone";
  expect_same_curve(run_processes(model, plan, "cuda"), losses_of_one_gpu(model));
}

INSTANTIATE_TEST_SUITE_P(Plans, CudaPlan, testing::ValuesIn(plan_cases()),
                         [](const auto& plan) { return plan.param.name; });

TEST(CudaPlanOfOneRank, FollowsTheCpu) {
  std::string why;
  if (visible_gpus(why) == 0) GTEST_SKIP() << "no CUDA device: " << why;
  for (const ModelSpec& model : {small_llama(), small_gpt2()})
    expect_same_curve(losses_of_one_gpu(model), run_processes(model, one_rank_plan(), "cpu"));
}

// Without a GPU, a run that requests one ends with a message before any rank starts.
TEST(CudaDevice, IsNamedIfItIsMissing) {
  std::string why;
  if (visible_gpus(why) > 0) GTEST_SKIP() << "there is a GPU";
  const std::filesystem::path log = scratch_path("no-gpu.log");
  const std::filesystem::path file = scratch_path("no-gpu.json");
  Plan plan = one_rank_plan();
  plan.precision = Precision::Bf16;
  write_scenario(small_llama(), plan, file);
  const std::string command =
      fmt::format("'{}' '{}' --data '{}' --out '{}' --steps 1 --device cuda > '{}' 2>&1",
                  program("SHARDWRIGHT_EXECUTOR", SHARDWRIGHT_EXECUTOR), file.string(),
                  text_file().string(), scratch_path("no-gpu").string(), log.string());
  const int status = std::system(command.c_str());
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_NE(content_of(log).find("no CUDA device"), std::string::npos) << content_of(log);
}

}  // namespace
}  // namespace shardwright::executor
