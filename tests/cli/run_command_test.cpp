// run: hands over to the executor, with its streams and exit status.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "core/spec/profile_library.hpp"
#include "core/timeline/timeline.hpp"
#include "core/timeline/timeline_file.hpp"
#include "tests/cli/command_run.hpp"
#include "tests/process_end.hpp"

namespace shardwright::cli {
namespace {

using testing::HasSubstr;

std::string plan_file(const ScratchFolder& folder, const std::string& precision) {
  std::string file = folder.file("plan.json");
  const CommandResult made = run_command(
      "simulate --model tiny-llama --cluster h100-pcie-server --stack shardwright --gpus 2 --tp 2 "
      "--global-batch 2 --seq-len 16 --precision " +
      precision + " --out " + file);
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  return file;
}

std::string text_file(const ScratchFolder& folder) {
  std::string file = folder.file("corpus.txt");
  std::ofstream(file) << std::string(500, 'a') << std::string(500, 'b');
  return file;
}

TEST(RunCommand, TrainsAPlanAndWritesMetrics) {
  const ScratchFolder folder;
  const std::string out = folder.file("run");
  const CommandResult result = run_command("run " + plan_file(folder, "fp32") + " --data " +
                                           text_file(folder) + " --steps 3 --out " + out);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("3 steps, loss "));
  std::ifstream metrics(out + "/metrics.jsonl");
  int steps = 0;
  for (std::string line; std::getline(metrics, line); ++steps) {
    const auto read = nlohmann::json::parse(line);
    EXPECT_EQ(read.at("step"), steps);
    EXPECT_GT(read.at("tokens_per_s"), 0.0);
  }
  EXPECT_EQ(steps, 3);
}

TEST(RunCommand, TakesOptionsFromAFile) {
  const ScratchFolder folder;
  const std::string out = folder.file("run");
  const std::string file = folder.write(
      "run.yaml", "plan: " + plan_file(folder, "fp32") + "\ndata: " + text_file(folder) +
                      "\nsteps: 3\nout: " + out + "\nlr: 0.001\nno_progress: true\nforce: false\n");
  const CommandResult result = run_command("run --options " + file + " --steps 2");
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("2 steps, loss "));
  // Files of an earlier run are kept, as `force` is false.
  EXPECT_EQ(run_command("run --options " + file).exit_code, 2);
  EXPECT_EQ(run_command("run --options=" + file + " --force").exit_code, 0);
  const CommandResult nested =
      run_command("run --options " + folder.write("nested.yaml", "steps: {first: 1}\n"));
  EXPECT_EQ(nested.exit_code, 2);
  EXPECT_THAT(nested.errors, HasSubstr("nested.yaml: steps: found a nested value"));
}

std::vector<nlohmann::json> metrics_in(const std::string& folder) {
  std::ifstream stream(folder + "/metrics.jsonl");
  std::vector<nlohmann::json> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST(RunCommand, StopsAfterAStepAndContinuesOnTheSameLearningRates) {
  const ScratchFolder folder;
  const std::string line = "run " + plan_file(folder, "fp32") + " --data " + text_file(folder) +
                           " --steps 12 --warmup-steps 3 --out " + folder.file("");
  ASSERT_EQ(run_command(line + "whole").exit_code, 0);
  ASSERT_EQ(run_command(line + "parts --stop-after 5").exit_code, 0);
  EXPECT_EQ(metrics_in(folder.file("parts")).size(), 5U);
  ASSERT_EQ(run_command(line + "parts --stop-after 12 --resume").exit_code, 0);
  const auto whole = metrics_in(folder.file("whole")), parts = metrics_in(folder.file("parts"));
  ASSERT_EQ(parts.size(), 12U);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    EXPECT_EQ(parts[i].at("loss"), whole[i].at("loss")) << i;
    EXPECT_EQ(parts[i].at("learning_rate"), whole[i].at("learning_rate")) << i;
  }
  expect_refused(line + "more --stop-after 13", {"--stop-after", "at most the 12 of --steps"});
}

TEST(RunCommand, DoublesTheBatchAsTheNoiseScaleAsks) {
  const ScratchFolder folder;
  const std::string plan = folder.file("wide.json");
  ASSERT_EQ(
      run_command("simulate --model tiny-llama --cluster h100-pcie-server --stack shardwright "
                  "--gpus 2 --dp 2 --global-batch 2 --seq-len 16 --precision fp32 --out " +
                  plan)
          .exit_code,
      0);
  std::string text;
  for (int i = 0; i < 3000; ++i) text += static_cast<char>('a' + (i * i + i / 7) % 26);
  const std::string line = "run " + plan + " --data " + folder.write("text.txt", text) +
                           " --steps 150 --lr 0.001 --out ";
  const CommandResult run =
      run_command(line + folder.file("run") + " --global-batch auto --max-global-batch 4");
  ASSERT_EQ(run.exit_code, 0) << run.errors;
  EXPECT_THAT(run.errors, HasSubstr("continuing with 4 sequences"));
  const auto lines = metrics_in(folder.file("run"));
  ASSERT_EQ(lines.size(), 150U);
  // A step has 2 sequences of 16 tokens until a noise scale of twice as many was measured, and 4
  // from then on.
  bool doubled = false;
  for (const auto& each : lines) {
    const double tokens = each.at("tokens_per_s").get<double>() * each.at("step_s").get<double>();
    if (!doubled && tokens > 40.0) doubled = true;
    EXPECT_NEAR(tokens, doubled ? 64.0 : 32.0, 1e-6) << each.at("step");
  }
  EXPECT_TRUE(doubled);
  const auto last_small = std::find_if(lines.begin(), lines.end(),
                                       [](const auto& each) {
                                         return each.at("tokens_per_s").template get<double>() *
                                                    each.at("step_s").template get<double>() >
                                                40.0;
                                       }) -
                          1;
  EXPECT_GE(last_small->at("gradient_noise_scale_tokens"), 64.0);
  expect_refused(line + folder.file("a") + " --global-batch auto", {"--max-global-batch"});
  expect_refused(line + folder.file("b") + " --max-global-batch 4", {"--max-global-batch"});
  expect_refused("run " + plan_file(folder, "fp32") + " --data " + text_file(folder) +
                     " --steps 3 --global-batch auto --max-global-batch 1 --out " +
                     folder.file("c"),
                 {"dp above 1", "at least the plan's 2"});
}

TEST(RunCommand, TimelinesSayTheirStep) {
  const ScratchFolder folder;
  const CommandResult result =
      run_command("run " + plan_file(folder, "fp32") + " --data " + text_file(folder) +
                  " --steps 3 --timeline-steps 0,2 --out " + folder.file("run"));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  for (const TimelineFile file : {TimelineFile{0, 0}, {0, 1}, {2, 0}, {2, 1}}) {
    const std::string name = "run/" + name_of(file);
    EXPECT_EQ(read_timeline(nlohmann::json::parse(folder.read(name)), name).step, file.step);
  }
}

// Both results fail: that of the first of two ranks, a process of its own, and the command's own.
TEST(RunCommand, FailsWhereItsResultCannotBeWritten) {
  const ScratchFolder folder;
  const std::string plan = plan_file(folder, "fp32");
  for (const std::string& line :
       {"run " + plan + " --data " + text_file(folder) + " --steps 2 --out " + folder.file("run"),
        std::string("run --help")}) {
    expect_errors(1, line, {"standard output: cannot be written: No space left"},
                  {.output_file = "/dev/full"});
  }
}

// In the container of a launcher, or a batch step of Slurm.
const std::vector<std::pair<std::string, std::string>> kLaunchersVariables = {
    {"RANK", "0"},         {"WORLD_SIZE", "1"},   {"LOCAL_RANK", "0"},
    {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "1"}, {"MASTER_ADDR", "127.0.0.1"}};

TEST(RunCommand, StartsItsRanksHereWhateverALauncherHasSet) {
  const ScratchFolder folder;
  const CommandResult result =
      run_command("run " + plan_file(folder, "fp32") + " --data " + text_file(folder) +
                      " --steps 1 --out " + folder.file("run"),
                  {.environment = kLaunchersVariables});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
}

TEST(ProbeCommand, MeasuresAsManyRanksAsRequested) {
  const ScratchFolder folder;
  const std::string here = folder.file("here.json");
  const CommandResult result = run_command("probe --device cpu --ranks 2 --steps 2 --out " + here,
                                           {.environment = kLaunchersVariables});
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(load_cluster(here).node.accelerators, 2);
}

// Also by a signal that it cannot hear: who measures for it ends too, with its ranks.
TEST(ProbeCommand, LeavesNoProcessHoweverItEnds) {
  for (const int signal : {SIGTERM, SIGKILL}) {
    const ScratchFolder folder;
    RunningCommand probe("probe --device cpu --ranks 2 --steps 5000 --out " + folder.file("h"));
    const std::vector<pid_t> processes = probe.wait_for_processes(3);
    EXPECT_EQ(processes.size(), 3U);
    probe.send(signal);
    EXPECT_EQ(probe.finish().exit_code, 128 + signal);
    for (const pid_t process : processes) EXPECT_TRUE(ends_soon(process)) << signal;
  }
}

// They are of a probe of this machine, and what is there has been measured.
TEST(ProbeCommand, RefusesHowToMeasureBesideMeasurements) {
  const ScratchFolder folder;
  for (const std::string& way : {std::string("--steps 3"), std::string("--ranks 2"),
                                 "--keep " + folder.file("k"), std::string("--share-gpu")}) {
    expect_refused(
        "probe --from " + folder.file("m") + " --out " + folder.file("here.json") + " " + way,
        {"--from: found also --ranks, --steps, --keep"});
  }
}

TEST(ProbeCommand, RefusesCountsThatAreNone) {
  const ScratchFolder folder;
  for (const std::string count : {"2.5", "1e2", "-1", "0", "1025"}) {
    expect_refused("probe --ranks " + count + " --out " + folder.file("here.json"),
                   {"--ranks: found \"" + count + "\"; expected an integer from 1 to 1,024"});
  }
}

TEST(ProbeCommand, NamesTheGpuThatIsMissing) {
  const ScratchFolder folder;
  const std::string here = folder.file("here.json");
  const CommandResult result = run_command("probe --device cuda --out " + here,
                                           {.environment = {{"CUDA_VISIBLE_DEVICES", ""}}});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.errors, HasSubstr("--device: found no CUDA device"));
  EXPECT_THAT(result.errors, testing::Not(HasSubstr("failed")));
  EXPECT_FALSE(std::filesystem::exists(here));
  expect_refused("probe --device Cuda --out " + here,
                 {"--device: found \"Cuda\"; expected one of cpu, cuda, auto "
                  "(did you mean \"cuda\"?)"});
}

TEST(RunCommand, RefusesWhatTheExecutorLacks) {
  const ScratchFolder folder;
  expect_refused("run " + plan_file(folder, "fp16") + " --data " + text_file(folder) +
                     " --steps 3 --out " + folder.file("run"),
                 {"/plan/precision: found fp16; expected fp32 or bf16"});
  EXPECT_FALSE(std::filesystem::exists(folder.file("run")));
}

// The plan that it writes is one that the run goes on under.
TEST(ReplanCommand, WritesThePlanOfTheRanksThatAreLeft) {
  const ScratchFolder folder;
  const std::string plan = plan_file(folder, "fp32"), smaller = folder.file("smaller.json");
  const std::string out = folder.file("run");
  const auto run = [&](const std::string& with, const std::string& more) {
    const CommandResult result = run_command("run " + with + " --data " + text_file(folder) +
                                             " --steps 4 --out " + out + more);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
  };
  run(plan, " --checkpoint-every 2");
  const CommandResult made = run_command("replan " + plan + " --ranks 1 --out " + smaller);
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  std::ifstream stream(smaller);
  EXPECT_EQ(nlohmann::json::parse(stream).at("plan").at("tp"), 1);
  std::filesystem::remove_all(out + "/checkpoints/step-00000004");
  run(smaller, " --resume");
  EXPECT_EQ(run_command("replan " + plan + " --ranks 0 --out " + smaller).exit_code, 2);
}

// The plan for slow ranks can be simulated, and the plan so far is the one that a run is under.
TEST(ReplanCommand, GivesASlowRankLessWork) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json"), other = folder.file("other.json");
  ASSERT_EQ(
      run_command("simulate --model llama3.2-1b --cluster dgx-h100 --stack shardwright --gpus "
                  "4 --dp 4 --global-batch 32 --seq-len 1024 --out " +
                  plan)
          .exit_code,
      0);
  const std::string replan = "replan " + plan + " --force --out " + other;
  const CommandResult made = run_command(replan + " --slow-rank 2:3");
  EXPECT_EQ(made.exit_code, 0) << made.errors;
  EXPECT_THAT(made.output, HasSubstr("replicas of 10, 10, 3, 9 microbatches"));
  EXPECT_EQ(run_command("simulate --plan " + other).exit_code, 0);
  const std::string now = " --now " + folder.file("now.json");
  std::filesystem::copy_file(other, folder.file("now.json"));
  EXPECT_EQ(run_command(replan + now + " --slow-rank 2:3").exit_code, 4) << "it is under that plan";
  EXPECT_EQ(run_command(replan + now).exit_code, 0) << "the rank is fast again";
  const auto content = [](const std::string& file) {
    std::ifstream stream(file);
    return nlohmann::json::parse(stream);
  };
  EXPECT_EQ(content(other), content(plan));
  expect_refused(replan, {"--ranks: found nothing"});
  expect_refused(replan + " --ranks 2 --slow-rank 2:3", {"--ranks: found 2 with --slow-rank"});
  expect_refused(replan + " --slow-rank 4:2 --slow-rank 1:0.5 --slow-rank 1",
                 {"--slow-rank: found \"4\"", "a factor from 1 to 100", "RANK:FACTOR"});
}

TEST(RunCommand, RefusesToMoveWorkThatCannotMove) {
  const ScratchFolder folder;
  const std::string line = "run " + plan_file(folder, "fp32") + " --data " + text_file(folder) +
                           " --steps 3 --rebalance --out " + folder.file("run");
  expect_refused(line, {"/plan: found dp 1, ZeRO 1, pp 1, vpp 1",
                        "for --rebalance: replicas with ZeRO 0 or 1"});
  expect_refused(line + " --restarts 1 --elastic", {"--elastic excludes --rebalance"});
}

TEST(RunCommand, RefusesWeightsOfAnotherModel) {
  const ScratchFolder folder;
  expect_refused("run " + plan_file(folder, "fp32") + " --data " + text_file(folder) +
                     " --steps 1 --out " + folder.file("run") + " --init-from " +
                     folder.file("nothing"),
                 {"--init-from"});
}

// A run that begins with exported weights has the first loss of one that begins with the
// checkpoint: exactly in fp32, and within their rounding in bf16.
TEST(ExportWeights, AreThoseOfTheCheckpoint) {
  const ScratchFolder folder;
  const std::string plan = plan_file(folder, "fp32"), text = text_file(folder);
  const auto first_loss_of = [&](const std::string& options, const std::string& out) {
    const CommandResult result = run_command("run " + plan + " --data " + text +
                                             " --steps 3 --out " + folder.file(out) + options);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    std::ifstream metrics(folder.file(out) + "/metrics.jsonl");
    std::string read;
    std::getline(metrics, read);
    return nlohmann::json::parse(read).at("loss").get<double>();
  };
  first_loss_of(" --lr 0.001 --warmup-steps 0 --stop-after 1", "first");
  const std::string weights = "export --weights " + folder.file("first") + " --out ";
  const CommandResult exported = run_command(weights + folder.file("fp32") + " --dtype fp32");
  EXPECT_EQ(exported.exit_code, 0) << exported.errors;
  EXPECT_THAT(exported.errors, HasSubstr("the weights of tiny-llama after step 1: "));
  EXPECT_EQ(run_command(weights + folder.file("bf16")).exit_code, 0);
  const std::string checkpoint = folder.file("first") + "/checkpoints/step-00000001";
  const double expected = first_loss_of(" --init-from " + checkpoint, "expected");
  EXPECT_EQ(first_loss_of(" --init-from " + folder.file("fp32"), "exact"), expected);
  const double rounded = first_loss_of(" --init-from " + folder.file("bf16"), "rounded");
  EXPECT_NE(rounded, expected);
  EXPECT_NEAR(rounded / expected, 1.0, 1e-3);
  EXPECT_EQ(run_command(weights + folder.file("bf16")).exit_code, 2);
  EXPECT_EQ(run_command(weights + folder.file("bf16") + " --force").exit_code, 0);
}

TEST(RunCommand, ExplainsTheExecutorsOptions) {
  const CommandResult help = run_command("run --help");
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_THAT(help.output, HasSubstr("--checkpoint-every"));
  EXPECT_THAT(help.output, HasSubstr("Usage: shardwright run "));
  std::istringstream lines(help.output);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
  const CommandResult unknown = run_command("run --no-such-option");
  EXPECT_EQ(unknown.exit_code, 2);
}

}  // namespace
}  // namespace shardwright::cli
