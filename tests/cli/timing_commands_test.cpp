// validate --kernels and --collectives, fit, and tables of measured kernels on the command line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string shipped(const std::string& name) {
  return std::string(SHARDWRIGHT_SOURCE_DIR) + "/measurements/" + name;
}

TEST(TimingCommands, FailOverDecidesTheExitCode) {
  const std::string file = shipped("kernels.jsonl");
  EXPECT_EQ(run_command("validate --kernels " + file + " --fail-over 8,25").exit_code, 0);
  EXPECT_EQ(run_command("validate --kernels " + file + " --fail-over 0.1,25").exit_code, 5);
  EXPECT_EQ(run_command("validate --kernels " + file + " --fail-over 8").exit_code, 2);
}

// A variable of the shell that is not set must not disarm a guard.
TEST(TimingCommands, AnEmptyFailOverIsBadUsage) {
  for (const std::string& rows :
       {shipped("training/titan.jsonl"), "--kernels " + shipped("kernels.jsonl"),
        "--collectives " + shipped("collectives.jsonl")}) {
    std::vector<std::string> arguments = words_of("validate " + rows + " --fail-over");
    arguments.emplace_back();
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 2) << rows;
    EXPECT_THAT(result.errors, HasSubstr("two percentages")) << rows;
  }
}

// A tolerance that nobody asked for cannot be missed.
TEST(TimingCommands, NothingMeasuredIsNoError) {
  const ScratchFolder folder;
  const std::string rows = folder.write(
      "rows.jsonl",
      R"({"id":"a","source":{"title":"t"},"device":"Abacus-9","unsupported":"no such profile"})");
  const CommandResult result = run_command("validate --kernels " + rows);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  const CommandResult asked = run_command("validate --kernels " + rows + " --fail-over 8,25");
  EXPECT_EQ(asked.exit_code, 5);
  EXPECT_THAT(asked.errors + asked.output,
              HasSubstr("no measured kernel to compare with --fail-over"));
}

TEST(TimingCommands, EveryRowIsComparedOrSkippedWithAReason) {
  const CommandResult result =
      run_command("validate --collectives " + shipped("collectives.jsonl") + " --json -");
  const json document = json::parse(result.output);
  std::size_t skipped = 0;
  for (const json& row : document.at("rows")) {
    const bool is_skipped = row.at("status") == "skipped";
    skipped += is_skipped ? 1 : 0;
    EXPECT_EQ(is_skipped, !row.at("reason").get<std::string>().empty());
    EXPECT_EQ(is_skipped, row.at("predicted").is_null());
  }
  EXPECT_EQ(document.at("summary").at("skipped"), skipped);
  EXPECT_EQ(document.at("summary").at("n").get<std::size_t>() + skipped,
            document.at("rows").size());
}

TEST(TimingCommands, BadInputNamesFileAndLine) {
  const ScratchFolder folder;
  const std::string bad = folder.write(
      "bad.jsonl", R"({"id":"a","source":{"title":"t"},"unsupported":"why","device":3})");
  expect_refused("validate --kernels " + bad, {"bad.jsonl: ", "line 1/device: found 3"});
  EXPECT_EQ(run_command("fit kernels " + bad).exit_code, 2);
  EXPECT_EQ(run_command("fit weather " + bad).exit_code, 2);
}

TEST(TimingCommands, AFitReportsTheRowsThatItLeavesOut) {
  const ScratchFolder folder;
  std::ifstream rows(shipped("kernels.jsonl"));
  std::stringstream text;
  text << rows.rdbuf()
       << R"({"id":"odd","source":{"title":"t"},"device":"H800","unsupported":"no such kernel"})"
       << '\n';
  const std::string file = folder.write("rows.jsonl", text.str());
  const json left_out = json_of("fit kernels " + file + " --accelerator h800").at("left_out");
  ASSERT_FALSE(left_out.empty());
  EXPECT_EQ(left_out.back().get<std::string>(), "odd: no such kernel");
}

TEST(TimingCommands, AFittedProfileCanBeLoadedAndNamesItsCommand) {
  const ScratchFolder folder;
  const std::string profile = folder.file("h800.json");
  const CommandResult result = run_command("fit kernels " + shipped("kernels.jsonl") +
                                           " --accelerator h800 --out " + profile);
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("not determined by the data"));
  EXPECT_THAT(folder.read("h800.json"), HasSubstr("shardwright fit kernels --accelerator h800"));
  EXPECT_EQ(run_command("fit kernels " + shipped("kernels.jsonl") + " --accelerator " + profile)
                .exit_code,
            0);
}

TEST(TimingCommands, MeasuredKernelsShowInTheBasisOfAStep) {
  const ScratchFolder folder;
  const std::string table =
      folder.write("kernels.csv", "op,precision,m,n,k,time_s\ngemm,bf16,8192,14336,4096,2e-3\n");
  const CommandResult result = run_command(
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 --global-batch 32 --seq-len "
      "8192 --kernels " +
      table + " --json -");
  const json basis = json::parse(result.output).at("kernel_time_basis");
  EXPECT_GT(basis.at("measured_s").get<double>(), 0.0);
  EXPECT_GT(basis.at("formula_s").get<double>(), 0.0);
}

}  // namespace
}  // namespace shardwright::cli
