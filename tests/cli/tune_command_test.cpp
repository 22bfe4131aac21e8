// tune: trials of a tiny model on this machine's cores.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using testing::HasSubstr;

std::string tiny_plan(const ScratchFolder& folder) {
  std::string file = folder.file("plan.json");
  const CommandResult made = run_command(
      "simulate --model tiny-llama --cluster h100-pcie-server --stack shardwright --gpus 1 "
      "--global-batch 4 --seq-len 16 --precision fp32 --force --out " +
      file);
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  std::string text;
  for (int i = 0; i < 400; ++i) text += "the cat sat on the mat ";
  folder.write("corpus.txt", text);
  return file;
}

std::string tune_line(const ScratchFolder& folder, const std::string& options,
                      const std::string& out) {
  return "tune " + tiny_plan(folder) + " --data " + folder.file("corpus.txt") +
         " --ranks 2 --seed 3 --out " + folder.file(out) + " " + options;
}

TEST(TuneCommand, TrainsTrialsAndPromotesTheBest) {
  const ScratchFolder folder;
  const auto result = json_of(tune_line(
      folder, "--steps 16 --trials 4 --reduction 2 --vary lr=1e-5..1e-1 --vary global-batch=4,8",
      "tune"));
  const auto& trials = result.at("trials");
  ASSERT_EQ(trials.size(), 4U);
  // Four trials, of which two go on and one of these to the end: 16 steps of 4 sequences, or 8 of
  // 8.
  const auto& best = trials[0];
  EXPECT_EQ(best.at("state"), "complete");
  EXPECT_EQ(best.at("losses").size(), 3U);
  EXPECT_EQ(best.at("losses")[2].at("steps"), best.at("values").at("global-batch") == 4.0 ? 16 : 8);
  std::size_t jobs = 0;
  for (const auto& trial : trials) jobs += trial.at("losses").size();
  EXPECT_GE(jobs, 7U);
  EXPECT_THAT(folder.read("tune/trials.csv"), HasSubstr("trial,lr,global-batch,steps,loss,state"));
  expect_refused(tune_line(folder, "--steps 16 --vary lr=1e-3", "tune"), {"an earlier tuning"});
  expect_refused(tune_line(folder, "--steps 17 --vary lr=1e-3 --resume", "tune"),
                 {"/study/steps", "/study/vary", "/study/trials"});
}

// The loss of a trial is then the last one of its run on samples that it has not trained on.
TEST(TuneCommand, ComparesTrialsByHeldOutSamples) {
  const ScratchFolder folder;
  const std::string line = "--steps 8 --trials 2 --reduction 2 --vary lr=1e-3..1e-1 ";
  const auto result = json_of(tune_line(folder, line + "--validation-ratio 0.2", "tune"));
  for (const auto& trial : result.at("trials")) {
    const std::string run = fmt::format("tune/trial-{:04}/", trial.at("trial").get<int>());
    std::istringstream metrics(folder.read(run + "metrics.jsonl"));
    std::string last;
    for (std::string step; std::getline(metrics, step);) last = step;
    EXPECT_EQ(trial.at("losses").back().at("loss"),
              nlohmann::json::parse(last).at("validation_loss"));
  }
  expect_refused(tune_line(folder, line + "--validation-ratio 0.7", "other"),
                 {"--validation-ratio", "at most 0.5"});
}

// However it ends in the middle, it gives the same bytes as one that was not disturbed.
TEST(TuneCommand, ContinuesAfterAKillAsIfThereHadBeenNone) {
  const ScratchFolder folder;
  for (const std::string search :
       {"--search bayes --trials 4", "--search population --trials 4 --rungs 2"}) {
    const std::string name = search.substr(9, 3);
    const std::string options =
        search + " --steps 12 --reduction 2 --vary lr=1e-4..1e-1 --vary weight-decay=0..0.3";
    const CommandResult whole = run_command(tune_line(folder, options, name + "-whole"));
    ASSERT_EQ(whole.exit_code, 0) << whole.errors;
    RunningCommand killed(tune_line(folder, options, name + "-killed"));
    for (int waited = 0; waited < 3000; ++waited) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      const auto state =
          nlohmann::json::parse(folder.read(name + "-killed/tuning.json"), nullptr, false);
      if (state.is_object() && state.at("results").size() >= 2) break;
    }
    killed.send(SIGKILL);
    EXPECT_EQ(killed.finish().exit_code, 128 + SIGKILL);
    const CommandResult resumed =
        run_command(tune_line(folder, options + " --resume", name + "-killed"));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.errors;
    EXPECT_EQ(folder.read(name + "-killed/tuning.json"), folder.read(name + "-whole/tuning.json"));
    EXPECT_EQ(folder.read(name + "-killed/trials.csv"), folder.read(name + "-whole/trials.csv"));
  }
}

TEST(TuneCommand, SimulatesItsScheduleOnTheCluster) {
  const ScratchFolder folder;
  // So many steps that they take longer than the starts.
  const std::string line = "tune " + tiny_plan(folder) +
                           " --steps 10000000 --trials 27 --vary lr=1e-4..1e-2 --simulate --ranks ";
  const auto one = json_of(line + "1"), nine = json_of(line + "9");
  EXPECT_LT(nine.at("days").at("p50"), one.at("days").at("p50"));
  EXPECT_LT(one.at("days").at("p50"), one.at("days_in_full"));
  // One rank is always busy.
  EXPECT_NEAR(one.at("busy_gpu_hours").get<double>(), one.at("gpu_hours").get<double>(),
              1e-9 * one.at("gpu_hours").get<double>());
  EXPECT_GE(nine.at("gpu_hours"), nine.at("busy_gpu_hours"));
  EXPECT_GT(one.at("cost_usd"), 0.0);
  // No more ranks are paid for than all trials take, and no more are taken than the network joins.
  const auto all = json_of(line + "27"), more = json_of(line + "64");
  EXPECT_EQ(more.at("gpu_hours"), all.at("gpu_hours"));
  EXPECT_EQ(more.at("workers"), 27);
  expect_refused(line + "100000", {"--ranks", "can join"});
}

// Trials of a fleet that fails more often take longer, up to those that never end.
TEST(TuneCommand, SimulatesTheFailuresOfItsTrials) {
  const ScratchFolder folder;
  const std::string line = "tune " + tiny_plan(folder) +
                           " --steps 10000000 --trials 9 --vary lr=1e-4..1e-2 --simulate --run ";
  const auto days_with = [&](double rate, double interval_s) {
    return json_of(line + folder.write("fleet.json",
                                       nlohmann::json{{"base", "settled-fleet"},
                                                      {"failures", {{"rate_ratio", rate}}},
                                                      {"recovery", {{"spare_ratio", 10}}},
                                                      {"checkpoint", {{"interval_s", interval_s}}}}
                                           .dump()));
  };
  const auto none = days_with(0, 600), some = days_with(200, 600),
             rarely_saved = days_with(200, 1e7);
  const auto median = [](const nlohmann::json& of) {
    return of.at("days").at("p50").get<double>();
  };
  EXPECT_GT(median(none), none.at("undisturbed_days").get<double>()) << "of the checkpoints";
  EXPECT_GT(median(some), median(none));
  EXPECT_GT(median(rarely_saved), median(some));
  EXPECT_LT(median(days_with(200, 0)), 1.01 * median(some)) << "at the best interval";
  EXPECT_GT(none.at("spare_nodes"), 0);
}

// A trial of days saves its state as a run does, at the best interval, and not at each quarter.
TEST(TuneCommand, ATrialThatRunsToItsEndIsARun) {
  const ScratchFolder folder;
  const std::string plan = tiny_plan(folder);
  const std::string fleet = folder.write(
      "fleet.json", nlohmann::json{{"base", "settled-fleet"},
                                   {"failures", {{"rate_ratio", 1000}, {"spread_ratio", 0}}},
                                   {"recovery", {{"spare_ratio", 10}}}}
                        .dump());
  const auto trial = json_of(fmt::format(
      "tune {} --steps 40000000 --trials 1 --vary lr=1e-3 --simulate --run {}", plan, fleet));
  const auto run =
      json_of(fmt::format("forecast --plan {} --tokens 2560000000 --run {}", plan, fleet));
  for (const char* each : {"p10", "p50", "p90"}) {
    const double days = run.at("days").at(each);
    EXPECT_NEAR(trial.at("days").at(each).get<double>(), days, 0.01 * days) << each;
  }
  const double hours = run.at("gpu_hours");
  EXPECT_NEAR(trial.at("gpu_hours").get<double>(), hours, 0.01 * hours);
}

// Trials of one GPU each fill nodes of eight, of which the profile has 5 % as spares.
TEST(TuneCommand, SparesAreOfTheNodesThatTrialsShare) {
  const ScratchFolder folder;
  const std::string plan = folder.file("one.json");
  const CommandResult made = run_command(
      "simulate --model tiny-llama --cluster dgx-h100 --stack shardwright --gpus 1 "
      "--global-batch 4 --seq-len 16 --precision fp32 --out " +
      plan);
  ASSERT_EQ(made.exit_code, 0) << made.errors;
  const auto with_ranks = [&](int ranks) {
    return json_of(fmt::format(
        "tune {} --steps 100000 --trials 512 --rungs 1 --vary lr=1e-4..1e-2 --simulate --ranks {}",
        plan, ranks));
  };
  const auto all = with_ranks(512), few = with_ranks(64);
  EXPECT_EQ(all.at("spare_nodes"), 3) << "of 64 nodes";
  EXPECT_NEAR(all.at("spare_gpu_hours").get<double>() / all.at("gpu_hours").get<double>(),
              3.0 * 8.0 / 512.0, 1e-9);
  EXPECT_EQ(few.at("spare_nodes"), 0) << "of 8 nodes";
}

// Also with a batch that is not the plan's, whose steps are others.
TEST(TuneCommand, TrialsThatAllRunToTheirEndsTakeTheTimeInFull) {
  const ScratchFolder folder;
  const std::string line = "tune " + tiny_plan(folder) +
                           " --steps 1000000 --trials 4 --rungs 1 --simulate --ranks 4 --vary ";
  const auto days = [&](const std::string& vary, const char* which) {
    return json_of(line + vary).at(which).get<double>();
  };
  for (const std::string vary : {"lr=1e-4..1e-2", "global-batch=4", "global-batch=64"}) {
    EXPECT_NEAR(days(vary, "days_in_full") / days(vary, "undisturbed_days"), 1.0, 1e-9) << vary;
  }
  const double small = days("global-batch=4", "days_in_full");
  const double large = days("global-batch=64", "days_in_full");
  EXPECT_GT(small, large);
  EXPECT_NEAR(days("global-batch=4,64", "days_in_full"), 0.5 * (small + large), 1e-9 * small);
}

// An executor that says which GPUs it may use, beside a copy of the command.
TEST(TuneCommand, TrialsAtOnceHaveGpusOfTheirOwn) {
  const ScratchFolder folder;
  const std::string plan = tiny_plan(folder);
  std::filesystem::copy_file(SHARDWRIGHT_COMMAND, folder.file("shardwright"));
  const std::string fake = folder.write("shardwright-executor",
                                        "#!/bin/sh\n"
                                        "echo \"$CUDA_VISIBLE_DEVICES\" >>" +
                                            folder.file("gpus") + "\nsleep 1\nexit 1\n");
  std::filesystem::permissions(fake, std::filesystem::perms::owner_all);
  const std::string tune =
      " ./shardwright tune plan.json --data corpus.txt --steps 16 --trials 4 --vary "
      "lr=1e-4..1e-2 --device cuda --force --out tune 2>errors";
  const auto run = [&](const std::string& setting, const std::string& options) {
    std::filesystem::remove(folder.file("gpus"));
    EXPECT_NE(
        std::system(("cd " + folder.path().string() + " && " + setting + tune + options).c_str()),
        0);
    std::vector<std::string> gpus = words_of(folder.read("gpus"));
    std::ranges::sort(gpus);
    return gpus;
  };
  using testing::ElementsAre;
  EXPECT_THAT(run("CUDA_VISIBLE_DEVICES=7,GPU-ab,4", " --ranks 2"), ElementsAre("7", "GPU-ab"));
  EXPECT_THAT(run("env -u CUDA_VISIBLE_DEVICES", " --ranks 2"), ElementsAre("0", "1"));
  EXPECT_THAT(run("env -u CUDA_VISIBLE_DEVICES", ""), ElementsAre("0"));
  EXPECT_THAT(run("CUDA_VISIBLE_DEVICES=3", " --ranks 2"), ElementsAre());
  EXPECT_THAT(folder.read("errors"), HasSubstr("at most the 1 GPU of CUDA_VISIBLE_DEVICES"));
}

// Without --rungs there are as many as have a step each, also with the largest batch.
TEST(TuneCommand, StepsDecideHowManyRungsThereAre) {
  const ScratchFolder folder;
  const std::string line = "tune " + tiny_plan(folder) + " --trials 30 --vary lr=1e-4..1e-2 ";
  const auto rungs = [&](const std::string& options) {
    return json_of(line + "--simulate " + options).at("rungs").size();
  };
  EXPECT_EQ(rungs("--steps 1000"), 4U) << "of 30 trials";
  EXPECT_EQ(rungs("--steps 27"), 4U);
  EXPECT_EQ(rungs("--steps 26"), 3U);
  EXPECT_EQ(rungs("--steps 10"), 3U);
  EXPECT_EQ(rungs("--steps 10 --vary global-batch=4,8"), 2U) << "of 5 steps";
  EXPECT_EQ(rungs("--steps 1"), 1U);
  EXPECT_EQ(rungs("--steps 4 --search population"), 4U);
  expect_refused(line + "--simulate --steps 10 --rungs 4", {"--steps", "27", "fewer --rungs"});
  expect_refused(line + "--simulate --steps 1 --vary global-batch=8",
                 {"--steps", "at least 2, so that each trial has a step"});
}

TEST(TuneCommand, NamesAllProblemsAtOnce) {
  const ScratchFolder folder;
  expect_refused("tune " + tiny_plan(folder) +
                     " --steps 3 --trials 9 --reduction 1 --search randm --vary lr=1e-2..1e-4 "
                     "--vary lr=nan --vary beta2=1.5 --vary warmup=3 --vary warmup-steps=2..9 "
                     "--vary global-batch=3.5 --rungs 7 --ranks 0 --device gpu",
                 {"--search", "did you mean \"random\"", "1e-2..1e-4", "\"nan\" of lr",
                  "\"1.5\" of beta2", "\"warmup\"", "warm-up of 9 steps", "\"3.5\" of global-batch",
                  "--reduction", "--rungs", "--ranks", "--device", "--data", "--out"});
  expect_refused("tune " + tiny_plan(folder) +
                     " --steps 4 --vary lr=1e-3 --vary global-batch=4..1000000000 --search "
                     "population --simulate --data x --resume",
                 {"--data", "--resume", "global-batch with --search population", "--steps"});
}

}  // namespace
}  // namespace shardwright::cli
