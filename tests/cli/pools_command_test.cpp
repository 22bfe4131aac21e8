// Plans on mixed clusters: what each command shows of them.
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
using testing::Not;

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

// A replica of eight ranks on each pool, of which the first one runs more microbatches.
json replicas_plan() {
  json plan = mixed_plan();
  plan["plan"].erase("stage_layers");
  plan["plan"].erase("stage_pools");
  plan["plan"]["pp"] = 1;
  plan["plan"]["dp"] = 2;
  plan["plan"]["replica_pools"] = {{{"pool", "new"}, {"replicas", 1}, {"microbatches", 22}},
                                   {{"pool", "old"}, {"replicas", 1}, {"microbatches", 10}}};
  return plan;
}

TEST(PoolsCommand, SimulateAndForecastTakeReplicasOnPools) {
  const ScratchFolder folder;
  const std::string plan = folder.write("plan.json", replicas_plan().dump());
  const CommandResult text =
      run_command("simulate --plan " + plan, {.environment = {{"COLUMNS", "200"}}});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("1 replica on new, 1 replica on old"));
  EXPECT_THAT(text.output, HasSubstr("22 microbatches of 1 per replica on new"));
  const json step = json_of("simulate --plan " + plan);
  ASSERT_EQ(step["stages"].size(), 2U);
  EXPECT_EQ(step["stages"][1]["pool"], "old");
  json even = replicas_plan();
  for (json& part : even["plan"]["replica_pools"]) part["microbatches"] = 16;
  const std::string other = folder.write("even.json", even.dump());
  EXPECT_LT(step["step_s"].get<double>(),
            0.8 * json_of("simulate --plan " + other)["step_s"].get<double>());
  EXPECT_GT(json_of("forecast --tokens 1B --runs 10 --plan " + plan)["days"].size(), 0U);
  even["plan"]["global_batch"] = 31;
  expect_refused("simulate --plan " + folder.write("odd.json", even.dump()),
                 {"/plan/global_batch", "31", "32"});
  expect_refused("export --format megatron " + plan, {"replica_pools", "on one pool"});
}

// Of two replicas of two stages of a node each, the last stage of the last one is on the old pool.
TEST(PoolsCommand, SimulateAndForecastTakeStagesAndReplicasOnPools) {
  const ScratchFolder folder;
  json both = replicas_plan();
  both["cluster"]["nodes"] = 3;
  both["plan"]["pp"] = 2;
  json& parts = both["plan"]["replica_pools"];
  parts[1].erase("pool");
  parts[1]["stage_pools"] = {"new", "old"};
  const std::string plan = folder.write("plan.json", both.dump());
  const CommandResult text =
      run_command("simulate --plan " + plan, {.environment = {{"COLUMNS", "200"}}});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("24 × h100-sxm + 8 × a100-80gb"));
  EXPECT_THAT(text.output, HasSubstr("1 replica on new, 1 replica on new then old"));
  const json step = json_of("simulate --plan " + plan);
  ASSERT_EQ(step["stages"].size(), 4U);
  EXPECT_EQ(step["stages"][2]["pool"], "new");
  EXPECT_EQ(step["stages"][3]["pool"], "old");
  EXPECT_GT(json_of("forecast --tokens 1B --runs 10 --plan " + plan)["days"].size(), 0U);
  expect_refused("export --format megatron " + plan, {"replica_pools", "new+old", "on one pool"});
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
  EXPECT_THAT(result.output, HasSubstr("Too few published runs used several pools"));
}

TEST(PoolsCommand, APublishedStepHasNoIntervalOfRunsOnOnePool) {
  const CommandResult result =
      run_command("simulate --row " SHARDWRIGHT_SOURCE_DIR
                  "/measurements/mixed_clusters.jsonl:amp-p3-g4dn-tp1-pp8-dp2-mb1");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("unknown: too few published runs used several pools"));
  EXPECT_THAT(result.output, Not(HasSubstr("validated ground")));
}

// One node of each kind.
json mixed_cluster() {
  json cluster = mixed_plan()["cluster"];
  cluster["nodes"] = 1;
  return cluster;
}

const std::string kJob = " --model llama3-8b --global-batch 32 --seq-len 8192 --cluster ";

TEST(PoolsCommand, PlanForecastsTheRunsOfItsPlansAndComparesAGivenPlan) {
  const ScratchFolder folder;
  json mine = mixed_plan();
  mine["cluster"] = mixed_cluster();
  const std::string plan = folder.write("mine.json", mine.dump());
  const std::string best = folder.file("best.json");
  const json found = json_of("plan --tokens 1B --runs 20 --out " + best + " --compare " + plan);
  const json forecast = json_of("forecast --tokens 1B --runs 20 --plan " + best);
  EXPECT_EQ(found["runs"][0]["days"], forecast["days"]);
  const json simulated = json_of("simulate --plan " + plan);
  EXPECT_NEAR(found["compared"]["step_s"].get<double>(), simulated["step_s"].get<double>(), 1e-9);
  EXPECT_EQ(found["compared"]["pools"], (json{"new", "old"}));
  EXPECT_GT(found["faster_than_compared"].get<int>(), 0);
  // The second pool alone, and more accelerators than the plan has.
  json old = mine;
  old["plan"]["pp"] = 1;
  old["plan"]["stage_layers"] = json::array();
  old["plan"]["stage_pools"] = {"old"};
  const std::string other = folder.write("old.json", old.dump());
  const json beside = json_of("plan --gpus 16 --compare " + other);
  EXPECT_NEAR(beside["compared"]["step_s"].get<double>(),
              json_of("simulate --plan " + other)["step_s"].get<double>(), 1e-9);
  EXPECT_EQ(beside["compared"]["pools"], json{"old"});
  expect_refused("plan --gpus 8 --compare " + plan, {"--gpus", "at least 16"});
}

TEST(PoolsCommand, PlanChoosesABatchAndTrustsNoPlanOnSeveralPools) {
  const ScratchFolder folder;
  const std::string cluster = folder.write("mixed.json", mixed_cluster().dump());
  const std::string job = "plan --model llama3.2-1b --seq-len 8192 --fix schedule=1f1b --cluster " +
                          cluster + " --global-batch ";
  const json chosen = json_of(job + "auto --max-global-batch 32");
  const json largest = json_of(job + "32");
  const auto rate = [](const json& plan) {
    return plan["plan"]["global_batch"].get<double>() / plan["step_s"].get<double>();
  };
  EXPECT_LE(chosen["plans"][0]["plan"]["global_batch"].get<int>(), 32);
  EXPECT_GE(rate(chosen["plans"][0]), 0.95 * rate(largest["plans"][0]));
  const json trusted = json_of(job + "32 --trusted");
  EXPECT_TRUE(trusted["placed"].is_null());
  for (const json& plan : trusted["plans"]) {
    EXPECT_EQ(plan["pools"].size(), 1U);
    EXPECT_TRUE(plan["confidence"]["validated"].get<bool>());
  }
}

TEST(PoolsCommand, SizesAreThoseOfPlanOrOfPoolsThatGrow) {
  const ScratchFolder folder;
  const std::string job =
      " --fix schedule=1f1b" + kJob + folder.write("mixed.json", mixed_cluster().dump());
  const json scale = json_of("scale --gpus 8,16" + job);
  ASSERT_EQ(scale["points"].size(), 2U);
  for (const json& point : scale["points"]) {
    const json plan = json_of("plan --top 1 --gpus " + point["gpus"].dump() + job);
    EXPECT_EQ(point["best"]["plan"], plan["plans"][0]["plan"]);
  }
  EXPECT_EQ(json_of("plan --gpus 8,16" + job)["points"], scale["points"]);
  EXPECT_EQ(json_of("sweep gpus --gpus 8,16" + job)["points"][1]["best"],
            scale["points"][1]["best"]);
  const std::string out = folder.file("grown.json");
  const json grown = json_of("scale --gpus 16,24 --grow old" + job);
  EXPECT_EQ(grown["points"][0]["best"], scale["points"][1]["best"]);
  EXPECT_EQ(grown["points"][1]["nodes"], (json{{"new", 1}, {"old", 2}}));
  const CommandResult text =
      run_command("scale --gpus 16,26 --grow all" + job, {.environment = {{"COLUMNS", "200"}}});
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("new 2, old 1"));
  for (const auto& [options, expected] : std::vector<std::pair<std::string, std::string>>{
           {"--gpus 4 --grow old", "at least the 8"},
           {"--gpus 16 --grow odl", "old"},
           {"--gpus 24..32", "at most the 16 accelerators of the pools"}})
    expect_refused("scale " + options + job, {"--", expected});
  expect_refused("scale --gpus 8 --grow all" + kJob + "dgx-h100",
                 {"--grow", "a cluster of several pools"});
}

TEST(PoolsCommand, SweepTakesPlansOnPools) {
  const ScratchFolder folder;
  json plan = mixed_plan();
  const std::string file = folder.write("plan.json", plan.dump());
  const json batches = json_of("sweep global-batch --values 16,32 --plan " + file);
  EXPECT_NEAR(batches["points"][1]["best"]["step_s"].get<double>(),
              json_of("simulate --plan " + file)["step_s"].get<double>(), 1e-9);
  const json nics = json_of("sweep scale-out-bandwidth --values 25,50 --plan " + file);
  const double before = nics["points"][0]["best"]["step_s"];
  EXPECT_LE(nics["points"][1]["best"]["step_s"].get<double>(), before);
  plan["cluster"]["pools"][0]["accelerator"]["memory"]["capacity_bytes"] = 5e9;
  const CommandResult full = run_command("sweep global-batch --json - --values 32 --plan " +
                                         folder.write("full.json", plan.dump()));
  EXPECT_EQ(full.exit_code, 4);
  EXPECT_THAT(json::parse(full.output)["points"][0]["why_not"].get<std::string>(),
              HasSubstr("of 5 GB"));
  const std::string study = folder.write(
      "study.json", json{{"model", "llama3-8b"},
                         {"cluster", folder.write("mixed.json", mixed_cluster().dump())},
                         {"global-batch", {16, 32}},
                         {"seq-len", 8192},
                         {"fix", "schedule=1f1b"}}
                        .dump());
  const json rows = json_of("sweep --study " + study)["rows"];
  ASSERT_EQ(rows.size(), 2U);
  const json one = json_of("plan --fix schedule=1f1b" + kJob + folder.file("mixed.json"));
  EXPECT_EQ(rows[1]["best"]["plan"], one["plans"][0]["plan"]);
}

TEST(PoolsCommand, ReplanTakesTheRanksOfEachPool) {
  const ScratchFolder folder;
  json plan = mixed_plan();
  plan["cluster"] = mixed_cluster();
  const std::string replan = "replan " + folder.write("plan.json", plan.dump()) + " --out " +
                             folder.file("new.json") + " --force --ranks ";
  const json both = json_of(replan + "new=8,old=8");
  EXPECT_LE(both["plan"]["step_s"].get<double>(),
            json_of("simulate --plan " + folder.file("plan.json"))["step_s"].get<double>());
  const json old = json_of(replan + "old=8");
  EXPECT_EQ(json::parse(folder.read("new.json"))["cluster"]["name"], "old");
  EXPECT_EQ(old["plan"]["step_s"], json_of("simulate --plan " + folder.file("new.json"))["step_s"]);
  for (const auto& [ranks, expected] :
       std::vector<std::pair<std::string, std::string>>{{"8", "in each pool, as in"},
                                                        {"old=9", "at most the 8"},
                                                        {"odl=8", "did you mean \"old\""},
                                                        {"old=8,old=8", "each pool once"},
                                                        {"old=x", "an integer"}})
    expect_refused(replan + ranks, {"--ranks", expected});
}

TEST(PoolsCommand, TuneSimulatesTrialsOnPools) {
  const ScratchFolder folder;
  json plan = mixed_plan();
  const std::string tune = " --steps 100 --trials 4 --vary lr=1e-4..1e-3 --simulate --ranks ";
  json& cluster = plan["cluster"];
  cluster["pools"][0]["nodes"] = 2;
  const json mixed = json_of("tune " + folder.write("plan.json", plan.dump()) + tune + "32");
  EXPECT_GT(mixed["days"]["p50"].get<double>(), 0.0);
  expect_refused("tune " + folder.file("plan.json") + tune + "48", {"--ranks", "at most the 32"});
  // Of equal pools the answer is that of one.
  plan["plan"]["stage_layers"] = {16, 16};
  json one = plan;
  one["plan"].erase("stage_pools");
  one["cluster"].erase("pools");
  for (const char* part : {"accelerator", "node", "fabric"})
    cluster["pools"][0][part] = cluster[part];
  const json pools = json_of("tune " + folder.write("pools.json", plan.dump()) + tune + "32");
  const json expected = json_of("tune " + folder.write("one.json", one.dump()) + tune + "32");
  // The errors of predictions are known on one pool only, so that percentiles differ.
  for (const char* figure : {"undisturbed_days", "days_in_full", "spare_nodes", "workers"})
    EXPECT_EQ(pools[figure], expected[figure]) << figure;
}

TEST(PoolsCommand, PlansOfSeveralStacksAndAgreementsLieOnPools) {
  const ScratchFolder folder;
  const std::string job =
      " --fix schedule=1f1b" + kJob + folder.write("mixed.json", mixed_cluster().dump());
  const json best = json_of("plan --top 1" + job)["plans"][0]["plan"];
  EXPECT_EQ(
      json_of("plan --stack megatron-core,megatron-lm-2021" + job)["stacks"][0]["best"]["plan"],
      best);
  const json agreements = json_of("plan --vary compression" + job)["agreements"];
  EXPECT_EQ(agreements[0]["best"]["plan"], best);
}

TEST(PoolsCommand, APercentageOfMemoryIsThatOfEachPool) {
  const ScratchFolder folder;
  const json found = json_of("plan --max-memory 50% --fix schedule=1f1b" + kJob +
                             folder.write("mixed.json", mixed_cluster().dump()));
  const json cluster = mixed_cluster();
  const std::vector<json> memories = {
      cluster["accelerator"]["memory"]["capacity_bytes"],
      cluster["pools"][0]["accelerator"]["memory"]["capacity_bytes"]};
  for (std::size_t pool = 0; pool < memories.size(); ++pool) {
    const double all = memories[pool].is_object() ? memories[pool]["value"].get<double>()
                                                  : memories[pool].get<double>();
    EXPECT_DOUBLE_EQ(found["pools"][pool]["limit_bytes"].get<double>(), 0.5 * all);
  }
}

TEST(PoolsCommand, TheBoundOfStagesOnPoolsIsRefused) {
  const ScratchFolder folder;
  expect_refused(
      "simulate --fidelity bound --plan " + folder.write("plan.json", mixed_plan().dump()),
      {"/plan/stage_pools", "level bound"});
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
