// Plans on mixed clusters: what plan and simulate show, and what the other commands refuse.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

json shown_cluster(const std::string& name) {
  const json document = json::parse(run_command("clusters show " + name + " --json -").output);
  return document.value("cluster", document);
}

// Two stages of eight ranks: 23 layers on H100, 9 on A100.
json mixed_plan() {
  json plan = json::parse(run_command("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp "
                                      "8 --global-batch 32 --seq-len 8192 --out -")
                              .output);
  const json old = shown_cluster("dgx-a100");
  json& cluster = plan["cluster"];
  cluster["name"] = "new";
  cluster["pools"] = json::array({{{"name", "old"},
                                   {"accelerator", old["accelerator"]},
                                   {"node", old["node"]},
                                   {"fabric", old["fabric"]},
                                   {"nodes", 1}}});
  plan["plan"]["pp"] = 2;
  plan["plan"]["stage_layers"] = {23, 9};
  plan["plan"]["stage_pools"] = {"new", "old"};
  return plan;
}

TEST(PoolsCommand, SimulateShowsThePoolOfEachStage) {
  const ScratchFolder folder;
  const std::string plan = folder.write("plan.json", mixed_plan().dump());
  const CommandResult text =
      run_command("simulate --plan " + plan, {.environment = {{"COLUMNS", "200"}}});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("8 × h100-sxm + 8 × a100-80gb"));
  EXPECT_THAT(text.output, HasSubstr("on new then old"));
  const json step = json::parse(run_command("simulate --plan " + plan + " --json -").output);
  EXPECT_EQ(step["stages"][0]["pool"], "new");
  EXPECT_EQ(step["stages"][1]["pool"], "old");
  EXPECT_TRUE(step["step_interval_s"].is_null());
}

TEST(PoolsCommand, TheAnalyticLevelIsNearTheEventLevel) {
  const ScratchFolder folder;
  const std::string plan = folder.write("plan.json", mixed_plan().dump());
  const auto step_at = [&](const std::string& level) {
    const CommandResult result =
        run_command("simulate --json - --fidelity " + level + " --plan " + plan);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return json::parse(result.output)["step_s"].get<double>();
  };
  EXPECT_NEAR(step_at("analytic") / step_at("event"), 1.0, 0.05);
}

TEST(PoolsCommand, APlanFitsIfEachStageFitsItsOwnPool) {
  const ScratchFolder folder;
  json plan = mixed_plan();
  // The second stage, which needs less than the first, has less than it needs.
  plan["cluster"]["pools"][0]["accelerator"]["memory"]["capacity_bytes"] = 5e9;
  const CommandResult result =
      run_command("simulate --plan " + folder.write("plan.json", plan.dump()));
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.errors, HasSubstr("than a100-80gb has"));
}

TEST(PoolsCommand, PlanPlacesStagesOnPoolsAndShowsEachPoolAlone) {
  const ScratchFolder folder;
  json cluster = mixed_plan()["cluster"];
  cluster["nodes"] = 1;
  const std::string plan = folder.file("plan.json");
  const std::string line = "plan --model llama3-8b --global-batch 32 --seq-len 8192 --cluster " +
                           folder.write("mixed.json", cluster.dump()) + " --out " + plan;
  const CommandResult text = run_command(line);
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("new alone"));
  EXPECT_THAT(text.output, HasSubstr("old alone"));
  const CommandResult step = run_command("simulate --json - --plan " + plan);
  const json found = json::parse(run_command(line + " --force --json -").output);
  EXPECT_EQ(found["plans"][0]["pools"].size(), 2U);
  EXPECT_EQ(found["plans"][0]["step_s"], json::parse(step.output)["step_s"]);
  EXPECT_EQ(found["pools"][0]["pool"], "new");
  EXPECT_EQ(found["pools"][1]["gpus"], 8);
  for (const json& pool : found["pools"])
    EXPECT_GT(pool["best"]["step_s"].get<double>(), found["plans"][0]["step_s"].get<double>());
  // A measured profile, which has a stack of its own, is planned for with all of its pools, too.
  cluster["stack"] = mixed_plan()["stack"];
  const json measured = json::parse(
      run_command("plan --model llama3-8b --global-batch 32 --seq-len 8192 --json - --cluster " +
                  folder.write("measured.json", cluster.dump()))
          .output);
  EXPECT_EQ(measured["plans"][0]["plan"], found["plans"][0]["plan"]);
}

TEST(PoolsCommand, APlanOfOnePoolAloneIsOneThatAllCommandsTake) {
  const ScratchFolder folder;
  json cluster = mixed_plan()["cluster"];
  cluster["nodes"] = 1;
  // A second site behind a slow line.
  cluster["between_pools"] = {{"latency_s", 1.0}};
  const std::string plan = folder.file("plan.json");
  const CommandResult found =
      run_command("plan --model llama3-8b --global-batch 32 --seq-len 8192 --cluster " +
                  folder.write("mixed.json", cluster.dump()) + " --out " + plan);
  EXPECT_THAT(found.output, HasSubstr("Leave the other pools out"));
  const CommandResult explained = run_command("explain --plan " + plan);
  EXPECT_EQ(explained.exit_code, 0) << explained.errors;
}

TEST(PoolsCommand, ExplainImprovesEachPool) {
  const ScratchFolder folder;
  const std::string plan = folder.write("plan.json", mixed_plan().dump());
  const CommandResult explained = run_command("explain --json - --plan " + plan);
  ASSERT_EQ(explained.exit_code, 0) << explained.errors;
  const json found = json::parse(explained.output);
  EXPECT_TRUE(found["step_interval_s"].is_null());
  // The same by hand: the network cards of both pools, and nothing else.
  json better = mixed_plan();
  json& cluster = better["cluster"];
  for (json* nic : {&cluster["node"]["nic"], &cluster["pools"][0]["node"]["nic"]}) {
    json& bandwidth = (*nic)["bandwidth_bytes_per_s"];
    json& value = bandwidth.is_object() ? bandwidth["value"] : bandwidth;
    value = 1.1 * value.get<double>();
  }
  const std::string file = folder.write("better.json", better.dump());
  const json step = json::parse(run_command("simulate --json - --plan " + file).output);
  const auto nics = std::ranges::find_if(found["sensitivities"], [](const json& each) {
    return each["resource"] == "inter-node bandwidth";
  });
  ASSERT_NE(nics, found["sensitivities"].end());
  EXPECT_NEAR((*nics)["step_s"].get<double>(), step["step_s"].get<double>(), 1e-9);
}

TEST(PoolsCommand, CompareAndExportTakePlansOnPools) {
  const ScratchFolder folder;
  const std::string plan = folder.write("plan.json", mixed_plan().dump());
  json even = mixed_plan();
  even["plan"]["stage_layers"] = {16, 16};
  const std::string other = folder.write("even.json", even.dump());
  const CommandResult compared = run_command("compare --json - " + plan + " " + other);
  ASSERT_EQ(compared.exit_code, 0) << compared.errors;
  const json comparison = json::parse(compared.output);
  const json step = json::parse(run_command("simulate --json - --plan " + plan).output);
  EXPECT_NEAR(comparison["a"]["step_s"].get<double>(), step["step_s"].get<double>(), 1e-9);
  EXPECT_LT(comparison["a"]["step_s"].get<double>(), comparison["b"]["step_s"].get<double>());
  const CommandResult exported = run_command("export --format megatron " + plan);
  EXPECT_EQ(exported.exit_code, 0) << exported.errors;
  EXPECT_THAT(exported.output, HasSubstr("Et*23|t*9L"));
  EXPECT_THAT(exported.errors, HasSubstr("start ranks 0 to 7 on new, ranks 8 to 15 on old"));
  json uneven = mixed_plan();
  uneven["cluster"]["pools"][0]["node"]["accelerators"] = 4;
  uneven["cluster"]["pools"][0]["nodes"] = 2;
  uneven["plan"]["tp"] = 4;
  uneven["plan"]["dp"] = 2;
  const CommandResult refused =
      run_command("export --format megatron " + folder.write("uneven.json", uneven.dump()));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("nodes of 8 and of 4 accelerators"));
}

TEST(PoolsCommand, ForecastSaysThatTheErrorOfTheStepIsNotKnown) {
  const ScratchFolder folder;
  const CommandResult result = run_command("forecast --tokens 1B --runs 10 --plan " +
                                           folder.write("plan.json", mixed_plan().dump()));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("No published run used several pools"));
}

TEST(PoolsCommand, CommandsOfOnePoolRefuseOthers) {
  const ScratchFolder folder;
  const std::string plan = folder.write("plan.json", mixed_plan().dump());
  const std::string cluster = folder.write("mixed.json", mixed_plan()["cluster"].dump());
  for (const std::string& line :
       {"simulate --fidelity bound --plan " + plan, "replan --ranks 8 " + plan,
        "scale --model llama3-8b --gpus 8..16 --global-batch 32 --seq-len 8192 --cluster " +
            cluster,
        "plan --model llama3-8b --gpus 8..16 --global-batch 32 --seq-len 8192 --cluster " + cluster,
        "plan --model llama3-8b --gpus 16 --global-batch auto --seq-len 8192 --cluster " + cluster,
        "plan --model llama3-8b --gpus 16 --global-batch 32 --seq-len 8192 --tokens 1T --cluster " +
            cluster}) {
    const CommandResult result = run_command(line);
    EXPECT_EQ(result.exit_code, 2) << line;
    EXPECT_THAT(result.errors, HasSubstr("pools")) << line;
  }
}

// What `run` reports of three steps under a plan.
struct Trained {
  std::vector<double> losses;
  // The share of the peak that the step's arithmetic would take for a second.
  double peak_share = 0.0;
};

Trained trained_under(const json& plan, const ScratchFolder& folder) {
  const std::string out = folder.file("run");
  const CommandResult result = run_command(
      "run " + folder.write("plan.json", plan.dump()) + " --data " +
      folder.write("corpus.txt", "Two of the four layers lie on other hosts than the first two.") +
      " --steps 3 --force --out " + out);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  Trained trained;
  std::ifstream metrics(out + "/metrics.jsonl");
  for (std::string line; std::getline(metrics, line);) {
    const json step = json::parse(line);
    trained.losses.push_back(step["loss"]);
    trained.peak_share = step["mfu"].get<double>() * step["step_s"].get<double>();
  }
  return trained;
}

TEST(PoolsCommand, RunTrainsStagesOnPoolsAsOneRankDoes) {
  const ScratchFolder folder;
  json plan = json::parse(
      run_command("simulate --model tiny-llama --cluster h100-pcie-server --stack shardwright "
                  "--gpus 1 --global-batch 4 --seq-len 16 --precision fp32 --set "
                  "cluster.node.accelerators=1 --set cluster.node.scale_up.domain=1 --set "
                  "cluster.name=fast --out -")
          .output);
  const Trained alone = trained_under(plan, folder);
  json& cluster = plan["cluster"];
  cluster["pools"] = json::array({{{"name", "slow"},
                                   {"accelerator", cluster["accelerator"]},
                                   {"node", cluster["node"]},
                                   {"fabric", cluster["fabric"]}}});
  json& peak = cluster["pools"][0]["accelerator"]["matrix"]["fp32_flop_per_s"];
  peak = peak.is_object() ? peak["value"].get<double>() / 2.0 : peak.get<double>() / 2.0;
  plan["plan"]["pp"] = 2;
  plan["plan"]["stage_pools"] = {"fast", "slow"};
  const auto layers = plan["model"]["layers"].get<int>();
  plan["plan"]["stage_layers"] = {layers - 1, 1};
  const Trained trained = trained_under(plan, folder);
  ASSERT_EQ(trained.losses.size(), 3U);
  for (std::size_t step = 0; step < 3; ++step)
    EXPECT_NEAR(trained.losses[step] / alone.losses.at(step), 1.0, 1e-5);
  // MFU is over the peaks of both: one and a half times that of the fast rank.
  EXPECT_NEAR(alone.peak_share / trained.peak_share, 1.5, 1e-4);
  const std::string run = "run " + folder.file("plan.json") + " --data " +
                          folder.file("corpus.txt") + " --steps 3 --out " + folder.file("other");
  expect_refused(run + " --restarts 1 --elastic --checkpoint-every 1",
                 {"/plan/stage_pools", "fast, slow", "stages on one pool"});
}

}  // namespace
}  // namespace shardwright::cli
