// --options: a file gives the same command as its options in words, and problems are named
// together.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;

json plans_of(const std::string& arguments) {
  json document = json_of("plan " + arguments);
  document["search"].erase("wall_s");
  return document;
}

const std::string kInWords =
    "--model llama3-8b --cluster dgx-h100 --gpus 16 --global-batch 64 --seq-len 8k --fix tp=2,4 "
    "--fix pp=1 --trusted";

TEST(OptionsFile, IsTheCommandInWords) {
  const ScratchFolder folder;
  const std::string yaml =
      folder.write("job.yaml",
                   "model: llama3-8b\ncluster: dgx-h100\ngpus: 16\nglobal_batch: 64\nseq-len: 8k\n"
                   "fix: {tp: [2, 4], pp: 1}\ntrusted: true\nmarkdown: false\n");
  EXPECT_EQ(plans_of("--options " + yaml), plans_of(kInWords));
  const std::string as_json = folder.write(
      "job.json",
      R"({"model": "llama3-8b", "cluster": "dgx-h100", "gpus": 16, "global-batch": 64, "seq-len": "8k",
                      "fix": ["tp=2,4", "pp=1"], "trusted": true})");
  EXPECT_EQ(plans_of("--options=" + as_json), plans_of(kInWords));
  // The switch prints, as on the command line.
  folder.write("job.yaml", content_of(yaml) + "json: true\n");
  EXPECT_TRUE(json::accept(run_command("plan --options " + yaml).output));
}

TEST(OptionsFile, AMappingStatesAdapters) {
  const ScratchFolder folder;
  const std::string file = folder.write("lora.yaml", "lora: {rank: 16, targets: [q, k, v]}\n");
  const std::string words =
      "--model llama3-8b --cluster dgx-h100 --gpus 8 --global-batch 64 --seq-len 2k --stack fsdp2";
  EXPECT_EQ(plans_of(words + " --options " + file),
            plans_of(words + " --lora rank=16,targets=q+k+v"));
}

TEST(OptionsFile, GivesWayToTheCommandLine) {
  const ScratchFolder folder;
  const std::string file = folder.write(
      "job.yaml", "model: llama3-8b\ncluster: dgx-h100\ngpus: 64\nglobal_batch: 64\nseq_len: 8k\n");
  const json document =
      plans_of("--options " + file + " --gpus 16 --trusted --fix tp=2,4 --fix pp=1");
  EXPECT_EQ(document, plans_of(kInWords));
}

// Files that commands take without a name have that of the help.
TEST(OptionsFile, NamesInputFiles) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json"), other = folder.file("other.json");
  ASSERT_EQ(run_command("plan " + kInWords + " --out " + plan).exit_code, 0);
  ASSERT_EQ(run_command("plan " + kInWords + " --forbid tp=2 --out " + other).exit_code, 0);
  const std::string file = folder.write("export.yaml", "plan: " + plan + "\nformat: megatron\n");
  EXPECT_EQ(run_command("export --options " + file).output,
            run_command("export " + plan + " --format megatron").output);
  // The command line goes before the file.
  EXPECT_EQ(run_command("export --options " + file + " " + other).output,
            run_command("export " + other + " --format megatron").output);
  // In the order of the help, whatever that of the file.
  const std::string pair =
      folder.write("pair.yaml", "json: \"-\"\nb: " + other + "\na: " + plan + "\n");
  EXPECT_EQ(run_command("compare --options " + pair).output,
            run_command("compare " + plan + " " + other + " --json").output);
}

TEST(OptionsFile, NamesAllProblems) {
  const ScratchFolder folder;
  const std::string file =
      folder.write("job.yaml", "modell: x\ngpus: {a: [1, {b: 2}]}\ntrusted: maybe\n");
  const CommandResult result = run_command("plan --options " + file);
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(
      result.errors,
      AllOf(HasSubstr("modell: found an unknown option"), HasSubstr("did you mean \"model\""),
            HasSubstr("gpus: found a nested value"), HasSubstr("trusted: found no truth value")));
  for (const char* content : {"[1", "- a\n- b\n", "&a [*a]"}) {
    EXPECT_EQ(run_command("plan --options " + folder.write("bad.yaml", content)).exit_code, 2)
        << content;
  }
  EXPECT_EQ(run_command("plan --options " + folder.file("none.yaml")).exit_code, 2);
}

TEST(PlanOfStacks, HoldsTheBestPlanOfEachAndSaysWhyOneHasNone) {
  const std::string job =
      " --model llama3-8b --cluster dgx-h100 --gpus 16 --global-batch 64 --seq-len 8192 --trusted";
  const json document =
      json_of("plan" + job + " --stack megatron-core,deepspeed-zero,fsdp2-compile --fix tp=2");
  ASSERT_EQ(document["stacks"].size(), 3U);
  double before = 0.0;
  for (const json& each : document["stacks"]) {
    const std::string stack = each["stack"];
    if (stack == "deepspeed-zero") {
      EXPECT_TRUE(each["best"].is_null());
      EXPECT_NE(each["why_not"], "");
      continue;
    }
    EXPECT_EQ(each["best"]["step_s"],
              json_of("plan" + job + " --fix tp=2 --stack " + stack)["plans"][0]["step_s"])
        << stack;
    EXPECT_LE(before, each["best"]["step_s"]);
    before = each["best"]["step_s"];
  }
}

TEST(SupportCommand, CountsTheRunsBehindAPlanOfItsKind) {
  const json support = json_of("support --model llama3-8b --cluster dgx-h100");
  const json plan = json_of(
      "plan --model llama3-8b --cluster dgx-h100 --gpus 16 --global-batch 64 --seq-len 8192 --fix "
      "tp=2 --fix pp=1 --fix cp=1");
  bool found = false;
  for (const json& kind : support["validated"])
    found = found || (kind["kind"] == "tp" && kind["runs"].get<int>() > 0);
  EXPECT_EQ(found, plan["plans"][0]["confidence"]["validated"].get<bool>());
  bool has_class = false;
  for (const json& each : support["classes"])
    has_class = has_class || each["class"] == plan["plans"][0]["confidence"]["class"];
  EXPECT_TRUE(has_class);
  EXPECT_EQ(run_command("support --model nothing --cluster nowhere").exit_code, 2);
}

// What no plan can have is unsupported, in the words of `plan`, and nothing of it is validated.
TEST(SupportCommand, RefusesWhatPlanRefuses) {
  for (const char* pair : {"--cluster dgx-h100 --stack fsdp2 --precision nvfp4",
                           "--cluster dgx-1-v100 --stack fsdp2 --precision bf16"}) {
    const std::string words = std::string(" --model llama3-8b ") + pair;
    const json support = json_of("support" + words);
    EXPECT_THAT(support["refused"], testing::Not(testing::IsEmpty()));
    EXPECT_THAT(support["validated"], testing::IsEmpty());
    EXPECT_THAT(support["classes"], testing::IsEmpty());
    const CommandResult plan =
        run_command("plan" + words + " --gpus 8 --global-batch 64 --seq-len 8192");
    EXPECT_EQ(plan.exit_code, 2);
    for (const std::string refusal : support["refused"])
      EXPECT_THAT(plan.errors, testing::HasSubstr(refusal));
    const CommandResult text = run_command("support" + words);
    EXPECT_EQ(text.exit_code, 0);
    EXPECT_THAT(text.output, testing::HasSubstr("Unsupported: "));
    EXPECT_THAT(text.output, testing::Not(testing::HasSubstr("Expected errors")));
  }
}

}  // namespace
}  // namespace shardwright::cli
