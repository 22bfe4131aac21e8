// import: training logs, and launches of frameworks' programs.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "tests/cli/command_run.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

TEST(ImportLogs, ReadsTrainingLogs) {
  const ScratchFolder folder;
  const std::string log = folder.write(
      "train.log", "iteration 5/ 100 | elapsed time per iteration (ms): 1500.0 | lm loss: 2.5 |\n");
  const json report = json_of("import " + log +
                              " " SHARDWRIGHT_SOURCE_DIR
                              "/tests/calibration/traces/files/one-triton-kernel.json.gz");
  EXPECT_EQ(report.at("files").size(), 1U);
  EXPECT_EQ(report.at("logs").at(0).at("framework"), "Megatron-LM");
  EXPECT_EQ(report.at("logs").at(0).at("step_s"), 1.5);
  EXPECT_THAT(run_command("import " + log).output,
              testing::AllOf(HasSubstr("1.5 s"), testing::Not(HasSubstr("how long a step took"))));
  const std::string timeless =
      folder.write("nemo.log", "global_step: 3 | reduced_train_loss: 8.5 | val_loss: 9.5\n");
  EXPECT_THAT(run_command("import " + timeless).output,
              testing::AllOf(HasSubstr("8.5"), HasSubstr("how long a step took"),
                             HasSubstr("TimingCallback")));
}

// A script may print what it runs, and others print quotes that nothing closes.
TEST(ImportLogs, ReadsLogsThatBeginWithALaunch) {
  const ScratchFolder folder;
  const std::string arguments =
      " pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length "
      "128\n";
  const std::string step = "iteration 5/ 100 | elapsed time per iteration (ms): 1500.0 |\n";
  const std::string traced =
      folder.write("traced.log", "+ torchrun --nproc-per-node 2" + arguments + step);
  EXPECT_EQ(json_of("import " + traced).at("logs").at(0).at("step_s"), 1.5);
  EXPECT_EQ(json_of("import " + traced).at("plans").size(), 1U);
  const std::string quoted = folder.write("quoted.log", arguments + "it's here\n" + step);
  EXPECT_EQ(json_of("import " + quoted).at("logs").at(0).at("step_s"), 1.5);
}

// Runs whose loss is lost are the ones that people look at.
TEST(ImportLogs, WarnsOfALossThatIsNotFinite) {
  const ScratchFolder folder;
  std::string text;
  for (const char* loss : {"3.25E+00 | throughput per GPU (TFLOP/s/GPU): 410.5", "nan", "inf"})
    text += fmt::format(
        " iteration {:3}/ 9 | elapsed time per iteration (ms): 500.0 | lm loss: {} | grad norm: "
        "1.5 |\n",
        7 + std::count(text.begin(), text.end(), '\n'), loss);
  const CommandResult result = run_command("import " + folder.write("steps.log", text));
  EXPECT_THAT(result.output, HasSubstr("410.5"));
  EXPECT_THAT(result.output, HasSubstr("3.25"));
  EXPECT_THAT(result.output + result.errors,
              HasSubstr("The loss in steps.log is not finite at 2 of its steps, first at step 8."));
  const json log = json_of("import " + folder.file("steps.log")).at("logs").at(0);
  EXPECT_EQ(log.at("steps_without_finite_loss"), json::parse("[8, 9]"));
}

// What a plan's export launches is that plan again.
TEST(ImportLogs, TheLaunchOfAnExportGivesItsPlan) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json"), script = folder.file("launch.sh");
  ASSERT_EQ(
      run_command(
          "simulate --model llama3-8b --cluster dgx-a100 --gpus 32 --tp 2 --pp 2 --global-batch 64 "
          "--seq-len 8192 --stack megatron-core --out " +
          plan)
          .exit_code,
      0);
  ASSERT_EQ(run_command("export " + plan + " --format megatron --out " + script).exit_code, 0);
  const CommandResult result =
      run_command("import " + script + " --out " + folder.file("measured"));
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("llama3-8b on 32 x a100"));
  EXPECT_EQ(json::parse(folder.read("measured/plan.json")), json::parse(folder.read("plan.json")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("measured/kernels.csv")));
}

constexpr const char* kLoggedRun = R"(------------------------ arguments ------------------------
  hidden_size ..................................... 1024
  num_attention_heads ............................. 16
  num_layers ...................................... 24
  seq_length ...................................... 1024
  world_size ...................................... 8
-------------------- end of arguments ---------------------
)";

TEST(ImportLogs, ALogHasStepsAndAPlan) {
  const ScratchFolder folder;
  std::string log = kLoggedRun;
  for (int step = 1; step < 5; ++step)
    log += " iteration " + std::to_string(step) +
           "/ 10 | elapsed time per iteration (ms): 900.0 | lm loss: 2.0E+00 |\n";
  const json both = json_of("import " + folder.write("run.log", log));
  EXPECT_EQ(both.at("logs").at(0).at("steps").size(), 4U);
  const json& plan = both.at("plans").at(0);
  EXPECT_EQ(plan.at("plan").at("plan").at("dp"), 8);
  EXPECT_EQ(plan.at("plan").at("model").at("hidden"), 1024);
  EXPECT_EQ(plan.at("assumed").size(), 1U) << plan.at("assumed");
  const json alone = json_of("import " + folder.write("start.log", kLoggedRun));
  EXPECT_EQ(alone.at("plans").size(), 1U);
  EXPECT_TRUE(alone.at("logs").empty());
}

// A plan beside a log says what its step should take; a profile beside one has nothing to be
// refitted from.
TEST(ImportLogs, ComparesLogsWithAPlan) {
  const ScratchFolder folder;
  std::string steps;
  for (int step = 1; step < 30; ++step)
    steps += fmt::format(
        "2025-02-05 18:31:{:02},000 - root - INFO - step: {}  loss: 5.0  memory: 42.15GiB(53.28%)  "
        "tps: 7,000  mfu: 40.5%\n",
        step, step);
  const std::string titan = folder.write("titan.log", steps);
  const std::string scenario =
      " --model llama3-8b --cluster dgx-h100 --gpus 8 --global-batch 8 --seq-len 8192 --zero 3 ";
  const json beside = json_of("import " + titan + scenario);
  const json simulated = json_of("simulate" + scenario);
  EXPECT_EQ(beside.at("planned_step_s"), simulated.at("step_s"));
  EXPECT_TRUE(beside.at("warnings").empty());
  const json profile = json_of("import " + titan + " --cluster dgx-h100");
  EXPECT_TRUE(profile.at("planned_step_s").is_null());
  EXPECT_THAT(profile.at("warnings").dump(), testing::HasSubstr("there is no trace"));
}

// 8 sequences of 8,192 tokens in a step on 8 GPUs, of which each states 4,096 tokens/s.
TEST(ImportLogs, TakesStepsFromThroughputAndThePlan) {
  const ScratchFolder folder;
  const std::string titan = folder.write(
      "titan.log", "step:  1  loss: 7.0  tps: 100  mfu: 1%\nstep: 10  loss: 6.0  tps: 4,096\n");
  const std::string silent = folder.write(
      "silent.log", "iteration 5/ 10 | elapsed time per iteration (ms): nan | lm loss: 2.0 |\n");
  const std::string plan =
      " --model llama3-8b --cluster dgx-h100 --gpus 8 --global-batch 8 --seq-len 8192 --zero 3 ";
  const json report = json_of("import " + titan + " " + silent + plan);
  EXPECT_EQ(report.at("logs").at(0).at("step_s"), 2.0);
  EXPECT_EQ(report.at("logs").at(0).at("times_from_throughput"), true);
  EXPECT_TRUE(report.at("logs").at(1).at("step_s").is_null());
  EXPECT_THAT(report.at("warnings").dump(),
              testing::AllOf(HasSubstr("silent.log"), HasSubstr("no times and no throughput")));
  EXPECT_THAT(run_command("import " + titan + plan).output,
              testing::AllOf(HasSubstr("that of titan.log takes 2 s"), HasSubstr("throughput")));
  EXPECT_TRUE(json_of("import " + titan).at("logs").at(0).at("step_s").is_null());
}

TEST(ImportLogs, SaysHowOftenALoggedRunStarted) {
  const ScratchFolder folder;
  std::string text;
  for (const int step : {10, 20, 30, 15, 25})
    text += fmt::format("iteration {}/ 90 | elapsed time per iteration (ms): 500.0 |\n", step);
  const std::string log = folder.write("run.log", text);
  EXPECT_THAT(run_command("import " + log).output,
              testing::AllOf(HasSubstr("The run in run.log started 2 times."),
                             HasSubstr("repeated 2 logged")));
  const json report = json_of("import " + log).at("logs").at(0);
  EXPECT_EQ(report.at("attempts"), 2);
  EXPECT_EQ(report.at("repeated_steps"), 2);
  EXPECT_EQ(report.at("steps").size(), 3U);
}

TEST(ImportLogs, RefusesLaunchesThatAreNoPlan) {
  const ScratchFolder folder;
  const std::string arguments =
      " pretrain_gpt.py --num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 ";
  expect_refused("import " + folder.write("a.sh", "python" + arguments),
                 {"a.sh", "number of processes", "--gpus N"});
  EXPECT_EQ(run_command("import --gpus 2 " + folder.file("a.sh")).exit_code, 0);
  expect_refused("import " + folder.write("b.sh", "torchrun --nproc-per-node 8" + arguments +
                                                      "--tensor-model-parallel-size 8"),
                 {"b.sh", "/plan/tp"});
  expect_refused("import " + folder.write("c.sh", "A='x" + arguments), {"c.sh", "line 1"});
  const std::string launch = "torchrun --nproc-per-node 8" + arguments;
  expect_refused("import " + folder.write("d.sh", launch + "--tensor-model-parallel-size 0"),
                 {"--tensor-model-parallel-size: found 0; expected a number from 1 on"});
  expect_refused(
      "import " + folder.write("e.sh", launch + "--ffn-hidden-size $(cat f)"),
      {"--ffn-hidden-size: found no value, as it is the output of $(cat f)", "a whole number"});
  expect_refused("import " + folder.write("f.sh", "ARGS=\"" + arguments + "\"\necho $ARGS\n"),
                 {"the arguments of a model, and no command", "torchrun"});
  expect_refused("import " + folder.write("t5.sh",
                                          "torchrun --nproc-per-node 8 pretrain_t5.py "
                                          "--hidden-size 256 --encoder-num-layers 4 "
                                          "--decoder-num-layers 4"),
                 {"pretrain_t5.py", "--decoder-num-layers", "without an encoder"});
  expect_refused(
      "import " + folder.write("nemo.yaml",
                               "trainer: {devices: -1, num_nodes: 2}\nmodel: {num_layers: "
                               "4, hidden_size: 256, num_attention_heads: 4, "
                               "encoder_seq_length: 128}\n"),
      {"found trainer.num_nodes 2, trainer.devices -1; expected --gpus N, or "
       "trainer.num_nodes and trainer.devices as numbers"});
  expect_refused("import " + folder.write("recipe.yaml", "model: {seq_length: 4096}\n"),
                 {"no line that states a step", "YAML of NeMo or Megatron-Bridge"});
  // The command's name stands once.
  EXPECT_THAT(run_command("import " + folder.file("a.sh") + " --gpus abc").errors,
              testing::StartsWith("shardwright import: --gpus: found \"abc\""));
}

// Scripts are often called with the size of the model and the degrees.
TEST(ImportLogs, ScriptsTakeTheirArgumentsFromTheCommandLine) {
  const ScratchFolder folder;
  const std::string script = folder.write(
      "run.sh",
      "LAYERS=8\nif [ $1 = small ]; then LAYERS=4; fi\ntorchrun --nproc-per-node 8 pretrain_gpt.py "
      "--num-layers $LAYERS --hidden-size 256 --num-attention-heads 4 --seq-length $2 --save $3\n");
  expect_refused("import " + script,
                 {"--seq-length: found no value, as it is $2, a positional parameter that "
                  "--arguments states"});
  const auto called_with = [&](const std::string& arguments) {
    return run_command(
        std::vector<std::string>{"import", script, "--arguments", arguments, "--json", "-"});
  };
  const auto layers_and_tokens = [&](const std::string& arguments) {
    const json document = json::parse(called_with(arguments).output);
    const json& plan = document.at("plans").at(0).at("plan");
    return std::pair(plan.at("model").at("layers").get<int>(),
                     plan.at("plan").at("seq_len").get<int>());
  };
  EXPECT_EQ(layers_and_tokens("small 512 'my run'"), std::pair(4, 512));
  EXPECT_EQ(layers_and_tokens("large 128"), std::pair(8, 128));
  const CommandResult open = called_with("'small");
  EXPECT_EQ(open.exit_code, 2);
  EXPECT_THAT(open.errors, HasSubstr("--arguments: line 1: found a quotation mark that is not"));
  expect_refused(
      "import " +
          folder.write("step.log", "iteration 5/ 9 | elapsed time per iteration (ms): 15.0 |\n") +
          " --arguments 8B",
      {"--arguments: found no launch script"});
}

}  // namespace
}  // namespace shardwright::cli
