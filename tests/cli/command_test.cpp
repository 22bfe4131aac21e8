// The contract of the command: exit codes, what goes to which stream, the names in its JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/output/embedding.hpp"
#include "cli/output/exit_code.hpp"
#include "cli/output/terminal.hpp"
#include "core/timeline/timeline.hpp"
#include "tests/cli/command_run.hpp"
#include "tests/sanitized.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::ContainsRegex;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string simulate_of(const std::string& model) {
  return "simulate --model " + model +
         " --cluster dgx-h100 --gpus 8 --tp 2 --global-batch 32 --seq-len 8192";
}

const std::string kSimulate = simulate_of("llama3-8b");

// A run of Llama 3 405B on 16,384 GPUs (arXiv 2407.21783, section 3.3.2).
const std::string kLlama405b =
    "simulate --model llama3.1-405b --cluster dgx-h100 --gpus 16384 --tp 8 --pp 16 "
    "--schedule interleaved --global-batch 2048 --seq-len 8192";

// The widest line of a text, in terminal columns.
int widest_line(const std::string& text) {
  std::istringstream stream(text);
  int widest = 0;
  for (std::string line; std::getline(stream, line);)
    widest = std::max(widest, display_width(line));
  return widest;
}

TEST(Command, HelpAndVersionSucceedOnStandardOutput) {
  for (const char* option : {"--help", "--version"}) {
    const CommandResult result = run_command(option);
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("shardwright"));
    EXPECT_THAT(result.errors, IsEmpty());
  }
}

TEST(Command, HelpOfASubcommandShowsItsOptions) {
  const CommandResult result = run_command("simulate --help");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("--global-batch"));
}

TEST(Command, HelpShowsItsOwnExamples) {
  for (const std::string name :
       {"plan",        "replan",      "scale",       "simulate",      "probe",
        "calibrate",   "explain",     "compare",     "export",        "validate",
        "fit",         "network",     "gui",         "models",        "clusters",
        "stacks",      "models list", "models show", "clusters list", "clusters show",
        "stacks list", "stacks show", "schema"}) {
    const CommandResult help = run_command(name + " --help");
    EXPECT_EQ(help.exit_code, 0);
    // Further examples may go on with the result of the first one.
    const std::size_t first = help.output.find("\n  shardwright ");
    ASSERT_NE(first, std::string::npos) << name;
    const std::string example =
        help.output.substr(first, help.output.find('\n', first + 1) - first);
    EXPECT_TRUE((example + " ").starts_with("\n  shardwright " + name + " ")) << example;
  }
}

// Sequences and batches are called by powers of two, memory by bytes, shares by percent.
TEST(Command, SizesTakeSuffixesAndModelsTheirHubId) {
  const CommandResult plain = run_command(
      "simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 --global-batch 1024 "
      "--seq-len 8192 --set cluster.accelerator.memory.capacity_bytes=96000000000 --json -");
  const CommandResult suffixes = run_command(
      "simulate --model meta-llama/Meta-Llama-3-8B --cluster dgx-h100 --gpus 8 --tp 2 "
      "--global-batch 1k --seq-len 8k --set cluster.accelerator.memory.capacity_bytes=96GB "
      "--json -");
  EXPECT_EQ(plain.exit_code, 0) << plain.errors;
  EXPECT_EQ(suffixes.output, plain.output) << suffixes.errors;
}

TEST(Command, SimulatePrintsTheContractsNames) {
  const CommandResult result = run_command(kSimulate + " --json -");
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, IsEmpty());
  const json step = json::parse(result.output);
  for (const char* key : {"dp", "tp", "pp", "cp", "ep", "vpp", "zero_stage", "micro_batch",
                          "global_batch", "recompute", "schedule"}) {
    EXPECT_TRUE(step["plan"].contains(key)) << key;
  }
  for (const char* key : {"step_s", "tokens_per_s_per_gpu", "tflops_per_gpu", "mfu"})
    EXPECT_GT(step[key].get<double>(), 0.0) << key;
  for (const char* axis : {"tp", "dp", "pp", "cp", "ep"})
    EXPECT_TRUE(step["time"]["exposed"][axis].is_number()) << axis;
  EXPECT_TRUE(step["time"]["compute_s"].is_number());
  EXPECT_TRUE(step["time"]["bubble_s"].is_number());
}

// The parts of the report add up to its totals.
TEST(Command, SimulateAddsUp) {
  const json step = json_of(kSimulate);
  const json& time = step["time"];
  double total = time["compute_s"].get<double>() + time["optimizer_s"].get<double>() +
                 time["interference_s"].get<double>() + time["bubble_s"].get<double>() +
                 time["host_s"].get<double>();
  for (const json& exposed : time["exposed"]) total += exposed.get<double>();
  EXPECT_NEAR(total, step["step_s"].get<double>(), 1e-9);

  double bytes = 0.0;
  for (const json& part : step["memory"]["breakdown"]) bytes += part.get<double>();
  EXPECT_NEAR(bytes, step["memory"]["peak_bytes"].get<double>(), 1.0);

  const double tokens_per_s = 32.0 * 8192.0 / step["step_s"].get<double>();
  EXPECT_NEAR(step["tokens_per_s_per_gpu"].get<double>(), tokens_per_s / 8.0, 1e-6);
}

TEST(Command, ModelsShowCountsParameters) {
  const json parameters = json_of("models show llama3-8b")["parameters"];
  // 8,030,261,248: the model card of meta-llama/Meta-Llama-3-8B.
  EXPECT_EQ(parameters["total"], 8030261248);
  EXPECT_EQ(parameters["active"], 8030261248);
  EXPECT_EQ(parameters["mtp"], 0);
}

TEST(Command, ListsAndShowsEverythingThatIsShipped) {
  for (const std::string kind : {"models", "clusters", "stacks"}) {
    const json entries = json_of(kind + " list")[kind];
    ASSERT_GT(entries.size(), 5u);
    const std::string name = entries.front()["name"];
    const CommandResult show = run_command(kind + " show " + name);
    EXPECT_EQ(show.exit_code, 0) << show.errors;
    EXPECT_THAT(show.output, HasSubstr(name));
  }
}

// Each figure has a label of its own: the kernel of attention is a name, its ratio a number.
TEST(Command, AShownStackNamesARatioApartFromWhatItIsOf) {
  const std::string shown = run_command("stacks show fsdp2").output;
  EXPECT_THAT(shown, ContainsRegex("fusion.attention_kernel +flash-attention-2"));
  EXPECT_THAT(shown, ContainsRegex("fusion.attention_kernel_ratio +0.95"));
}

TEST(Command, ShownModelsCanBeRead) {
  const ScratchFolder folder;
  const std::string file = folder.file("model.json");
  ASSERT_EQ(run_command("models show deepseek-v3 --json " + file).exit_code, 0);
  EXPECT_EQ(json_of("models show " + file), json::parse(folder.read("model.json")));
}

TEST(Command, PlanFilesRoundTripThroughStandardInput) {
  const CommandResult plan = run_command(kSimulate + " --out - --json /dev/null");
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  const std::string file = plan.output.substr(0, plan.output.find("\n}\n") + 3);
  const CommandResult again = run_command("simulate --plan - --json -", {.input = file});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  EXPECT_EQ(json::parse(again.output)["step_s"], json_of(kSimulate)["step_s"]);
}

// Data parallelism takes what the other degrees leave of the plan's accelerators, and says so.
TEST(Command, OptionsReplaceFieldsOfAPlanFileAndKeepItsAccelerators) {
  const ScratchFolder folder;
  const std::string file = folder.file("plan.json"), plan = "simulate --plan " + file;
  ASSERT_EQ(run_command(kSimulate + " --out " + file).exit_code, 0);
  EXPECT_EQ(json_of(plan + " --tp 4 --dp 2")["plan"]["tp"], 4);
  const json narrower = json_of(plan + " --tp 4");
  EXPECT_EQ(narrower["plan"]["dp"], 2);
  EXPECT_THAT(narrower["filled_in"].dump(), HasSubstr("dp 2"));
  EXPECT_EQ(json_of(plan + " --gpus 16")["plan"]["dp"], 8);
  EXPECT_THAT(json_of(plan + " --dp 8")["filled_in"].dump(), HasSubstr("16 accelerators"));
  expect_refused(plan + " --tp 3", {"a divisor of 8 accelerators"});
  expect_refused(plan + " --gpus 16 --dp 2", {});
}

TEST(Command, SaysWhetherAPlanFits) {
  const json small = json_of(kSimulate);
  EXPECT_EQ(small["fits"], true);
  EXPECT_EQ(small["shortfall_bytes"], 0.0);
  std::string large = simulate_of("llama3-70b");
  for (const std::string command : {"simulate", "explain"}) {
    large.replace(0, large.find(' '), command);
    const CommandResult text = run_command(large);
    EXPECT_EQ(text.exit_code, 4);
    EXPECT_THAT(text.output, HasSubstr("too much"));
    EXPECT_THAT(text.errors, HasSubstr("the plan does not fit into memory: it needs"));
    const CommandResult result = run_command(large + " --json -");
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_EQ(result.errors, text.errors);
    const json document = json::parse(result.output);
    EXPECT_EQ(document["fits"], false);
    const json cluster = json_of("clusters show dgx-h100");
    EXPECT_DOUBLE_EQ(document["shortfall_bytes"].get<double>(),
                     document["memory"]["peak_bytes"].get<double>() -
                         cluster["accelerator"]["memory"]["capacity_bytes"]["value"].get<double>());
  }
}

// A leaf of 16 nodes carries all 8 x 25 GB/s of half of them, and half of that leaves it.
TEST(Command, ShowsTheBisectionOfAnOversubscribedFabric) {
  const std::string page = run_command("clusters show a100-leaf-spine-2to1").output;
  EXPECT_THAT(page, ContainsRegex("128 +1,600 +25\n"));
  EXPECT_THAT(page, ContainsRegex("256 +1,600 +12\\.5\n"));
}

// The comparison was asked for, so it succeeds.
TEST(Command, ComparesPlansThatDoNotFit) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json");
  ASSERT_EQ(run_command(simulate_of("llama3-70b") + " --out " + plan).exit_code, 4);
  expect_errors(0, "compare " + plan + " " + plan,
                {"shardwright compare: A: the plan does not fit",
                 "shardwright compare: B: the plan does not fit"});
}

TEST(Command, OneTokenIsSingular) {
  EXPECT_THAT(run_command("simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 1 "
                          "--global-batch 32 --seq-len 1")
                  .output,
              HasSubstr("sequences of 1 token,"));
}

TEST(Command, EnvironmentVariablesStandInForOptions) {
  const CommandResult result =
      run_command(kSimulate + " --json -", {.environment = {{"SHARDWRIGHT_ZERO", "3"}}});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(json::parse(result.output)["plan"]["zero_stage"], 3);
  for (const char* prints : {"-", "true", "1"}) {
    const CommandResult again = run_command(
        kSimulate, {.environment = {{"SHARDWRIGHT_ZERO", "3"}, {"SHARDWRIGHT_JSON", prints}}});
    EXPECT_EQ(again.output, result.output) << prints;
  }
}

TEST(Command, FilesAreWrittenWholeAndNeverReplacedUnasked) {
  const ScratchFolder folder;
  const std::string file = folder.file("models.json");
  ASSERT_EQ(run_command("models list --json " + file).exit_code, 0);
  EXPECT_TRUE(json::accept(folder.read("models.json")));
  EXPECT_EQ(folder.files(), 1u) << "a temporary file is left over";

  EXPECT_EQ(run_command("stacks list --json " + file).exit_code, 2);
  EXPECT_THAT(folder.read("models.json"), HasSubstr("\"models\""));
  EXPECT_EQ(run_command("stacks list --json " + file + " --force").exit_code, 0);
  EXPECT_THAT(folder.read("models.json"), HasSubstr("\"stacks\""));
}

TEST(Command, FullDisksAndClosedOutputsAreFailures) {
  expect_errors(1, "models list", {"standard output: cannot be written"},
                {.output_file = "/dev/full"});
  expect_errors(1, "models list", {"standard output"}, {.close_output = true});
}

TEST(Command, EndsAlikeWhereItsMessagesCannotBeWritten) {
  for (const std::string line : {"models list", "models lits", "models show nowhere"}) {
    const CommandResult read = run_command(line);
    const CommandResult unread = run_command(line, {.errors_file = "/dev/full"});
    EXPECT_EQ(unread.exit_code, read.exit_code) << line;
    EXPECT_EQ(unread.output, read.output);
  }
}

// Terminals of 80 columns have room for each name in one piece; narrower ones fold the longest.
TEST(Command, ListsKeepToEachTerminalAndShowEveryColumn) {
  struct Case {
    const char* list;
    std::vector<std::string> columns;
  };
  for (const Case& each :
       {Case{"models", {"parameters", "KV heads", "vocabulary", "context"}},
        Case{"clusters", {"accelerator", "TFLOP/s", "scale-up", "scale-out", "fabric"}},
        Case{"stacks", {"family", "attention", "overlaps", "gradients", "launch"}}}) {
    const std::string line = each.list + std::string(" list");
    const json entries = json_of(line)[each.list];
    for (const int width : {40, 80, 200}) {
      SCOPED_TRACE(line + " at " + std::to_string(width));
      const CommandResult result =
          run_command(line, {.environment = {{"COLUMNS", std::to_string(width)}}});
      ASSERT_EQ(result.exit_code, 0) << result.errors;
      EXPECT_LE(widest_line(result.output), width) << result.output;
      for (const std::string& column : each.columns) EXPECT_THAT(result.output, HasSubstr(column));
      if (width < 80) continue;
      for (const json& entry : entries)
        EXPECT_THAT(result.output, HasSubstr(entry["name"].get<std::string>()));
    }
  }
}

// Examples are commands to copy, which help leaves whole.
int widest_line_but_examples(const std::string& text) {
  std::istringstream stream(text);
  std::string rest;
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("  shardwright") && !line.starts_with("      --")) rest += line + '\n';
  }
  return widest_line(rest);
}

TEST(Command, TablesAndHelpKeepToTheTerminal) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json"), other = folder.file("other.json");
  ASSERT_EQ(run_command(kSimulate + " --out " + plan).exit_code, 0);
  expect_refused(kSimulate + " --tp 4 --out " + other, {});
  ASSERT_EQ(run_command("simulate --plan " + plan + " --tp 4 --out " + other).exit_code, 0);
  const std::string rows = std::string(SHARDWRIGHT_SOURCE_DIR "/measurements/training/") +
                           (kSanitized ? "megatron" : "titan") + ".jsonl";
  const std::string scale =
      "scale --model llama3-8b --cluster dgx-h100 --gpus 8..16 --global-batch 64 --seq-len 8192";
  for (const int width : {40, 60, 72, 80}) {
    const CommandSetting narrow = {.environment = {{"COLUMNS", std::to_string(width)}}};
    std::vector<std::string> lines = {kSimulate};
    if (width > 40) {
      lines.insert(lines.end(),
                   {"validate --every-row " + rows, "clusters show dgx-h100", "stacks show fsdp2",
                    "compare " + plan + " " + other, "explain --plan " + plan, scale, "--help",
                    "plan --help", "validate --help"});
    }
    for (const std::string& line : lines) {
      const CommandResult result = run_command(line, narrow);
      ASSERT_EQ(result.exit_code, 0) << result.errors;
      EXPECT_LE(widest_line_but_examples(result.output), width) << result.output;
    }
  }
}

TEST(Command, ClustersShowPrintsNoJson) {
  EXPECT_THAT(run_command("clusters show dgx-h100").output, Not(HasSubstr("{\"")));
}

TEST(Command, JsonWithoutAFileGoesToStandardOutput) {
  for (const std::string line : {"models show llama3-8b --json", "clusters show dgx-h100 --json",
                                 "stacks show --json --no-progress fsdp2", "stacks list --json"}) {
    const CommandResult result = run_command(line);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_TRUE(json::accept(result.output)) << result.output;
  }
}

TEST(Command, SaysWhatTheStackDoesNotRun) {
  const std::string line = kSimulate + " --stack megatron-lm-2021 --zero 3";
  // The plan does not fit either.
  expect_errors(4, line, {"note: megatron-lm-2021 does not run ZeRO stage 3"});
  const json document = json::parse(run_command(line + " --json -").output);
  EXPECT_EQ(document["notes"].size(), 1U);
  const CommandResult fine = run_command(kSimulate + " --json -");
  EXPECT_THAT(fine.errors, IsEmpty());
  EXPECT_TRUE(json::parse(fine.output)["notes"].empty());
}

TEST(Command, SimulatedTimelinesAreReadAsWritten) {
  const ScratchFolder folder;
  const std::string file = folder.file("step.json");
  const double step = json_of(kSimulate + " --timeline " + file).at("step_s");
  const Timeline timeline = read_timeline(json::parse(folder.read("step.json")), file);
  EXPECT_EQ(timeline.origin, TimelineOrigin::Predicted);
  ASSERT_EQ(timeline.ranks.size(), 1U);
  double end = 0.0;
  for (const Span& span : timeline.spans) end = std::max(end, span.end().value());
  EXPECT_GT(end, 0.9 * step);
  EXPECT_LE(end, step * (1.0 + 1e-9));
  expect_refused(kSimulate + " --timeline " + file, {"the existing file"});
}

TEST(Command, FullReplaysReportEachRank) {
  const json document = json_of(kSimulate + " --fidelity full --slow-rank 3:1.5 --watch 0");
  EXPECT_EQ(document["breakdown_fidelity"], "full");
  EXPECT_GT(document["step_s"], document["event_step_s"]);
  EXPECT_EQ(document["slowest_rank"], 3);
  ASSERT_EQ(document["ranks"].size(), 8U);
  for (const json& rank : document["ranks"]) {
    for (const json& stream : rank["streams"])
      EXPECT_NEAR(stream["busy_s"].get<double>() + stream["idle_s"].get<double>(),
                  document["step_s"].get<double>(), 1e-9);
    EXPECT_EQ(rank.contains("time"), rank["rank"] == 0 || rank["rank"] == 3);
  }
  EXPECT_GT(document["ranks"][0]["time"]["stall_s"], 0.0);
}

TEST(Command, OptionsOfTheFullLevelAreRefusedAtOthersAndOutOfRange) {
  expect_refused(kSimulate + " --slow-rank 3:1.5",
                 {"expected \"full\", which --slow-rank requires"});
  expect_refused(kSimulate +
                     " --fidelity full --slow-rank 8:1.5 --slow-rank 1 --slow-nic 0/8:50% "
                     "--slow-nic 0/0:2 --rank-jitter nan --watch -1",
                 {"--slow-rank: found \"8\"; expected an integer from 0 to 7",
                  "--slow-rank: found \"1\"; expected RANK:FACTOR", "--slow-nic: found \"8\"",
                  "--slow-nic: found \"0/0:2\"; expected a share of at most",
                  "--rank-jitter: found \"nan\"", "--watch: found \"-1\""});
}

// The progress that a program around the command gets.
TEST(Command, ProgressNeverGoesBackAndEndsAtOne) {
  const std::string job = " --model llama3-8b --cluster dgx-h100 --global-batch 64 --seq-len 8192";
  for (const std::string& command :
       {"scale --gpus 8..64" + job, "simulate --gpus 8 --tp 8" + job,
        "forecast --gpus 8 --tp 8 --tokens 1B --runs 200" + job,
        std::string("validate ") + SHARDWRIGHT_SOURCE_DIR + "/measurements/training/bloom.jsonl"}) {
    std::mutex mutex;
    std::vector<double> shares;
    std::set<std::string> sizes;
    Embedding host;
    host.progress = [&](double share, const std::string& text) {
      const std::lock_guard lock(mutex);
      shares.push_back(share);
      sizes.insert(text.substr(0, text.find(' ')));
    };
    EXPECT_EQ(run_embedded(words_of(command), host).code, ExitCode::Ok) << command;
    ASSERT_THAT(shares, testing::Not(testing::IsEmpty())) << command;
    EXPECT_TRUE(std::ranges::is_sorted(shares)) << command;
    EXPECT_EQ(shares.back(), 1.0) << command;
    EXPECT_TRUE(!command.starts_with("scale") || sizes.contains("64")) << command;
  }
}

// Llama 3 405B ran its 126 layers on 128 chunks.
TEST(Command, EmbeddingAndHeadCountAsLayersWhereChunksOutnumberLayersByTwo) {
  const std::string line = kLlama405b + " --recompute full --vpp 8";
  const json document = json_of(line);
  EXPECT_EQ(document["plan"]["embedding_counts_as_layer"], true);
  EXPECT_EQ(document["plan"]["head_counts_as_layer"], true);
  EXPECT_EQ(document["filled_in"][0],
            "embedding and head count as layers: 128 chunks for 126 layers");
  for (const std::string given : {"head_counts_as_layer=false", "embedding_counts_as_layer=true"}) {
    expect_refused(line + " --set " + given,
                   {"--pp: found pp 16 x vpp 8 = 128 model chunks; expected no more than the 126 "
                    "layers, or 128 with embedding_counts_as_layer and head_counts_as_layer"});
  }
}

// A replay of every rank takes seconds; the test waits for a few tenths of a second.
TEST(Command, InterruptedReplaysGiveTheEventSimulation) {
  const std::string line = kLlama405b + " --vpp 4 --fidelity full";
  const json document = interrupted_json(line);
  EXPECT_EQ(document["fidelity"], "event");
  EXPECT_EQ(document["step_s"], document["event_step_s"]);
  EXPECT_GT(document["tokens_per_s_per_gpu"], 0.0);
  RunningCommand in_words(line);
  in_words.interrupt_at_work();
  const CommandResult text = in_words.finish();
  EXPECT_EQ(text.exit_code, 130);
  EXPECT_THAT(text.output, HasSubstr("warning: interrupted"));
  EXPECT_THAT(text.output, Not(HasSubstr("inf")));
}

TEST(Command, ColourOnlyWhereItIsWanted) {
  EXPECT_THAT(run_command("stacks list").output, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(run_command("stacks list --color always").output, HasSubstr("\x1b["));
}

TEST(Command, MarkdownTablesHaveRules) {
  const CommandResult result = run_command("stacks list --markdown");
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("| --- |"));
}

TEST(Command, NetworkTimesSharedLinks) {
  const std::string scenario = R"({
    "links": [{"id": "a", "bandwidth_bytes_per_s": 1e9, "latency_s": 0}],
    "flows": [{"id": "x", "bytes": 1e9, "route": ["a"], "start_s": 0},
              {"id": "y", "bytes": 1e9, "route": ["a"], "start_s": 0}]})";
  const CommandResult result = run_command("network - --json -", {.input = scenario});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  // Two flows share one link: each takes twice as long as alone.
  EXPECT_NEAR(json::parse(result.output)["makespan_s"].get<double>(), 2.0, 1e-9);
}

// Mails and files are read in windows of 80 columns.
TEST(Command, PipedTextFitsEightyColumns) {
  for (const char* arguments :
       {"plan --model llama3-8b --cluster dgx-h100 --gpus 16 --global-batch 64 --seq-len 8192",
        "support --model llama3-8b --cluster dgx-h100", "models list", "clusters list"}) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    std::istringstream lines(result.output);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80) << line;
  }
}

}  // namespace
}  // namespace shardwright::cli
