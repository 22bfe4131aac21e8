// sweep: the contract of its JSON, its knee and its exit codes.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

const std::string kLlama8b = " --model llama3-8b --cluster dgx-h100 --seq-len 8192";
const std::string kEightGpus = kLlama8b + " --gpus 8 --global-batch 32";

TEST(SweepCommand, PointsAreTheBestPlansOfPlan) {
  const json sweep = json_of("sweep global-batch --values 64,16,16" + kEightGpus);
  EXPECT_EQ(sweep["schema"], "shardwright/sweep");
  EXPECT_EQ(sweep["quantity"], "global-batch");
  ASSERT_EQ(sweep["points"].size(), 2U);
  for (const json& point : sweep["points"]) {
    const std::string batch = std::to_string(point["value"].get<std::int64_t>());
    const json plan = json_of("plan --top 1 --gpus 8 --global-batch " + batch + kLlama8b);
    EXPECT_EQ(point["best"]["step_s"], plan["plans"][0]["step_s"]) << batch;
    EXPECT_EQ(point["best"]["plan"], plan["plans"][0]["plan"]) << batch;
    EXPECT_TRUE(point["fits"].get<bool>());
  }
  EXPECT_EQ(sweep["points"][0]["value"], 16);
  EXPECT_FALSE(sweep["partial"].get<bool>());
}

TEST(SweepCommand, MachinesAreThoseOfScale) {
  const json sweep = json_of("sweep gpus --gpus 8..32 --global-batch 32" + kLlama8b);
  const json scale = json_of("scale --gpus 8..32 --global-batch 32" + kLlama8b);
  ASSERT_EQ(sweep["points"].size(), scale["points"].size());
  for (std::size_t i = 0; i < sweep["points"].size(); ++i) {
    EXPECT_EQ(sweep["points"][i]["value"], scale["points"][i]["gpus"]);
    EXPECT_EQ(sweep["points"][i]["best"]["step_s"], scale["points"][i]["best"]["step_s"]);
  }
  EXPECT_EQ(sweep["knee"], scale["knee"]);
}

TEST(SweepCommand, AGivenPlanIsSweptAsItIs) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run_command("plan --out " + plan + kEightGpus).exit_code, 0);
  const json one = json_of("simulate --plan " + plan);
  const json sweep = json_of("sweep scale-up-bandwidth --plan " + plan + " --values 225,450,900");
  EXPECT_EQ(sweep["swept_plan"], "given");
  EXPECT_EQ(sweep["unit"], "bytes_per_s");
  double before = 1e300;
  for (const json& point : sweep["points"]) {
    EXPECT_EQ(point["best"]["plan"], one["plan"]);
    EXPECT_LE(point["best"]["step_s"].get<double>(), before);
    before = point["best"]["step_s"].get<double>();
  }
  EXPECT_EQ(sweep["points"][1]["value"], 450e9);
  EXPECT_EQ(sweep["points"][1]["best"]["step_s"], one["step_s"]);  // that of the cluster
  // A batch that is no multiple of the plan's breaks a rule, which is named.
  const json batches = json_of("sweep global-batch --plan " + plan + " --values 32,33");
  EXPECT_TRUE(batches["points"][1]["best"].is_null());
  EXPECT_THAT(batches["points"][1]["why_not"].get<std::string>(), HasSubstr("global batch is 33"));
}

TEST(SweepCommand, PrintsATableAndTheKnee) {
  const CommandResult result = run_command("sweep seq-len --values 2048,1048576" + kEightGpus);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("sequence length varied"));
  EXPECT_THAT(result.output, HasSubstr("(knee)"));
  EXPECT_THAT(result.output, HasSubstr("2,048 tokens is the longest sequence that fits"));
}

TEST(SweepCommand, WrongInputIsRefused) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run_command("plan --out " + plan + kEightGpus).exit_code, 0);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"sweep" + kEightGpus, "QUANTITY"},
      {"sweep gpu" + kEightGpus, "gpus"},
      {"sweep global-batch --values 16,0" + kEightGpus, "--values"},
      {"sweep memory-bandwidth --values -3" + kEightGpus, "--values"},
      {"sweep seq-len --gpus 8..16 --global-batch 32" + kLlama8b, "one number of GPUs"},
      {"sweep gpus --plan " + plan, "--plan"},
      {"sweep global-batch --fix tp=2 --plan " + plan, "--fix"},
      {"sweep global-batch --model llama3-8b --plan " + plan, "--model"},
      {"sweep global-batch --gpus 16 --plan " + plan, "--gpus"},
      {"sweep global-batch --top 2" + kEightGpus, "--top"},
      {"sweep scale-out-bandwidth --set cluster.node.nic.bandwidth_bytes_per_s=0" + kEightGpus,
       "bandwidth_bytes_per_s"},
  };
  for (const auto& [line, said] : cases) {
    const CommandResult result = run_command(line);
    EXPECT_EQ(result.exit_code, 2) << line << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(said));
    EXPECT_EQ(result.output, "");
  }
}

TEST(SweepCommand, WithoutAPlanThatFitsItSaysWhy) {
  const CommandResult result = run_command(
      "sweep global-batch --model llama3-70b --cluster dgx-h100 --gpus 1 --seq-len 8192 "
      "--global-batch 8");
  EXPECT_EQ(result.exit_code, 4) << result.errors;
  EXPECT_NE(result.errors, "");
}

// A sweep that takes far longer than the test waits. SIGTERM ends jobs at their time limit.
TEST(SweepCommand, InterruptedSweepsExitWith130) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const json document = interrupted_json(
        "sweep global-batch --model llama3.1-405b --cluster dgx-h100 --gpus 16384 --global-batch "
        "4096 --seq-len 8192 --threads 1",
        std::chrono::milliseconds(700), signal);
    EXPECT_TRUE(document["knee"].is_null());
  }
}

class StudyTest : public testing::Test {
 protected:
  // Runs the study with the shard, if any, and returns the file of its JSON.
  std::string rows(const std::string& name, const std::string& shard = "") const {
    const std::string file = folder_.file(name);
    const std::string share = shard.empty() ? "" : " --shard " + shard;
    EXPECT_EQ(run_command("sweep --study " + study_ + share + " --json " + file).exit_code, 0);
    return file;
  }

  ScratchFolder folder_;
  std::string study_ =
      folder_.write("study.yaml",
                    "model: [llama3.2-1b, llama3-70b]\ncluster: dgx-h100\ngpus: [8, 9]\n"
                    "global-batch: [16, 32]\nseq_len: 2048\nfix: [{tp: 1}, {tp: 8}]\n");
};

TEST_F(StudyTest, SharesPutTogetherAreTheWholeAndRowsAreThoseOfPlan) {
  const std::string whole = rows("whole.json");
  const std::string first = rows("first.json", "1/3"), second = rows("second.json", "2/3");
  const std::string third = rows("third.json", "3/3"), merged = folder_.file("merged.json");
  ASSERT_EQ(run_command("sweep --merge " + third + " --merge " + first + " --merge " + second +
                        " --json " + merged)
                .exit_code,
            0);
  EXPECT_EQ(content_of(merged), content_of(whole));
  const json document = json::parse(content_of(whole));
  ASSERT_EQ(document["rows"].size(), 16U);
  const json row = document["rows"][2];
  EXPECT_EQ(
      row["values"],
      (json{{"model", "llama3.2-1b"}, {"gpus", 8}, {"global-batch", 32}, {"fix", "{tp: 1}"}}));
  const json plan = json_of(
      "plan --model llama3.2-1b --cluster dgx-h100 --gpus 8 --global-batch 32 "
      "--seq-len 2048 --fix tp=1 --top 1");
  EXPECT_EQ(row["best"]["plan"], plan["plans"][0]["plan"]);
  EXPECT_EQ(row["best"]["step_s"], plan["plans"][0]["step_s"]);
  const json without = document["rows"][8];
  EXPECT_TRUE(without["best"].is_null());
  const CommandResult none = run_command(
      "plan --model llama3-70b --cluster dgx-h100 --gpus 8 --global-batch 16 --seq-len 2048 "
      "--fix tp=1 --json -");
  EXPECT_EQ(without["why_not"], json::parse(none.output)["infeasible"]["reason"]);
}

TEST_F(StudyTest, AnInterruptedShareIsNamedAndGoesOnWhereItWas) {
  using nlohmann::ordered_json;
  const std::string file = rows("share.json", "1/2"), second = rows("second.json", "2/2");
  const ordered_json whole = ordered_json::parse(content_of(file));
  ordered_json partial = whole;
  partial["partial"] = true;
  partial["rows"].erase(partial["rows"].begin() + 3, partial["rows"].end());
  // A layout that no search finds shows which rows are kept.
  partial["rows"][0]["best"]["layout"] = "kept";
  folder_.write("share.json", partial.dump());
  const CommandResult merged = run_command("sweep --merge " + file + " --merge " + second);
  EXPECT_EQ(merged.exit_code, 2);
  EXPECT_THAT(merged.errors, HasSubstr("no row of 5 scenarios"));
  EXPECT_THAT(merged.errors, HasSubstr("share.json is of an interrupted call"));

  ordered_json completed = whole;
  completed["rows"][0]["best"]["layout"] = "kept";
  EXPECT_EQ(ordered_json::parse(content_of(rows("share.json", "1/2"))), completed);
  const std::string again = "sweep --study " + study_ + " --shard 1/2 --json " + file;
  EXPECT_EQ(run_command(again).exit_code, 2) << "a whole share is not replaced";

  folder_.write("share.json", partial.dump());
  const std::string other = "sweep --study " + study_ + " --shard 2/2 --json " + file;
  EXPECT_EQ(run_command(other).exit_code, 2) << "another share is not replaced";
  EXPECT_EQ(run_command(again + " --force").exit_code, 0);
  EXPECT_EQ(ordered_json::parse(content_of(file)), whole);
}

// A job array has shares of scenarios without a plan, or of none, and is done with them.
TEST_F(StudyTest, SharesWithoutAPlanAreDone) {
  study_ = folder_.write("study.yaml",
                         "model: llama3-70b\ncluster: dgx-h100\ngpus: [8, 16]\n"
                         "global-batch: 16\nseq_len: 2048\nfix: {tp: 1, zero: 0}\n");
  for (const char* shard : {"1/3", "3/3"}) rows(fmt::format("{}.json", shard[0]), shard);
}

// The configuration in a model's folder belongs to the study.
TEST_F(StudyTest, RefusesSharesOfAnotherConfiguration) {
  const std::string folder = folder_.file("model");
  std::filesystem::create_directory(folder);
  const auto configure = [&](int layers) {
    folder_.write("model/config.json",
                  fmt::format(R"({{"model_type": "llama", "num_hidden_layers": {}, "hidden_size": )"
                              R"(2048, "intermediate_size": 8192, "num_attention_heads": 32, )"
                              R"("num_key_value_heads": 8, "vocab_size": 32000}})",
                              layers));
  };
  study_ = folder_.write("study.yaml", "model: " + folder +
                                           "\ncluster: dgx-h100\ngpus: 8\nglobal-batch: [16, 32]\n"
                                           "seq_len: 2048\n");
  configure(16);
  const std::string first = rows("first.json", "1/2");
  configure(8);
  const std::string second = rows("second.json", "2/2");
  EXPECT_EQ(run_command("sweep --merge " + first + " --merge " + second).exit_code, 2);
}

TEST_F(StudyTest, RefusesSharesThatDisagree) {
  const std::string first = rows("first.json", "1/2"), second = rows("second.json", "2/2");
  using nlohmann::ordered_json;
  const ordered_json document = ordered_json::parse(content_of(second));
  const auto refusal = [&](const ordered_json& changed) {
    const std::string file = folder_.write("changed.json", changed.dump());
    return run_command("sweep --merge " + first + " --merge " + second + " --merge " + file);
  };
  EXPECT_EQ(refusal(document).exit_code, 0);
  ordered_json beyond = document;
  beyond["rows"][3]["scenario"] = 99;
  EXPECT_THAT(refusal(beyond).errors,
              HasSubstr("/rows/3/scenario: found 99; expected a scenario from 0 to 15"));
  ordered_json other = document;
  other["rows"][0]["best"]["step_s"] = 1.0;
  EXPECT_THAT(refusal(other).errors, HasSubstr("another result of scenario 1"));
  ordered_json read = document;
  read["files"]["cluster.json"] = "0123456789abcdef";
  EXPECT_THAT(refusal(read).errors, HasSubstr("files with another content"));
  EXPECT_EQ(refusal(read).exit_code, 2);
}

TEST_F(StudyTest, RefusesMissingSharesOtherStudiesAndWrongFiles) {
  const std::string first = rows("first.json", "1/2");
  const CommandResult missing = run_command("sweep --merge " + first);
  EXPECT_EQ(missing.exit_code, 2);
  EXPECT_THAT(missing.errors, HasSubstr("no row of 8 scenarios (scenario 1, 3, 5, 7, 9, …)"));
  std::string changed = content_of(first);
  changed.replace(changed.find("2048"), 4, "4096");
  const CommandResult other =
      run_command("sweep --merge " + first + " --merge " + folder_.write("o.json", changed));
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.errors, HasSubstr("another study than"));
  EXPECT_EQ(run_command("sweep --study " + study_ + " --shard 0/2").exit_code, 2);
  for (const char* option : {" --gpus 8", " --trusted", " --fit-probability 0.5", " --top 3"})
    EXPECT_EQ(run_command("sweep --study " + study_ + option).exit_code, 2) << option;
  EXPECT_EQ(run_command("sweep --study " + study_ + " --threads none").exit_code, 2);
  EXPECT_EQ(run_command("sweep gpus --shard 1/2" + kEightGpus).exit_code, 2);
  const std::string typo = folder_.write("typo.yaml", "modell: [llama3-8b]\ngpus: []\n");
  EXPECT_EQ(run_command("sweep --study " + typo).exit_code, 2);
  const std::string bad =
      folder_.write("bad.yaml", "model: [no-such-model, nor-this]\ncluster: dgx-h100\n");
  EXPECT_EQ(run_command("sweep --study " + bad).exit_code, 2);
  EXPECT_EQ(run_command("sweep --merge " + folder_.write("x.json", "{\"schema\": 3}")).exit_code,
            2);
}

}  // namespace
}  // namespace shardwright::cli
