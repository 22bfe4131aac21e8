// The contract of the command: exit codes, what goes to which stream, the names in its JSON.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

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

const std::vector<std::string> kSimulate = {
    "simulate", "--model", "llama3-8b",      "--cluster", "dgx-h100",  "--gpus", "8",
    "--tp",     "2",       "--global-batch", "32",        "--seq-len", "8192"};

std::vector<std::string> with(std::vector<std::string> arguments,
                              const std::vector<std::string>& more) {
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

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
    const CommandResult result = run_command({option});
    EXPECT_EQ(result.exit_code, 0);
    EXPECT_THAT(result.output, HasSubstr("shardwright"));
    EXPECT_THAT(result.errors, IsEmpty());
  }
}

TEST(Command, HelpOfASubcommandShowsItsOptions) {
  const CommandResult result = run_command({"simulate", "--help"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("--global-batch"));
}

// The examples of a command's help are of that command.
TEST(Command, HelpShowsItsOwnExamples) {
  for (const std::string name :
       {"plan",        "replan",      "scale",       "simulate",      "probe",
        "calibrate",   "explain",     "compare",     "export",        "validate",
        "fit",         "network",     "gui",         "models",        "clusters",
        "stacks",      "models list", "models show", "clusters list", "clusters show",
        "stacks list", "stacks show", "schema"}) {
    std::vector<std::string> arguments;
    std::istringstream words(name);
    for (std::string word; words >> word;) arguments.push_back(word);
    arguments.emplace_back("--help");
    const CommandResult help = run_command(arguments);
    EXPECT_EQ(help.exit_code, 0);
    std::istringstream lines(help.output);
    int examples = 0;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("  shardwright ")) continue;
      // The first one; others may go on with what it made.
      if (++examples > 1) continue;
      EXPECT_TRUE((line + " ").starts_with("  shardwright " + name + " ")) << line;
    }
    EXPECT_GT(examples, 0) << name;
  }
}

TEST(Command, SimulatePrintsTheContractsNames) {
  const CommandResult result = run_command(with(kSimulate, {"--json", "-"}));
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
  const json step = json::parse(run_command(with(kSimulate, {"--json", "-"})).output);
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
  const CommandResult result = run_command({"models", "show", "llama3-8b", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json parameters = json::parse(result.output)["parameters"];
  // 8,030,261,248: the model card of meta-llama/Meta-Llama-3-8B.
  EXPECT_EQ(parameters["total"], 8030261248);
  EXPECT_EQ(parameters["active"], 8030261248);
  EXPECT_EQ(parameters["mtp"], 0);
}

TEST(Command, ListsAndShowsEverythingThatIsShipped) {
  for (const char* kind : {"models", "clusters", "stacks"}) {
    const CommandResult list = run_command({kind, "list", "--json", "-"});
    ASSERT_EQ(list.exit_code, 0) << list.errors;
    const json entries = json::parse(list.output)[kind];
    ASSERT_GT(entries.size(), 5u);
    const std::string name = entries.front()["name"];
    const CommandResult show = run_command({kind, "show", name});
    EXPECT_EQ(show.exit_code, 0) << show.errors;
    EXPECT_THAT(show.output, HasSubstr(name));
  }
}

// `models show --json` writes a model file.
TEST(Command, ShownModelsCanBeRead) {
  const ScratchFolder folder;
  const std::string file = folder.file("model.json");
  ASSERT_EQ(run_command({"models", "show", "deepseek-v3", "--json", file}).exit_code, 0);
  const CommandResult result = run_command({"models", "show", file, "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(json::parse(result.output), json::parse(folder.read("model.json")));
}

TEST(Command, PlanFilesRoundTripThroughStandardInput) {
  const CommandResult plan = run_command(with(kSimulate, {"--out", "-", "--json", "/dev/null"}));
  ASSERT_EQ(plan.exit_code, 0) << plan.errors;
  const std::string file = plan.output.substr(0, plan.output.find("\n}\n") + 3);
  const CommandResult again =
      run_command({"simulate", "--plan", "-", "--json", "-"}, {.input = file});
  ASSERT_EQ(again.exit_code, 0) << again.errors;
  const CommandResult first = run_command(with(kSimulate, {"--json", "-"}));
  EXPECT_EQ(json::parse(again.output)["step_s"], json::parse(first.output)["step_s"]);
}

TEST(Command, OptionsReplaceFieldsOfAPlanFile) {
  const ScratchFolder folder;
  const std::string file = folder.file("plan.json");
  ASSERT_EQ(run_command(with(kSimulate, {"--out", file})).exit_code, 0);
  const CommandResult result =
      run_command({"simulate", "--plan", file, "--tp", "4", "--dp", "2", "--json", "-"});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(json::parse(result.output)["plan"]["tp"], 4);
}

// Data parallelism takes what the other degrees leave of the plan's accelerators, and says so.
TEST(Command, PlanFilesKeepTheirAccelerators) {
  const ScratchFolder folder;
  const std::string file = folder.file("plan.json");
  ASSERT_EQ(run_command(with(kSimulate, {"--out", file})).exit_code, 0);
  const auto plan_with = [&](const std::vector<std::string>& more) {
    const CommandResult result =
        run_command(with({"simulate", "--plan", file, "--json", "-"}, more));
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return json::parse(result.output);
  };
  const json narrower = plan_with({"--tp", "4"});
  EXPECT_EQ(narrower["plan"]["dp"], 2);
  EXPECT_THAT(narrower["filled_in"].dump(), HasSubstr("dp 2"));
  EXPECT_EQ(plan_with({"--gpus", "16"})["plan"]["dp"], 8);
  const json larger = plan_with({"--dp", "8"});
  EXPECT_THAT(larger["filled_in"].dump(), HasSubstr("16 accelerators"));

  const CommandResult indivisible = run_command({"simulate", "--plan", file, "--tp", "3"});
  EXPECT_EQ(indivisible.exit_code, 2);
  EXPECT_THAT(indivisible.errors, HasSubstr("a divisor of 8 accelerators"));
  EXPECT_EQ(run_command({"simulate", "--plan", file, "--gpus", "16", "--dp", "2"}).exit_code, 2);
}

TEST(Command, SaysWhetherAPlanFits) {
  const json small = json::parse(run_command(with(kSimulate, {"--json", "-"})).output);
  EXPECT_EQ(small["fits"], true);
  EXPECT_EQ(small["shortfall_bytes"], 0.0);
  std::vector<std::string> large = kSimulate;
  large[2] = "llama3-70b";
  for (const char* command : {"simulate", "explain"}) {
    large[0] = command;
    const CommandResult text = run_command(large);
    EXPECT_EQ(text.exit_code, 4);
    EXPECT_THAT(text.output, HasSubstr("too much"));
    EXPECT_THAT(text.errors, HasSubstr("the plan does not fit into memory: it needs"));
    const CommandResult result = run_command(with(large, {"--json", "-"}));
    EXPECT_EQ(result.exit_code, 4);
    EXPECT_EQ(result.errors, text.errors);
    const json document = json::parse(result.output);
    EXPECT_EQ(document["fits"], false);
    const json cluster =
        json::parse(run_command({"clusters", "show", "dgx-h100", "--json"}).output);
    EXPECT_DOUBLE_EQ(document["shortfall_bytes"].get<double>(),
                     document["memory"]["peak_bytes"].get<double>() -
                         cluster["accelerator"]["memory"]["capacity_bytes"]["value"].get<double>());
  }
}

// A leaf of 16 nodes carries all 8 x 25 GB/s of half of them, and half of that leaves it.
TEST(Command, ShowsTheBisectionOfAnOversubscribedFabric) {
  const std::string page = run_command({"clusters", "show", "a100-leaf-spine-2to1"}).output;
  EXPECT_THAT(page, ContainsRegex("128 +1,600 +25\n"));
  EXPECT_THAT(page, ContainsRegex("256 +1,600 +12\\.5\n"));
}

// Two plans are compared all the same: that is what was asked for.
TEST(Command, ComparesPlansThatDoNotFit) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json");
  std::vector<std::string> large = with(kSimulate, {"--out", plan});
  large[2] = "llama3-70b";
  ASSERT_EQ(run_command(large).exit_code, 4);
  const CommandResult result = run_command({"compare", plan, plan});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.errors, HasSubstr("shardwright compare: A: the plan does not fit"));
  EXPECT_THAT(result.errors, HasSubstr("shardwright compare: B: the plan does not fit"));
}

TEST(Command, OneTokenIsSingular) {
  std::vector<std::string> one = kSimulate;
  one.back() = "1";
  one[8] = "1";  // --tp
  EXPECT_THAT(run_command(one).output, HasSubstr("sequences of 1 token,"));
}

TEST(Command, UnknownClustersAreNamedByTheirOption) {
  const CommandResult result = run_command({"simulate", "--cluster", "dgx-h10"});
  EXPECT_THAT(result.errors, HasSubstr("--cluster dgx-h10: found no cluster of this name"));
  EXPECT_THAT(result.errors, HasSubstr("did you mean \"dgx-h100\"?"));
  const CommandResult here = run_command({"simulate", "--cluster", "Here"});
  EXPECT_THAT(here.errors, HasSubstr("--cluster Here: found no cluster of this name"));
  EXPECT_THAT(here.errors, HasSubstr("did you mean \"here\"?"));
}

TEST(Command, EnvironmentVariablesStandInForOptions) {
  const CommandResult result =
      run_command(with(kSimulate, {"--json", "-"}), {.environment = {{"SHARDWRIGHT_ZERO", "3"}}});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_EQ(json::parse(result.output)["plan"]["zero_stage"], 3);
}

TEST(Command, FilesAreWrittenWholeAndNeverReplacedUnasked) {
  const ScratchFolder folder;
  const std::string file = folder.file("models.json");
  ASSERT_EQ(run_command({"models", "list", "--json", file}).exit_code, 0);
  EXPECT_TRUE(json::accept(folder.read("models.json")));
  EXPECT_EQ(folder.files(), 1u) << "a temporary file is left over";

  EXPECT_EQ(run_command({"stacks", "list", "--json", file}).exit_code, 2);
  EXPECT_THAT(folder.read("models.json"), HasSubstr("\"models\""));
  EXPECT_EQ(run_command({"stacks", "list", "--json", file, "--force"}).exit_code, 0);
  EXPECT_THAT(folder.read("models.json"), HasSubstr("\"stacks\""));
}

TEST(Command, FullDisksAndClosedOutputsAreFailures) {
  const CommandResult full = run_command({"models", "list"}, {.output_file = "/dev/full"});
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.errors, HasSubstr("standard output: cannot be written"));

  const CommandResult closed = run_command({"models", "list"}, {.close_output = true});
  EXPECT_EQ(closed.exit_code, 1);
  EXPECT_THAT(closed.errors, HasSubstr("standard output"));
}

TEST(Command, EndsAlikeWhereItsMessagesCannotBeWritten) {
  const std::vector<std::string> cases[] = {
      {"models", "list"}, {"models", "lits"}, {"models", "show", "nowhere"}};
  for (const auto& arguments : cases) {
    const CommandResult read = run_command(arguments);
    const CommandResult unread = run_command(arguments, {.errors_file = "/dev/full"});
    EXPECT_EQ(unread.exit_code, read.exit_code) << arguments.back();
    EXPECT_EQ(unread.output, read.output);
  }
}

TEST(Command, NarrowTerminalsShowEveryColumn) {
  struct Case {
    std::vector<std::string> arguments;
    // Names are not broken: the longest stack and its widest other column need 49 columns.
    int columns;
  };
  // Not clusters: two of the longest names are wider together.
  for (const Case& each :
       {Case{{"models", "list"}, 40}, Case{{"stacks", "list"}, 49}, Case{kSimulate, 40}}) {
    const CommandSetting narrow = {.environment = {{"COLUMNS", std::to_string(each.columns)}}};
    const CommandResult result = run_command(each.arguments, narrow);
    ASSERT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_LE(widest_line(result.output), each.columns) << result.output;
  }
  const CommandSetting narrow = {.environment = {{"COLUMNS", "40"}}};
  const std::string list = run_command({"models", "list"}, narrow).output;
  EXPECT_THAT(list, HasSubstr("vocabulary"));
}

// Examples are commands to copy, which help leaves whole.
int widest_line_but_examples(const std::string& text) {
  std::istringstream stream(text);
  std::string rest;
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("  shardwright") && !line.starts_with("      --fix")) rest += line + '\n';
  }
  return widest_line(rest);
}

TEST(Command, TablesAndHelpKeepToTheTerminal) {
  const ScratchFolder folder;
  const std::string plan = folder.file("plan.json"), other = folder.file("other.json");
  ASSERT_EQ(run_command(with(kSimulate, {"--out", plan})).exit_code, 0);
  ASSERT_EQ(run_command(with(kSimulate, {"--tp", "4", "--out", other})).exit_code, 2);
  ASSERT_EQ(run_command({"simulate", "--plan", plan, "--tp", "4", "--out", other}).exit_code, 0);
  const std::string rows = std::string(SHARDWRIGHT_SOURCE_DIR "/measurements/training/") +
                           (kSanitized ? "megatron" : "titan") + ".jsonl";
  const std::vector<std::vector<std::string>> commands = {
      {"validate", rows, "--every-row"},
      {"clusters", "list"},
      {"clusters", "show", "dgx-h100"},
      {"stacks", "show", "fsdp2"},
      {"compare", plan, other},
      {"explain", "--plan", plan},
      {"scale", "--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", "8..16",
       "--global-batch", "64", "--seq-len", "8192"},
      {"--help"},
      {"plan", "--help"},
      {"validate", "--help"}};
  for (const int width : {60, 72, 80}) {
    const CommandSetting narrow = {.environment = {{"COLUMNS", std::to_string(width)}}};
    for (const auto& arguments : commands) {
      const CommandResult result = run_command(arguments, narrow);
      ASSERT_EQ(result.exit_code, 0) << result.errors;
      EXPECT_LE(widest_line_but_examples(result.output), width) << result.output;
    }
  }
}

TEST(Command, ClustersShowPrintsNoJson) {
  EXPECT_THAT(run_command({"clusters", "show", "dgx-h100"}).output, Not(HasSubstr("{\"")));
}

TEST(Command, JsonWithoutAFileGoesToStandardOutput) {
  for (const auto& arguments :
       {std::vector<std::string>{"models", "show", "llama3-8b", "--json"},
        std::vector<std::string>{"clusters", "show", "dgx-h100", "--json"},
        std::vector<std::string>{"stacks", "show", "--json", "--no-progress", "fsdp2"},
        std::vector<std::string>{"stacks", "list", "--json"}}) {
    const CommandResult result = run_command(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    EXPECT_TRUE(json::accept(result.output)) << result.output;
  }
  const ScratchFolder folder;
  EXPECT_EQ(run_command({"models", "show", "llama3-8b", "--json", folder.file("m.json")}).exit_code,
            0);
  EXPECT_TRUE(json::accept(folder.read("m.json")));
}

TEST(Command, SaysWhatTheStackDoesNotRun) {
  const auto arguments = with(kSimulate, {"--stack", "megatron-lm-2021", "--zero", "3"});
  const CommandResult text = run_command(arguments);
  EXPECT_EQ(text.exit_code, 4);  // Nor does it fit.
  EXPECT_THAT(text.errors, HasSubstr("note: megatron-lm-2021 does not run ZeRO stage 3"));
  const json document = json::parse(run_command(with(arguments, {"--json", "-"})).output);
  EXPECT_EQ(document["notes"].size(), 1U);
  const CommandResult fine = run_command(with(kSimulate, {"--json", "-"}));
  EXPECT_THAT(fine.errors, IsEmpty());
  EXPECT_TRUE(json::parse(fine.output)["notes"].empty());
}

TEST(Command, SimulatedTimelinesAreReadAsWritten) {
  const ScratchFolder folder;
  const std::string file = folder.file("step.json");
  const CommandResult result = run_command(with(kSimulate, {"--timeline", file, "--json", "-"}));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const Timeline timeline = read_timeline(json::parse(folder.read("step.json")), file);
  EXPECT_EQ(timeline.origin, TimelineOrigin::Predicted);
  ASSERT_EQ(timeline.ranks.size(), 1U);
  double end = 0.0;
  for (const Span& span : timeline.spans) end = std::max(end, span.end().value());
  const double step = json::parse(result.output).at("step_s").get<double>();
  EXPECT_GT(end, 0.9 * step);
  EXPECT_LE(end, step * (1.0 + 1e-9));
  EXPECT_EQ(run_command(with(kSimulate, {"--timeline", file})).exit_code, 2);  // it exists
}

TEST(Command, FullReplaysTellOfEachRank) {
  const json document =
      json::parse(run_command(with(kSimulate, {"--fidelity", "full", "--slow-rank", "3:1.5",
                                               "--watch", "0", "--json", "-"}))
                      .output);
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
  const CommandResult event = run_command(with(kSimulate, {"--slow-rank", "3:1.5"}));
  EXPECT_EQ(event.exit_code, 2);
  EXPECT_THAT(event.errors, HasSubstr("expected \"full\", which --slow-rank requires"));
  const CommandResult out = run_command(with(
      kSimulate, {"--fidelity", "full", "--slow-rank", "8:1.5", "--slow-rank", "1", "--slow-nic",
                  "0/8:50%", "--slow-nic", "0/0:2", "--rank-jitter", "nan", "--watch", "-1"}));
  EXPECT_EQ(out.exit_code, 2);
  EXPECT_THAT(out.errors, HasSubstr("--slow-rank: found \"8\"; expected an integer from 0 to 7"));
  EXPECT_THAT(out.errors, HasSubstr("--slow-rank: found \"1\"; expected RANK:FACTOR"));
  EXPECT_THAT(out.errors, HasSubstr("--slow-nic: found \"8\""));
  EXPECT_THAT(out.errors, HasSubstr("--slow-nic: found \"0/0:2\"; expected a share of at most"));
  EXPECT_THAT(out.errors, HasSubstr("--rank-jitter: found \"nan\""));
  EXPECT_THAT(out.errors, HasSubstr("--watch: found \"-1\""));
}

// 126 layers on 128 chunks: what Llama 3 405B ran (arXiv 2407.21783, section 3.3.2).
TEST(Command, EmbeddingAndHeadCountAsLayersWhereChunksOutnumberLayersByTwo) {
  const std::vector<std::string> llama = {"simulate",
                                          "--model",
                                          "llama3.1-405b",
                                          "--cluster",
                                          "dgx-h100",
                                          "--gpus",
                                          "16384",
                                          "--tp",
                                          "8",
                                          "--pp",
                                          "16",
                                          "--schedule",
                                          "interleaved",
                                          "--global-batch",
                                          "2048",
                                          "--seq-len",
                                          "8192",
                                          "--recompute",
                                          "full"};
  const CommandResult result = run_command(with(llama, {"--vpp", "8", "--json", "-"}));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  const json document = json::parse(result.output);
  EXPECT_EQ(document["plan"]["embedding_counts_as_layer"], true);
  EXPECT_EQ(document["plan"]["head_counts_as_layer"], true);
  EXPECT_EQ(document["filled_in"][0],
            "embedding and head count as layers: 128 chunks for 126 layers");
  for (const std::string given : {"head_counts_as_layer=false", "embedding_counts_as_layer=true"}) {
    const CommandResult refused = run_command(with(llama, {"--vpp", "8", "--set", given}));
    EXPECT_EQ(refused.exit_code, 2) << given;
    EXPECT_THAT(refused.errors,
                HasSubstr("--pp: found pp 16 x vpp 8 = 128 model chunks; expected no more than the "
                          "126 layers, or 128 "
                          "with embedding_counts_as_layer and head_counts_as_layer"));
  }
}

// A replay of every rank takes seconds, of which the test waits for a few tenths.
TEST(Command, InterruptedReplaysGiveTheEventSimulation) {
  const std::vector<std::string> arguments = {"simulate",   "--model",     "llama3.1-405b",
                                              "--cluster",  "dgx-h100",    "--gpus",
                                              "16384",      "--tp",        "8",
                                              "--pp",       "16",          "--vpp",
                                              "4",          "--fidelity",  "full",
                                              "--schedule", "interleaved", "--global-batch",
                                              "2048",       "--seq-len",   "8192"};
  RunningCommand running(with(arguments, {"--json", "-"}));
  running.interrupt_at_work();
  const CommandResult result = running.finish();
  EXPECT_EQ(result.exit_code, 130) << result.errors;
  const json document = json::parse(result.output, nullptr, false);
  ASSERT_TRUE(document.is_object()) << result.output;
  EXPECT_EQ(document["partial"], true);
  EXPECT_EQ(document["fidelity"], "event");
  EXPECT_EQ(document["step_s"], document["event_step_s"]);
  EXPECT_GT(document["tokens_per_s_per_gpu"], 0.0);
  RunningCommand in_words(arguments);
  in_words.interrupt_at_work();
  const CommandResult text = in_words.finish();
  EXPECT_EQ(text.exit_code, 130);
  EXPECT_THAT(text.output, HasSubstr("warning: interrupted"));
  EXPECT_THAT(text.output, Not(HasSubstr("inf")));
}

TEST(Command, ColourOnlyWhereItIsWanted) {
  EXPECT_THAT(run_command({"stacks", "list"}).output, Not(HasSubstr("\x1b[")));
  EXPECT_THAT(run_command({"stacks", "list", "--color", "always"}).output, HasSubstr("\x1b["));
}

TEST(Command, MarkdownTablesHaveRules) {
  const CommandResult result = run_command({"stacks", "list", "--markdown"});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_THAT(result.output, HasSubstr("| --- |"));
}

TEST(Command, NetworkTimesSharedLinks) {
  const std::string scenario = R"({
    "links": [{"id": "a", "bandwidth_bytes_per_s": 1e9, "latency_s": 0}],
    "flows": [{"id": "x", "bytes": 1e9, "route": ["a"], "start_s": 0},
              {"id": "y", "bytes": 1e9, "route": ["a"], "start_s": 0}]})";
  const CommandResult result = run_command({"network", "-", "--json", "-"}, {.input = scenario});
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  // Two flows share one link: each takes twice as long as alone.
  EXPECT_NEAR(json::parse(result.output)["makespan_s"].get<double>(), 2.0, 1e-9);
}

}  // namespace
}  // namespace shardwright::cli
