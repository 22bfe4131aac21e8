// plan, scale, explain, compare and validate: the contract of their JSON and exit codes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "core/spec/scenario.hpp"
#include "tests/cli/command_run.hpp"
#include "tests/sanitized.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::IsEmpty;

std::string plan_of(const std::string& gpus, const std::string& more) {
  return "plan --model llama3-8b --cluster dgx-h100 --gpus " + gpus + " --seq-len 8192 " + more;
}

TEST(PlanCommand, JsonKeepsTheContract) {
  const json document = json_of(plan_of("8", "--global-batch 32 --top 3"));
  const json& search = document["search"];
  std::int64_t rejected = 0;
  for (const json& count : search["rejected"]) rejected += count.get<std::int64_t>();
  EXPECT_EQ(search["space"].get<std::int64_t>(),
            search["evaluated"].get<std::int64_t>() + rejected);
  EXPECT_LE(search["simulated"].get<std::int64_t>(), search["evaluated"].get<std::int64_t>());
  EXPECT_GT(search["wall_s"].get<double>(), 0.0);

  // The document holds its inputs, so that the window opens it anywhere.
  json scenario = {{"schema", "shardwright/plan"}, {"version", 1}};
  for (const char* part : {"model", "cluster", "stack"}) scenario[part] = document[part];
  scenario["plan"] = document["plans"][0]["plan"];
  EXPECT_EQ(read_scenario(scenario, "plans").model, load_model("llama3-8b"));

  ASSERT_EQ(document["plans"].size(), 3u);
  double last = 0.0;
  for (const json& plan : document["plans"]) {
    const json& p = plan["plan"];
    EXPECT_EQ(p["dp"].get<int>() * p["tp"].get<int>() * p["pp"].get<int>() * p["cp"].get<int>(), 8);
    EXPECT_GE(plan["step_s"].get<double>(), last) << "best first";
    EXPECT_LE(plan["memory"]["peak_bytes"].get<double>(), 80e9);
    EXPECT_LE(plan["bound_s"].get<double>(), plan["step_s"].get<double>() * (1 + 1e-9));
    last = plan["step_s"].get<double>();
    EXPECT_LT(plan["step_interval_s"][0].get<double>(), last);
    EXPECT_GT(plan["step_interval_s"][1].get<double>(), last);
  }
}

TEST(ForecastCommand, JsonKeepsTheContract) {
  const std::string line =
      "forecast --model llama3-8b --cluster dgx-h100 --gpus 64 --tp 2 --global-batch 512 --seq-len "
      "8192 --tokens 1T --runs 50";
  const json document = json_of(line);
  EXPECT_EQ(document["tokens"], 1e12);
  EXPECT_EQ(document["steps"], 238'419) << "steps of 512 * 8,192 tokens, rounded up";
  for (const char* spread : {"days", "interruptions"}) {
    EXPECT_LE(document[spread]["p10"], document[spread]["p50"]);
    EXPECT_LE(document[spread]["p50"], document[spread]["p90"]);
  }
  EXPECT_LT(document["days"]["p10"], document["days"]["p90"]);
  for (const char* positive : {"gpu_hours", "cost_usd", "energy_kwh", "mfu_of_run"})
    EXPECT_GT(document[positive].get<double>(), 0.0) << positive;
  double shares = document["goodput"].get<double>();
  for (const json& share : document["lost"]) shares += share.get<double>();
  EXPECT_NEAR(shares, 1.0, 1e-9);
  for (const char* key : {"interval_s", "bytes", "stall_s"})
    EXPECT_GT(document["checkpoint"][key].get<double>(), 0.0) << key;
  EXPECT_GT(document["interruptions"]["by_cause"]["host"],
            document["interruptions"]["by_cause"]["gpu"]);
  EXPECT_GT(document["gains"]["step_time"].get<double>(), 0.08);
  EXPECT_EQ(document["run"]["name"], "settled-fleet");

  json again = json_of(line + " --threads 1"), other = json_of(line + " --seed 2");
  EXPECT_EQ(document, again);
  EXPECT_NE(document["days"], other["days"]);
}

// Without degrees the best plan is searched, and `plan --tokens` says the same of it.
TEST(ForecastCommand, WithoutDegreesItIsThatOfTheBestPlan) {
  const std::string what =
      "--model qwen2.5-0.5b --cluster dgx-h100 --gpus 8 --seq-len 4096 --tokens 10B --runs 20 ";
  const json forecast = json_of("forecast --global-batch 64 " + what);
  const json plan = json_of("plan --top 1 --global-batch 64 " + what);
  EXPECT_EQ(forecast["plan"], plan["plans"][0]["plan"]);
  EXPECT_EQ(forecast["gpu_hours"], plan["runs"][0]["gpu_hours"]);
  EXPECT_EQ(forecast["days"], plan["runs"][0]["days"]);
  const json fixed = json_of("forecast --global-batch 64 --zero 3 " + what);
  EXPECT_EQ(fixed["plan"]["zero_stage"], 3);
}

// A published run is forecast with its own tokens, stages and profile, as `validate --runs` does.
TEST(ForecastCommand, TakesAPublishedRun) {
  const std::string file = SHARDWRIGHT_SOURCE_DIR "/measurements/runs.jsonl";
  const json compared = json_of("validate --runs " + file);
  for (const json& row : compared["rows"]) {
    if (row["id"] != "bloom-176b" && row["id"] != "llama1-65b") continue;
    const json run =
        json_of("forecast --runs 500 --row " + file + ":" + row["id"].get<std::string>());
    EXPECT_EQ(run["tokens"], row["tokens"]);
    EXPECT_EQ(run["gpu_hours"], row["gpu_hours"]["predicted"]);
    EXPECT_EQ(run["days"]["p90"], row["days"]["p90"]);
  }
  EXPECT_THAT(run_command("validate " + file).errors,
              testing::HasSubstr("--runs takes a file of runs"));
}

// The batch is chosen for the whole run: a small critical batch forbids what the machine would
// like.
TEST(PlanCommand, SearchesGpusAndBatchOfARun) {
  const std::string what =
      "--model qwen2.5-0.5b --cluster dgx-h100 --seq-len 4096 --global-batch auto "
      "--max-global-batch 256 --fix tp=1 --fix pp=1 --fix cp=1 --runs 20 ";
  const json large = json_of("plan --gpus 8..16 --tokens 10B " + what);
  const json small = json_of("plan --gpus 8..16 --tokens 10B --critical-batch 32k " + what);
  const auto fastest = [](const json& of) { return of["choices"][of["fastest"].get<int>()]; };
  EXPECT_EQ(fastest(large)["gpus"], 16);
  EXPECT_LT(fastest(small)["global_batch"], fastest(large)["global_batch"]);
  EXPECT_EQ(fastest(small)["batch_limit"], "critical batch");
  EXPECT_EQ(small["need"]["critical_batch_tokens"], 32000.0);
  EXPECT_FALSE(large["need"]["outside"].empty()) << "10 B tokens are few for the law";
  const CommandResult never = run_command("plan --gpus 8 --target-loss 1.9 " + what);
  EXPECT_EQ(never.exit_code, 2);
  EXPECT_THAT(never.errors, HasSubstr("--target-loss: found 1.9; expected at least"));
}

TEST(PlanCommand, SaysThatTokensAreTooManyAndNotThatNoPlanFits) {
  for (const std::string command : {"plan", "forecast"}) {
    const CommandResult result =
        run_command(command +
                    " --model qwen2.5-0.5b --cluster dgx-h100 --gpus 8 --seq-len 4096 --tokens 1T "
                    "--global-batch auto --critical-batch 1 --runs 20");
    EXPECT_EQ(result.exit_code, 4) << result.errors;
    const std::string told = result.output + result.errors;
    EXPECT_THAT(told, HasSubstr("of GPUs and batch left out, whose plans fit"));
    EXPECT_THAT(told, HasSubstr("1 token, as stated"));
    EXPECT_THAT(told, testing::Not(HasSubstr("no plan fits")));
  }
}

// The noise that a run measured is named with its model: that of another model is a guess.
TEST(PlanCommand, NamesTheModelWhoseNoiseIsTheCriticalBatch) {
  const ScratchFolder run;
  const std::string folder = run.path().string();
  const std::string what =
      " --cluster dgx-h100 --gpus 8 --seq-len 1024 --global-batch auto --fix tp=1"
      " --fix pp=1 --fix cp=1 --max-global-batch 64 --runs 9 --tokens 10B";
  const std::string with_noise = "plan --critical-batch " + folder + what;
  run.write("metrics.jsonl", R"({"step": 0, "gradient_noise_scale_tokens": 10000}
{"step": 1, "gradient_noise_scale_tokens": 32000}
)");
  EXPECT_THAT(run_command(with_noise + " --model gpt2").errors, HasSubstr("plan.json"));
  run_command(
      "simulate --model gpt2 --cluster dgx-h100 --gpus 1 --global-batch 1 --seq-len 1024 --out " +
      run.file("plan.json"));
  const json own = json_of(with_noise + " --model gpt2")["need"];
  EXPECT_EQ(own["critical_batch_tokens"], 32000.0);
  EXPECT_EQ(own["critical_batch_source"], "as the run in " + folder + " measured of gpt2");
  const std::string other =
      json_of(with_noise + " --model qwen2.5-0.5b")["need"]["critical_batch_source"];
  EXPECT_THAT(other, HasSubstr("measured of gpt2, which is another model than qwen2.5-0.5b"));
}

// A run profile is a name, a file that is whole or a patch, and settings.
TEST(ForecastCommand, ReadsRunProfilesAsOthersAreRead) {
  const ScratchFolder folder;
  const std::string line =
      "forecast --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 --global-batch 32 --seq-len "
      "8192 --tokens 10B --runs 9 ";
  const json shipped = json_of(line);
  const std::string whole = folder.write("whole.json", shipped["run"].dump());
  EXPECT_EQ(json_of(line + "--run " + whole), shipped);
  const std::string patch =
      folder.write("patch.json", R"({"base": "settled-fleet", "checkpoint": {"interval_s": 900}})");
  const json patched = json_of(line + "--run " + patch);
  EXPECT_EQ(patched["checkpoint"]["interval_s"], 900.0);
  EXPECT_EQ(json_of(line + "--set run.checkpoint.interval_s=900")["days"], patched["days"]);
  const std::string few = std::string(line).replace(line.find("10B"), 3, "100M");
  EXPECT_EQ(run_command(few + "--set run.failures.gpu.per_1000_node_days=1000000").exit_code, 4)
      << "failures leave no progress";
}

// Recovery that the plan cannot have is said, and what it can have is not.
TEST(ForecastCommand, SaysWhichRecoveryHasNoEffect) {
  const std::string line =
      "forecast --model llama3-8b --cluster dgx-h100 --gpus 64 --tp 8 --global-batch 64 --seq-len "
      "8192 --tokens 10B --runs 9 --set run.recovery.from_replicas=true --set "
      "run.recovery.spare_replicas=1 --zero ";
  const std::string shared = json_of(line + "1")["notes"].dump();
  EXPECT_THAT(shared, HasSubstr("from_replicas has no effect"));
  EXPECT_THAT(shared, HasSubstr("spare_replicas adds spare nodes"));
  EXPECT_EQ(json_of(line + "0")["notes"].size() + 2, json_of(line + "1")["notes"].size());
}

// Plans that are compared by money or energy say how much of it a token takes.
TEST(PlanCommand, ShowsWhatItsObjectiveCounts) {
  const std::string line =
      "--model llama3-8b --cluster dgx-h100 --gpus 16 --global-batch 64 --seq-len 8k --objective ";
  for (const std::string command : {"plan --top 1 ", "scale "}) {
    EXPECT_THAT(run_command(command + line + "cost").output, HasSubstr("$ per B tokens"));
    EXPECT_THAT(run_command(command + line + "tokens-per-joule").output, HasSubstr("per joule"));
    EXPECT_THAT(run_command(command + line + "time").output, Not(HasSubstr("$ per B tokens")));
  }
}

// Each prediction says how sure it is, and less sure on software that nobody measured by name.
TEST(SimulateCommand, StepsHaveAnInterval) {
  const auto step_on = [](const std::string& stack, const std::string& fidelity) {
    return json_of(
        "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 --global-batch 32 --seq-len "
        "8192 --stack " +
        stack + " --fidelity " + fidelity);
  };
  const auto relative_width = [&](const json& step) {
    const double low = step["step_interval_s"][0].get<double>();
    const double high = step["step_interval_s"][1].get<double>();
    const double predicted = step["event_step_s"].get<double>();
    EXPECT_LT(low, predicted);
    EXPECT_GT(high, predicted);
    return (high - low) / predicted;
  };
  const double own = relative_width(step_on("megatron-core", "event"));
  EXPECT_GT(relative_width(step_on("generic-megatron", "event")), own);
  EXPECT_GT(relative_width(step_on("generic-megatron --set stack.name=ours", "event")), own);
  EXPECT_NEAR(relative_width(step_on("megatron-core", "bound")), own, 1e-12)
      << "a bound has no errors of its own";
  EXPECT_TRUE(step_on("shardwright", "event")["step_interval_s"].is_null());
  const json elsewhere = json_of(
      "simulate --model llama3.2-1b --cluster rtx4090-workstation --gpus 2 --global-batch 8 "
      "--seq-len 2048");
  EXPECT_GT(relative_width(elsewhere), own) << "few steps of such cards were published";
}

TEST(PlanCommand, TheWrittenPlanSimulatesToTheSameStep) {
  const ScratchFolder folder;
  const std::string file = folder.file("plan.json");
  const json plans = json_of(plan_of("8", "--global-batch 32 --out " + file))["plans"];
  const json step = json_of("simulate --plan " + file);
  EXPECT_EQ(step["step_s"], plans[0]["step_s"]);
}

TEST(PlanCommand, ConstraintsHold) {
  const json plans = json_of(
      plan_of("8", "--global-batch 32 --fix tp=4 --forbid zero=1,3 --max-memory 60GB"))["plans"];
  ASSERT_FALSE(plans.empty());
  for (const json& plan : plans) {
    EXPECT_EQ(plan["plan"]["tp"], 4);
    EXPECT_NE(plan["plan"]["zero_stage"], 1);
    EXPECT_NE(plan["plan"]["zero_stage"], 3);
    EXPECT_LE(plan["memory"]["peak_bytes"].get<double>(), 60e9);
  }
}

TEST(PlanCommand, MemoryLimitsMayBePercentages) {
  const double capacity = load_cluster("dgx-h100").accelerator.memory.value();
  const json plans = json_of(plan_of("8", "--global-batch 32 --max-memory 60%"))["plans"];
  ASSERT_FALSE(plans.empty());
  for (const json& plan : plans)
    EXPECT_LE(plan["memory"]["peak_bytes"].get<double>(), 0.6 * capacity);
}

TEST(PlanCommand, ThreadsDoNotChangeTheAnswer) {
  const std::string one = plan_of("8", "--global-batch 16 --threads 1");
  const std::string four = plan_of("8", "--global-batch 16 --threads 4");
  EXPECT_EQ(json_of(one)["plans"], json_of(four)["plans"]);
}

TEST(PlanCommand, MoreThreadsThanCoresAreNoWarning) {
  const CommandResult result = run_command(plan_of("8", "--global-batch 8 --threads 64"));
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.errors, IsEmpty());
}

TEST(PlanCommand, NoFeasiblePlanSaysWhatIsNeeded) {
  const CommandResult result =
      run_command(plan_of("8", "--global-batch 8 --max-memory 5GB --json -"));
  EXPECT_EQ(result.exit_code, 4);
  EXPECT_THAT(result.errors, HasSubstr("No plan fits 8 GPUs: the smallest one needs "));
  EXPECT_THAT(result.errors, HasSubstr(" more than the limit of 5 GB."));
  EXPECT_THAT(result.errors, HasSubstr("Closest options: a memory limit of "));
  const json document = json::parse(result.output);
  EXPECT_TRUE(document["plans"].empty());
  EXPECT_GT(document["infeasible"]["shortfall_bytes"].get<double>(), 0.0);
}

// Plans of more microbatches than can be simulated are counted, and a batch that can be is named.
TEST(PlanCommand, BatchesThatNoPlanCanSimulateAreSaid) {
  const CommandResult result =
      run_command(plan_of("8", "--global-batch 20000000 --max-memory 100% --json -"));
  EXPECT_EQ(result.exit_code, 4);
  const json document = json::parse(result.output);
  EXPECT_GT(document["search"]["rejected"]["step_size"].get<int>(), 0);
  EXPECT_EQ(document["infeasible"]["closes_it"][0], "--global-batch 1048576");
}

TEST(PlanCommand, BatchesAreLookedForAmongThoseThatCanBeSimulated) {
  if (kSanitized) GTEST_SKIP() << "replays 16,384 microbatches, many times";
  const auto best_of = [](const std::string& batch) {
    return json_of(plan_of("8", "--global-batch " + batch +
                                    " --max-global-batch 1000000000 --fix tp=8 --fix micro_batch=1 "
                                    "--fix zero=0 --fix recompute=none --top 1"))["plans"][0];
  };
  const json chosen = best_of("auto"), largest = best_of("16384");
  EXPECT_LE(chosen["plan"]["global_batch"].get<std::int64_t>(), 16384);
  EXPECT_GE(chosen["tokens_per_s_per_gpu"].get<double>(),
            0.95 * largest["tokens_per_s_per_gpu"].get<double>());
}

TEST(PlanCommand, ReportNamesTheBestPlanAndTheSearch) {
  const CommandResult result = run_command(plan_of("8", "--global-batch 32"));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, IsEmpty()) << "no progress line without a terminal";
  for (const char* text : {"tokens/s", "MFU", "Searched", "rejected by", "memory"})
    EXPECT_THAT(result.output, HasSubstr(text));
}

// A search that takes far longer than the test waits.
TEST(PlanCommand, InterruptedSearchesExitWith130) {
  interrupted_json(
      "plan --model llama3.1-405b --cluster dgx-h100 --gpus 256..16384 --global-batch auto "
      "--seq-len 8192 --threads 1");
}

// Also while the batch is looked for: what was found until then is printed.
TEST(PlanCommand, AnInterruptedSearchForTheBatchHasABestSoFar) {
  for (const std::string gpus : {"4096", "1024..4096"}) {
    const json document = interrupted_json(
        "plan --model llama3.1-405b --cluster dgx-h100 --gpus " + gpus +
            " --global-batch auto --max-global-batch 1048576 --seq-len 8192 --threads 1",
        std::chrono::seconds(3));
    ASSERT_FALSE(document["plans"].empty()) << gpus;
    EXPECT_GT(document["plans"][0]["plan"]["global_batch"].get<std::int64_t>(), 0);
  }
}

TEST(ScaleCommand, FindsAPlanForEachSize) {
  const json document = json_of(
      "scale --model llama3-8b --cluster dgx-h100 --gpus 8..32 --global-batch 64 --seq-len 8192");
  ASSERT_EQ(document["points"].size(), 3u);
  EXPECT_EQ(document["points"][0]["gpus"], 8);
  EXPECT_EQ(document["points"][2]["gpus"], 32);
  EXPECT_DOUBLE_EQ(document["points"][0]["efficiency"].get<double>(), 1.0);
}

// Stacks that are named are compared all the same.
TEST(PlanCommand, LeavesStacksOutThatHaveNoBearingOnTheCluster) {
  const std::string job = "plan --model gpt2 --gpus 8 --global-batch 64 --seq-len 1024 --cluster ";
  const auto reasons = [&](const std::string& cluster) {
    const json document = json_of(job + cluster + " --stack all");
    std::map<std::string, std::string> left_out;
    for (const json& each : document["left_out"]) left_out[each["stack"]] = each["reason"];
    for (const json& each : document["stacks"]) EXPECT_FALSE(left_out.contains(each["stack"]));
    EXPECT_EQ(left_out.size() + document["stacks"].size(), shipped_stacks().size());
    return left_out;
  };
  const auto hopper = reasons("dgx-h100");
  EXPECT_THAT(hopper.at("megatron-lm-2020"), HasSubstr("not fused"));
  EXPECT_FALSE(hopper.contains("megatron-core") || hopper.contains("shardwright"));
  EXPECT_TRUE(reasons("dgx-a100").empty());
  const auto tpu = reasons("tpu-v5p-torus");
  EXPECT_TRUE(tpu.contains("shardwright") && tpu.contains("fsdp2"));
  EXPECT_FALSE(tpu.contains("generic-jax") || tpu.contains("generic"));
  EXPECT_EQ(json_of(job + "dgx-h100 --stack megatron-lm-2020,fsdp2")["stacks"].size(), 2U);
}

// Stacks with the same plan and figures share a row, and none is lost.
TEST(PlanCommand, GroupsStacksThatAreTheSame) {
  const std::string job =
      "plan --model gpt2 --gpus 8 --global-batch 64 --seq-len 1024 --cluster dgx-a100 --stack all";
  const std::string text = run_command(job, {.environment = {{"COLUMNS", "400"}}}).output;
  EXPECT_THAT(text, HasSubstr("The same as "));
  for (const std::string& stack : shipped_stacks()) EXPECT_THAT(text, HasSubstr(stack));
  std::set<std::string> rows;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    // "fsdp2 + 3  1.64  …"
    static const std::regex row("[a-z0-9.-]+(?: \\+ [0-9]+)? +([0-9.]+ +[0-9.]+ to .*)");
    std::smatch found;
    if (std::regex_match(line, found, row)) {
      EXPECT_TRUE(rows.insert(found[1]).second) << line;
    }
  }
  EXPECT_GT(rows.size(), 2U);
}

TEST(ScaleCommand, TakesAListOfSizes) {
  const std::string job =
      " --model llama3-8b --cluster dgx-h100 --global-batch 48 --seq-len 4096 --gpus ";
  const json document = json_of("scale" + job + "24,8,24");
  ASSERT_EQ(document["points"].size(), 2u);
  EXPECT_EQ(document["points"][0]["gpus"], 8);
  EXPECT_EQ(document["points"][1]["gpus"], 24);
  expect_refused("scale" + job + "8,x", {"--gpus", "\"x\""});
  expect_refused("plan --stack all" + job + "8,24", {"--gpus", "one number of GPUs"});
}

TEST(ScaleCommand, NamesTheChosenBatchAndWarnsOfFullMemory) {
  const CommandResult result = run_command(
      "scale --model llama3-8b --cluster dgx-h100 --gpus 8..16 --global-batch auto "
      "--max-global-batch 16 --seq-len 8192");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output,
              HasSubstr("sequences (chosen: the smallest batch with 95 % of the best throughput)"));
  const std::string line =
      "scale --model llama3-8b --cluster dgx-h100 --gpus 2..8 --global-batch 16 --seq-len 8192";
  const json tight = json_of(line);
  const double capacity = load_cluster("dgx-h100").accelerator.memory.value();
  double fullest = 0.0;
  for (const json& plan : tight["plans"])
    fullest = std::max(fullest, plan["memory"]["peak_bytes"].get<double>() / capacity);
  EXPECT_EQ(
      run_command(line).output.find("of the memory; use --max-memory 90%") != std::string::npos,
      fullest > 0.95);
}

TEST(ScaleCommand, ExplainsEfficienciesAboveOneHundredPercent) {
  const std::string line =
      "scale --model llama3-70b --cluster dgx-h100 --gpus 16..64 --global-batch 64 --seq-len 8192 "
      "--max-memory 70GB";
  const json document = json_of(line);
  double best = 0.0;
  for (const json& point : document["points"])
    best = std::max(best, point["efficiency"].get<double>());
  ASSERT_GT(best, 1.005);
  ASSERT_EQ(document["notes"].size(), 1U);
  EXPECT_THAT(document["notes"][0].get<std::string>(), HasSubstr("32 accelerators"));
  EXPECT_THAT(run_command(line).output, HasSubstr("Efficiency above 100 %"));
}

TEST(ScaleCommand, SaysWhatIsMissingWhereNothingFits) {
  expect_errors(
      4,
      "scale --model llama3.1-405b --cluster dgx-h100 --gpus 2..4 --global-batch 16 --seq-len "
      "8192",
      {"No plan fits 4 GPUs: the smallest one needs ", " GPUs, or accelerators with "});
}

std::string write_plan(const ScratchFolder& folder, const std::string& name,
                       const std::string& tp) {
  std::string file = folder.file(name);
  const CommandResult result =
      run_command("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp " + tp +
                  " --global-batch 16 --seq-len 8192 --out " + file);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  return file;
}

TEST(ExplainCommand, MoreOfAResourceNeverHurts) {
  const ScratchFolder folder;
  const json document = json_of("explain --plan " + write_plan(folder, "a.json", "2"));
  ASSERT_GE(document["sensitivities"].size(), 7u);
  for (const json& sensitivity : document["sensitivities"])
    EXPECT_GE(sensitivity["throughput_gain_ratio"].get<double>(), -1e-9) << sensitivity;
  EXPECT_FALSE(document["limit"].get<std::string>().empty());
}

TEST(CompareCommand, ListsWhatDiffers) {
  const ScratchFolder folder;
  const json document = json_of("compare " + write_plan(folder, "a.json", "2") + " " +
                                write_plan(folder, "b.json", "4"));
  EXPECT_THAT(document["inputs"].dump(), HasSubstr("/plan/tp"));
  EXPECT_NE(document["a"]["step_s"], document["b"]["step_s"]);
}

TEST(CompareCommand, SaysByWhatItJudges) {
  const ScratchFolder folder;
  const std::string small = write_plan(folder, "a.json", "2"), large = folder.file("b.json");
  ASSERT_EQ(run_command("simulate --plan " + small + " --gpus 16 --out " + large).exit_code, 0);
  const json document = json_of("compare " + small + " " + large);
  EXPECT_EQ(document["judged_by"], "tokens_per_s_per_gpu");
  EXPECT_THAT(document["verdict"].get<std::string>(), HasSubstr("8 and 16 accelerators"));
}

// Work of which one simulation takes far longer than the test waits.
TEST(ExplainCommand, InterruptsPrintWhatIsDone) {
  const json document = interrupted_json(
      "explain --model llama3.1-405b --cluster dgx-h100 --gpus 128 --tp 8 --pp 16 --global-batch "
      "7900 --seq-len 8192");
  EXPECT_LT(document["sensitivities"].size(), 7U);
  EXPECT_GT(document["step_s"].get<double>(), 0.0);
}

struct BadRequest {
  const char* name;
  std::string more;
  std::string says;
};

void PrintTo(const BadRequest& bad, std::ostream* stream) {
  *stream << bad.name;
}

class BadPlanRequest : public testing::TestWithParam<BadRequest> {};

TEST_P(BadPlanRequest, IsRefused) {
  const CommandResult result = run_command(plan_of("8", GetParam().more));
  EXPECT_EQ(result.exit_code, 2) << result.output;
  EXPECT_THAT(result.output, IsEmpty());
  EXPECT_THAT(result.errors, HasSubstr(GetParam().says));
}

INSTANTIATE_TEST_SUITE_P(
    Options, BadPlanRequest,
    testing::Values(
        BadRequest{"NoBatch", "", "--global-batch: found nothing"},
        BadRequest{"ZeroBatch", "--global-batch 0", "--global-batch: found \"0\""},
        BadRequest{"NegativeBatch", "--global-batch -8", "--global-batch: found \"-8\""},
        BadRequest{"BatchWord", "--global-batch autop", "--global-batch: found \"autop\""},
        BadRequest{"BatchWordInCapitals", "--global-batch Auto",
                   "1,000,000,000, as in 4096 or 4k, or auto (did you mean \"auto\"?)"},
        BadRequest{"ColourInCapitals", "--global-batch 8 --color Never",
                   "--color: found \"Never\"; expected one of auto, always, never (did you mean "
                   "\"never\"?)"},
        BadRequest{"BadObjective", "--global-batch 8 --objective tim", "did you mean \"time\"?"},
        BadRequest{"BadConstraint", "--global-batch 8 --fix tpp=8", "--fix"},
        BadRequest{"ConstraintWithoutValue", "--global-batch 8 --forbid zero", "--forbid"},
        BadRequest{"NoSuchZeroStage", "--global-batch 8 --fix zero=5",
                   "a number from 0 to 3 for zero"},
        BadRequest{"NoReplica", "--global-batch 8 --fix dp=0", "--fix: found \"0\""},
        BadRequest{"BadMemory", "--global-batch 8 --max-memory 70XB",
                   "--max-memory: found \"70XB\""},
        BadRequest{"MoreThanAllMemory", "--global-batch 8 --max-memory 110%",
                   "--max-memory: found \"110%\"; expected at most 100%"},
        BadRequest{"PercentWithoutSign", "--global-batch 8 --fit-probability 95",
                   "found 95; expected a percentage below 100%, as in 95% or 0.95"},
        BadRequest{"MemoryWithoutUnit", "--global-batch 8 --max-memory 80", "80GB or 80GiB"},
        BadRequest{"TinyMemory", "--global-batch 8 --max-memory 80MB",
                   "--max-memory: found \"80MB\""},
        BadRequest{
            "BatchAboveItsLimit", "--global-batch 8 --max-global-batch 3",
            "--global-batch: found 8; expected auto, or at most the largest batch allowed, 3"},
        BadRequest{"TwoDocumentsOnStandardOutput", "--global-batch 8 --json - --out -",
                   "--out: found standard output"},
        BadRequest{"BadVariation", "--global-batch 8 --vary rank-orders",
                   "did you mean \"rank-order\"?"},
        BadRequest{"InfiniteMemory", "--global-batch 8 --max-memory 1e999", "--max-memory"},
        BadRequest{"BadPrecision", "--global-batch 8 --precision bf1", "\"bf16\""},
        BadRequest{"TopZero", "--global-batch 8 --top 0", "--top: found \"0\""},
        BadRequest{"ManyThreads", "--global-batch 8 --threads 99999", "--threads"}),
    [](const auto& tested) { return std::string(tested.param.name); });

TEST(BadPlanRequest, RangesGoUpwards) {
  expect_refused(plan_of("64..8", "--global-batch 8"), {"--gpus: found \"64..8\""});
}

// A range with an end that cannot be read has no order that could be wrong, too.
TEST(BadPlanRequest, OneBadEndOfARangeIsOneProblem) {
  for (const std::string gpus : {"8..1000000000", "x..16"}) {
    const CommandResult result = run_command(plan_of(gpus, "--global-batch 8"));
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.errors, HasSubstr("expected an integer from 1 to 10,000,000"));
    EXPECT_THAT(result.errors, testing::Not(HasSubstr("from the smaller to the larger")));
  }
}

// A made-up measurement that every machine of the kind beats: the error is far above one percent.
json row(const std::string& id, std::int64_t global_batch) {
  json measurement = json::parse(R"({"source": {"title": "t", "where": "w"}, "grade": "A",
    "scenario": {"model": "llama3-8b", "cluster": "dgx-h100", "stack": "megatron-core",
                 "plan": {"dp": 4, "tp": 2, "pp": 1, "micro_batch": 1, "seq_len": 8192}},
    "measured": {"step_s": 100.0}, "figure": {"metric": "step_s", "value": 100.0}})");
  measurement["id"] = id;
  measurement["scenario"]["plan"]["global_batch"] = global_batch;
  return measurement;
}

std::string lines(const std::vector<json>& rows) {
  std::string text;
  for (const json& each : rows) text += each.dump() + '\n';
  return text;
}

TEST(ValidateCommand, ToleranceDecidesTheExitCode) {
  const ScratchFolder folder;
  const std::string rows = folder.write("rows.jsonl", lines({row("x", 32)}));
  EXPECT_EQ(run_command("validate " + rows).exit_code, 0);
  EXPECT_EQ(run_command("validate " + rows + " --fail-over 1,1000").exit_code, 5);
}

TEST(ValidateCommand, SimulatedRowsHaveTheSameInterval) {
  const ScratchFolder folder;
  for (const char* grade : {"A", "B"}) {
    json measured = row("x", 32);
    measured["grade"] = grade;
    const std::string rows = folder.write("rows.jsonl", lines({measured}));
    EXPECT_EQ(json_of("simulate --row " + rows + ":x")["step_interval_s"],
              json_of("validate " + rows)["rows"][0]["interval"]);
  }
}

TEST(ValidateCommand, SkippedRowsAreListedWithTheirReason) {
  const ScratchFolder folder;
  json bad = row("bad", 32);
  bad.erase("scenario");
  bad["unsupported"] = "the source does not say the accelerator";
  const CommandSetting wide{.environment = {{"COLUMNS", "200"}}};
  const CommandResult text =
      run_command("validate " + folder.write("rows.jsonl", lines({row("x", 32), bad})), wide);
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("the source does not say the accelerator"));
  const json document = json_of("validate " + folder.file("rows.jsonl"));
  EXPECT_EQ(document["summary"]["n"], 1);
  EXPECT_EQ(document["summary"]["skipped"], 1);
  EXPECT_EQ(document["rows"][1]["status"], "skipped");
  EXPECT_EQ(document["rows"][0]["profiles"]["stack"], "megatron-core");
  const CommandResult each =
      run_command("validate " + folder.file("rows.jsonl") + " --every-row", wide);
  EXPECT_THAT(each.output, HasSubstr("skipped: the source does not say the accelerator"));
}

TEST(ValidateCommand, NothingMeasuredIsNoError) {
  const ScratchFolder folder;
  json oom = row("x", 32);
  for (const char* key : {"measured", "figure"}) oom.erase(key);
  oom["outcome"] = "out_of_memory";
  const std::string rows = folder.write("rows.jsonl", lines({oom}));
  const CommandResult text = run_command("validate " + rows);
  EXPECT_EQ(text.exit_code, 0) << text.errors;
  EXPECT_THAT(text.output, HasSubstr("none"));
  EXPECT_THAT(text.output, testing::Not(HasSubstr("0.0")));
  EXPECT_TRUE(json_of("validate " + rows)["summary"]["median_abs_pct"].is_null());
  EXPECT_EQ(run_command("validate " + rows + " --fail-over 5,15").exit_code, 5);
}

TEST(ValidateCommand, InterruptsPrintTheRowsThatAreDone) {
  const ScratchFolder folder;
  std::vector<json> rows;
  constexpr std::size_t kMeasured = 6000;
  for (std::size_t i = 0; i < kMeasured; ++i) rows.push_back(row(std::to_string(i), 120000));
  const json document = interrupted_json("validate " + folder.write("rows.jsonl", lines(rows)));
  EXPECT_LT(document["rows"].size(), kMeasured);
}

// Memory is predicted without an interval, so nothing can lie in one.
TEST(ValidateCommand, ClaimsNoIntervalForMemory) {
  const ScratchFolder folder;
  const json document = json_of("validate " + folder.write("rows.jsonl", lines({row("x", 32)})));
  EXPECT_TRUE(document["summary"]["memory"]["coverage"].is_null());
}

}  // namespace
}  // namespace shardwright::cli
