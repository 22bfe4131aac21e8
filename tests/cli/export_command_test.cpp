// shardwright export: streams, files and exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ExportCommand : public testing::Test {
 protected:
  std::string plan_with(const std::string& more) const {
    const CommandResult result = run_command(
        "simulate --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 2 --out - --seq-len 8192 "
        "--global-batch 32 " +
        more);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return folder_.write("plan.json", result.output);
  }

  ScratchFolder folder_;
};

TEST_F(ExportCommand, PrintsTheFormatAloneOnStandardOutput) {
  const std::string plan = plan_with("--pp 2");
  const CommandResult megatron = run_command("export " + plan + " --format megatron");
  EXPECT_EQ(megatron.exit_code, 0);
  EXPECT_THAT(megatron.output, HasSubstr("\nMEGATRON_ARGS=(\n"));
  EXPECT_THAT(megatron.errors, StartsWith("note: "));
  const CommandResult deepspeed = run_command("export " + plan + " --format deepspeed");
  EXPECT_EQ(nlohmann::json::parse(deepspeed.output)["train_batch_size"], 32);
  EXPECT_THAT(deepspeed.errors, HasSubstr("\nlaunch: torchrun --nnodes 2 --nproc-per-node 8"));
}

TEST_F(ExportCommand, WritesFilesAndOverwritesOnlyIfForced) {
  const std::string plan = plan_with(""), file = folder_.file("args.sh");
  const std::string line = "export " + plan + " --format megatron --out " + file;
  const CommandResult first = run_command(line);
  EXPECT_EQ(first.exit_code, 0);
  EXPECT_THAT(first.output, IsEmpty());
  EXPECT_THAT(folder_.read("args.sh"), HasSubstr("MEGATRON_ARGS=("));
  EXPECT_EQ(run_command(line).exit_code, 2);
  EXPECT_EQ(run_command(line + " --force").exit_code, 0);
}

TEST_F(ExportCommand, TakesAPlanOrARun) {
  const std::string plan = plan_with("");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "PLAN: found missing; expected a plan file, or --weights with a run"},
      {plan, "--format: found missing"},
      {"--weights run", "--out: found missing; expected a folder for the model"},
      {plan + " --weights run --out model", "PLAN: found given"},
      {"--weights run --out model --format megatron", "--format: found given"},
      {plan + " --format megatron --dtype fp32", "--dtype: found given; expected --weights"},
      {plan + " --format megatron --shard-bytes 9", "--shard-bytes: found given"},
      {"--weights " + folder_.file("no-run") + " --out " + folder_.file("model"),
       "no-run, which has no plan.json"},
      {"--weights run --out model --shard-bytes 0", "--shard-bytes: found 0; expected"}};
  for (const auto& [line, problem] : cases) {
    const CommandResult result = run_command("export " + line);
    EXPECT_EQ(result.exit_code, 2) << line;
    EXPECT_THAT(result.errors, HasSubstr(problem)) << line;
  }
}

// Bash reads one word for each flag and each value from the file.
TEST_F(ExportCommand, BashReadsTheArguments) {
  const std::string plan = plan_with("--pp 2 --set stage_layers=[15,17]");
  const std::string file = folder_.file("args.sh"), words = folder_.file("words");
  ASSERT_EQ(run_command("export " + plan + " --format megatron --out " + file).exit_code, 0);
  const std::string script = folder_.write(
      "script.sh",
      ". " + file + "\nfor word in \"${MEGATRON_ARGS[@]}\"; do echo \"$word\"; done >" + words);
  ASSERT_EQ(std::system(("bash " + script).c_str()), 0);
  EXPECT_THAT(folder_.read("words"), HasSubstr("--pipeline-model-parallel-layout\nEt*15|t*17L\n"));
}

TEST_F(ExportCommand, PlansThatAFormatCannotExpressExitWith2AndWriteNothing) {
  const std::string plan = plan_with("--pp 2 --schedule zb-h1");
  const CommandResult result = run_command("export " + plan + " --format megatron");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.output, IsEmpty());
  EXPECT_THAT(result.errors, HasSubstr("plan.json: /plan/schedule: found zb-h1; expected 1f1b"));
}

TEST_F(ExportCommand, BadInputExitsWith2) {
  const std::string plan = plan_with("");
  const CommandResult format = run_command("export " + plan + " --format megatrom");
  EXPECT_EQ(format.exit_code, 2);
  EXPECT_THAT(format.errors, HasSubstr("did you mean \"megatron\"?"));
  expect_refused("export - --format megatron", {"/plan: found"}, {.input = "{\"schema\": 3}"});
  EXPECT_EQ(run_command("export " + plan).exit_code, 2);
}

}  // namespace
}  // namespace shardwright::cli
