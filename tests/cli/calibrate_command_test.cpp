// probe and calibrate: a machine becomes a profile, a run a better one.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "cli/programs/here_profile.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/cli/command_run.hpp"
#include "tests/process_end.hpp"

namespace shardwright::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

// One rank runs two steps of each of the probe's models, which is quick and not accurate.
std::string probed(const ScratchFolder& folder) {
  std::string file = folder.file("here.json");
  const CommandResult result = run_command("probe --device cpu --ranks 1 --steps 2 --out " + file);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  return file;
}

std::string corpus(const ScratchFolder& folder) {
  return folder.write("corpus.txt", std::string(3000, 'a') + std::string(3000, 'b'));
}

TEST(CalibrateCommand, ClosesTheLoopOnOneRank) {
  const ScratchFolder folder;
  const std::string here = probed(folder);
  const ClusterSpec machine = load_cluster(here);
  EXPECT_EQ(machine.accelerator.architecture, Architecture::Cpu);
  EXPECT_THAT(machine.node.sources.at("/host/cores").source,
              HasSubstr("measured by shardwright probe, "));
  ASSERT_TRUE(machine.stack);

  // Neither stack, precision, ranks nor batch are said: those of the machine.
  const std::string plan = folder.file("plan.json"), out = folder.file("run");
  const CommandResult planned =
      run_command("plan --model tiny-llama --cluster " + here + " --seq-len 32 --out " + plan);
  ASSERT_EQ(planned.exit_code, 0) << planned.errors;
  const CommandResult ran =
      run_command("run " + plan + " --data " + corpus(folder) + " --steps 6 --out " + out);
  ASSERT_EQ(ran.exit_code, 0) << ran.errors;
  const std::string better = folder.file("better.json"), trace = folder.file("trace.json");
  const CommandResult calibrated =
      run_command("calibrate " + out + " --cluster " + here + " --out " + better + " --trace " +
                  trace + " --json - --kernels " + folder.file("kernels.csv"));
  ASSERT_EQ(calibrated.exit_code, 0) << calibrated.errors;
  const json report = json::parse(calibrated.output);
  EXPECT_EQ(report.at("steps").at(0).at("run"), "run");
  EXPECT_GT(report.at("steps").at(0).at("measured_s"), 0.0);
  EXPECT_FALSE(report.at("figures").empty());
  // These may determine figures that two steps of the probe leave open.
  EXPECT_GE(load_cluster(better).accelerator.kernel_curves.size(),
            machine.accelerator.kernel_curves.size());
  EXPECT_THAT(folder.read("trace.json"), HasSubstr("rank 0, stage 0: predicted"));

  // Another measurement, for all that is known, in a folder of the same name.
  std::filesystem::create_directories(folder.file("again"));
  std::filesystem::copy(out, folder.file("again/run"), std::filesystem::copy_options::recursive);
  const std::string of_both = folder.file("of_both.json");
  const json steps = json_of("calibrate " + out + " " + folder.file("again/run/") + " --cluster " +
                             here + " --out " + of_both)
                         .at("steps");
  const std::string first = std::filesystem::path(folder.file("")).parent_path().filename() / "run";
  EXPECT_EQ(steps.at(0).at("run"), first);
  EXPECT_EQ(steps.at(1).at("run"), "again/run");
  EXPECT_THAT(folder.read("of_both.json"),
              HasSubstr("\"shardwright calibrate " + first + ", again/run\""));

  // The table that it wrote is one that simulations read, of the shapes of this very plan.
  const json basis = json_of("simulate --plan " + plan + " --kernels " + folder.file("kernels.csv"))
                         .at("kernel_time_basis");
  EXPECT_GT(basis.at("measured_s"), 9.0 * basis.at("formula_s").get<double>());
}

// A probe that SIGKILL ended cannot remove its folder: the next one does, but not that of a probe
// that still runs.
TEST(CalibrateCommand, RemovesTheFoldersOfProbesThatWereEnded) {
  const ScratchFolder folder, temporary;
  const std::string left = temporary.file("shardwright-probe.ended1");
  const std::string held = temporary.file("shardwright-probe.runs01");
  for (const std::string& each : {left, held}) std::filesystem::create_directories(each + "/runs");
  const int holder = open(held.c_str(), O_RDONLY | O_DIRECTORY);
  ASSERT_EQ(flock(holder, LOCK_EX | LOCK_NB), 0);
  const CommandResult result =
      run_command("probe --device cpu --ranks 1 --steps 2 --out " + folder.file("x.json"),
                  {.environment = {{"TMPDIR", temporary.file("")}}});
  close(holder);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(held));
  EXPECT_EQ(temporary.files(), 1U);
}

// Whoever asks a probe to stop finds nothing of it left.
TEST(CalibrateCommand, RemovesTheFolderOfAProbeThatIsAskedToStop) {
  std::signal(SIGINT, SIG_DFL);  // where the tests run in the background it may be ignored
  std::signal(SIGHUP, SIG_DFL);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    const ScratchFolder folder, temporary;
    RunningCommand probe(
        "probe --device cpu --ranks 2 --steps 5000 --out " + folder.file("here.json"),
        {.environment = {{"TMPDIR", temporary.file("")}}});
    const std::vector<pid_t> processes = probe.wait_for_processes(3);
    EXPECT_EQ(processes.size(), 3U);
    EXPECT_EQ(temporary.files(), 1U);
    probe.send(signal);
    EXPECT_EQ(probe.finish().exit_code, 128 + signal);
    EXPECT_EQ(temporary.files(), 0U) << signal;
    for (const pid_t process : processes) EXPECT_TRUE(ends_soon(process)) << signal;
  }
}

TEST(CalibrateCommand, ProbesHereOnceAndKeepsIt) {
  const ScratchFolder folder;
  const std::string here = probed(folder);
  const CommandSetting setting{
      .environment = {{"XDG_CACHE_HOME", folder.file("cache")}, {"COLUMNS", "200"}}};
  std::filesystem::create_directories(folder.file("cache/shardwright"));
  std::filesystem::copy_file(here, folder.file("cache/shardwright/here.json"));
  const CommandResult result = run_command(
      "simulate --model tiny-llama --cluster here --gpus 1 --global-batch 1 --seq-len 32", setting);
  EXPECT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.errors, HasSubstr("here.json (measured by shardwright probe"));
  const CommandResult shown = run_command("clusters show here", setting);
  EXPECT_EQ(shown.exit_code, 0) << shown.errors;
  EXPECT_THAT(shown.output, HasSubstr("measured by shardwright probe"));
  // A plan points to the file that the user named, so that it can be found again.
  for (const std::string& named : {std::string("here"), here}) {
    const CommandResult planned =
        run_command("plan --model tiny-llama --cluster " + named + " --seq-len 32", setting);
    EXPECT_EQ(planned.exit_code, 0) << planned.errors;
    std::string words;  // however lines are broken
    std::istringstream text(planned.output);
    for (std::string word; text >> word;) words += word + ' ';
    EXPECT_THAT(words, HasSubstr("`shardwright clusters show " + named + "` lists them."));
  }
}

// Half a minute of measurements is not thrown away because the disk is full, or the folder
// read-only.
TEST(HereProfile, IsGoodThoughItCannotBeKept) {
  const ScratchFolder folder;
  const ClusterSpec cluster = load_cluster("h100-pcie-server");
  const auto said = [&](const std::string& file) {
    testing::internal::CaptureStderr();
    keep_profile(file, cluster);
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said("/dev/full"),
            "cluster here: not saved, because /dev/full: cannot be written: No space left on "
            "device; use `shardwright probe --out FILE`\n");
  const std::string nowhere = folder.file("none/here.json"), kept = folder.file("here.json");
  EXPECT_THAT(said(nowhere),
              HasSubstr("not saved, because " + nowhere + ": cannot be written: No such"));
  EXPECT_EQ(said(kept), "cluster here: saved in " + kept + "\n");
  EXPECT_EQ(load_cluster(kept).name, cluster.name);
}

// Errors are reported at once, not after minutes of probing.
TEST(CalibrateCommand, ProbesNothingForACommandLineThatIsWrong) {
  const ScratchFolder folder;
  const std::string plan = folder.write(
      "plan.json", R"({"schema": "shardwright/plan", "version": 1, "model": "tiny-llama",
        "cluster": "dgx-h100", "stack": "shardwright", "plan": {"dp": 1, "tp": 1, "pp": 1,
        "micro_batch": 1, "global_batch": 1, "seq_len": 32}})");
  const std::string none = folder.file("none.json");
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"plan --model " + none, none},
      {"plan --model tiny-llama --fix tp=x", "--fix"},
      {"plan --model tiny-llama --stack none", "--stack"},
      {"plan --model tiny-llama --seq-len 0", "--seq-len"},
      {"scale --model tiny-llama --gpus 4..2", "--gpus"},
      {"simulate --model " + none, none},
      {"simulate --model tiny-llama --global-batch 1", "--seq-len"},
      {"simulate --plan " + plan + " --model " + none, none},
      {"simulate --plan " + plan + " --kernels " + none, none},
      {"calibrate " + none + " --out -", none}};
  for (const auto& [line, named] : wrong) {
    const CommandResult result = run_command(
        line + " --cluster here", {.environment = {{"XDG_CACHE_HOME", folder.file("cache")}}});
    EXPECT_EQ(result.exit_code, 2) << result.errors;
    EXPECT_THAT(result.errors, HasSubstr(named));
    EXPECT_THAT(result.errors, testing::Not(HasSubstr("probing")));
  }
}

// A run on CPUs says nothing of a GPU, whatever it was planned for.
TEST(CalibrateCommand, RefusesTheProfileOfAnotherAccelerator) {
  const ScratchFolder folder;
  const std::string here = probed(folder), plan = folder.file("plan.json"),
                    out = folder.file("run");
  const CommandResult planned = run_command(
      "simulate --model tiny-llama --cluster dgx-h100 --stack shardwright --gpus 1 --precision "
      "fp32 --seq-len 32 --global-batch 4 --out " +
      plan);
  ASSERT_EQ(planned.exit_code, 0) << planned.errors;
  const CommandResult ran =
      run_command("run " + plan + " --data " + corpus(folder) + " --steps 6 --out " + out);
  ASSERT_EQ(ran.exit_code, 0) << ran.errors;
  const auto calibrated = [&](const std::string& cluster) {
    return run_command("calibrate " + out + " --cluster " + cluster + " --out " +
                       folder.file("out.json"));
  };
  const CommandResult refused = calibrated("dgx-h100");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.errors, HasSubstr("run run: found a run on CPUs; expected one on h100-sxm"));
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.json")));
  EXPECT_EQ(calibrated(here).exit_code, 0);
}

// The folder of a run that went on under another plan: only that one's steps are fitted.
TEST(CalibrateCommand, FitsTheLastPlanOfAFolder) {
  const ScratchFolder folder;
  const std::string here = probed(folder), out = folder.file("run");
  const auto run = [&](const std::string& micro_batch, const std::string& steps,
                       const std::string& more) {
    const std::string plan = folder.file("plan-" + micro_batch + ".json");
    const CommandResult made =
        run_command("simulate --model tiny-llama --cluster " + here +
                    " --gpus 1 --seq-len 32 --global-batch 4 --micro-batch " + micro_batch +
                    " --out " + plan + " --force");
    ASSERT_EQ(made.exit_code, 0) << made.errors;
    const CommandResult ran = run_command("run " + plan + " --data " + corpus(folder) +
                                          " --steps " + steps + " --out " + out + more);
    ASSERT_EQ(ran.exit_code, 0) << ran.errors;
  };
  const auto calibrated = [&] {
    CommandResult result = run_command("calibrate " + out + " --cluster " + here + " --out " +
                                       folder.file("better.json") + " --force --json -");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return result.errors;
  };
  run("1", "8", " --checkpoint-every 8 --timeline-steps 6,7");
  EXPECT_THAT(calibrated(), testing::Not(HasSubstr("ignored")));
  run("2", "14", " --resume");
  EXPECT_THAT(calibrated(), HasSubstr("run run: ignored 8 steps and the timelines of 2"));
  // A shorter run in the same folder leaves nothing of the longer one.
  run("4", "4", " --force");
  EXPECT_THAT(calibrated(), testing::Not(HasSubstr("ignored")));
  EXPECT_FALSE(std::filesystem::exists(out + "/timeline-13-0.json"));
}

// An all-reduce of two ranks at 10 GB/s.
std::string two_ranks_on(const std::string& first, const std::string& second) {
  std::string table = "# Collective test starting: all_reduce_perf\n#  Rank  0 Group  0 Pid 1 on " +
                      first + " device  0 [0x07] GPU\n#  Rank  1 Group  0 Pid 2 on " + second +
                      " device  0 [0x07] GPU\n# size count type redop root time algbw busbw\n";
  for (std::int64_t bytes = 1 << 10; bytes <= 1 << 28; bytes *= 4) {
    const std::string size = std::to_string(bytes), count = std::to_string(bytes / 4);
    const std::string time = std::to_string(20.0 + 1e-4 * static_cast<double>(bytes));
    table += size + " " + count + " float sum -1 " + time + " 10.00 10.00\n";
  }
  return table;
}

TEST(CalibrateCommand, FitsWhatTwoHostsTimedAsTheNetwork) {
  const ScratchFolder folder;
  const auto figures_of = [&](const std::string& table) {
    const CommandResult result =
        run_command("calibrate " + folder.write("table.txt", table) + " --cluster dgx-h100 --out " +
                    folder.file("out.json") + " --force --json -");
    EXPECT_EQ(result.exit_code, 0) << result.errors;
    return json::parse(result.output).at("figures").dump();
  };
  const std::string apart = figures_of(two_ranks_on("host-a", "host-b"));
  EXPECT_THAT(apart, HasSubstr("all_reduce of 2 on 2 nodes"));
  EXPECT_THAT(apart, HasSubstr("\"network\""));
  EXPECT_THAT(apart, testing::Not(HasSubstr("links of a node")));
  const std::string together = figures_of(two_ranks_on("host-a", "host-a"));
  EXPECT_THAT(together, HasSubstr("all_reduce of 2 on 1 node\""));
  EXPECT_THAT(together, HasSubstr("links of a node"));
}

// Whatever the timings determine: figures that stay are as they were, and are named.
TEST(CalibrateCommand, NamesEachFigureThatStays) {
  const ScratchFolder folder;
  const std::string table = folder.write("table.txt", two_ranks_on("host-a", "host-a"));
  const std::string line =
      "calibrate " + table + " --cluster dgx-h100 --out " + folder.file("out.json") + " --force";
  const CommandResult text = run_command(line);
  ASSERT_EQ(text.exit_code, 0) << text.errors;
  const std::string& page = text.output;
  int pushed = 0, open = 0;
  const json document = json_of(line);
  for (const json& figure : document.at("figures")) {
    const std::string verdict = figure.at("verdict"), pointer = figure.at("pointer");
    const bool is_pushed = verdict == "pushed to its limit by the data";
    EXPECT_EQ(figure.at("limit").is_number(), is_pushed) << pointer;
    pushed += is_pushed;
    if (!is_pushed && verdict != "not determined by the data") {
      EXPECT_LE(figure.at("low"), figure.at("value")) << pointer;
      EXPECT_GE(figure.at("high"), figure.at("value")) << pointer;
      continue;
    }
    open += !is_pushed;
    EXPECT_EQ(figure.at("value"), figure.at("before")) << pointer;
    EXPECT_TRUE(figure.at("low").is_null()) << pointer;
    EXPECT_THAT(page, HasSubstr(pointer));
  }
  EXPECT_GT(pushed + open, 0);
}

// Two sizes that each ask for something else of the same links.
TEST(CalibrateCommand, LeavesPredictionsAsTheyWereWhereNothingIsDetermined) {
  const ScratchFolder folder;
  const std::string table =
      folder.write("nccl.txt",
                   "# Collective test starting: all_reduce_perf\n"
                   "#  Rank  0 Group  0 Pid 1 on host-a device  0 [0x07] GPU\n"
                   "#  Rank  1 Group  0 Pid 2 on host-a device  1 [0x0a] GPU\n"
                   "# size count type redop root time algbw busbw\n"
                   "1048576 262144 float sum -1 45.2 23.20 23.20\n"
                   "134217728 33554432 float sum -1 500.2 268.33 268.33\n");
  const std::string line =
      "calibrate " + table + " --cluster dgx-h100 --out " + folder.file("out.json") + " --force";
  const CommandResult text = run_command(line);
  ASSERT_EQ(text.exit_code, 0) << text.errors;
  const std::string& page = text.output;
  EXPECT_THAT(page, HasSubstr("- all_reduce of 2 on 1 node"));
  EXPECT_THAT(page, testing::Not(HasSubstr("/exchange_curves")));
  EXPECT_THAT(page, testing::Not(HasSubstr("95 % from")));
  EXPECT_THAT(page, testing::Not(HasSubstr("worse")));
  const json document = json_of(line);
  EXPECT_EQ(document.at("ops").at(0).at("after"), document.at("ops").at(0).at("before"));
  EXPECT_FALSE(json::parse(folder.read("out.json")).contains("exchange_curves"));
}

// They would be empty, or not there at all.
TEST(CalibrateCommand, RefusesOutputsOfARunWithoutARun) {
  const ScratchFolder folder;
  const CommandResult result =
      run_command("calibrate " + folder.write("table.txt", two_ranks_on("host-a", "host-a")) +
                  " --cluster dgx-h100 --out " + folder.file("out.json") + " --trace " +
                  folder.file("trace.json") + " --kernels " + folder.file("kernels.csv"));
  EXPECT_EQ(result.exit_code, 2);
  for (const char* option : {"--trace", "--kernels"}) {
    EXPECT_THAT(result.errors, HasSubstr(std::string(option) +
                                         ": found output of nccl-tests alone; expected a run"));
  }
  EXPECT_EQ(folder.files(), 1U);
}

// Timings without a run have no step that they are a share of.
TEST(CalibrateCommand, LeavesTheShareOfTimingsAloneEmpty) {
  const ScratchFolder folder;
  const CommandResult result =
      run_command("calibrate " + folder.write("table.txt", two_ranks_on("host-a", "host-a")) +
                  " --cluster dgx-h100 --out " + folder.file("out.json"));
  ASSERT_EQ(result.exit_code, 0) << result.errors;
  EXPECT_THAT(result.output, HasSubstr("all_reduce"));
  EXPECT_THAT(result.output, testing::Not(HasSubstr("nan")));
}

// It would count twice, and narrow the intervals of what it determines.
TEST(CalibrateCommand, TakesEachFileOnceInWhateverSpelling) {
  const ScratchFolder folder;
  const std::string table = folder.write("table.txt", two_ranks_on("host-a", "host-a"));
  const std::string link = folder.file("link.txt"), out = folder.file("out.json");
  std::filesystem::create_symlink(table, link);
  const auto calibrate = [&](const std::string& again) {
    return run_command("calibrate " + table + " " + again + " --cluster dgx-h100 --out " + out);
  };
  const std::string detour =
      (std::filesystem::path(table).parent_path() / "." / "table.txt").string();
  EXPECT_THAT(calibrate(table).errors, HasSubstr("RUN: found " + table + " twice"));
  for (const std::string& again : {link, detour}) {
    const CommandResult result = calibrate(again);
    EXPECT_EQ(result.exit_code, 2);
    EXPECT_THAT(result.errors, HasSubstr("found " + again + ", which is " + table + " again"));
  }
  EXPECT_FALSE(std::filesystem::exists(out));
  std::filesystem::remove(link);
  std::filesystem::copy(table, link);
  EXPECT_EQ(calibrate(link).exit_code, 0);  // another measurement, for all that is known
}

// Neither a run nor timings: each with its name, what it is and what it may be.
TEST(CalibrateCommand, SaysWhatItIsGivenInPlaceOfARun) {
  const ScratchFolder folder;
  std::filesystem::create_directories(folder.file("results"));
  const std::string model = folder.write("model.json", R"({"schema": "x", "version": 1})");
  const CommandResult result = run_command(
      "calibrate " + model + " " + folder.write("empty.txt", "") + " " + folder.file("results") +
      " /dev/null --cluster dgx-h100 --out " + folder.file("out.json"));
  EXPECT_EQ(result.exit_code, 2);
  const std::string expected =
      "; expected the output of nccl-tests, as it is printed or as -J "
      "writes it; of a run its folder";
  EXPECT_THAT(
      result.errors,
      HasSubstr(R"(model.json: found a JSON object with the keys "schema", "version")" + expected));
  EXPECT_THAT(result.errors, HasSubstr("empty.txt: found an empty file" + expected));
  EXPECT_THAT(result.errors, HasSubstr("/dev/null: found a pipe or device; expected the --out "
                                       "folder of shardwright run, or a file"));
  EXPECT_THAT(result.errors, HasSubstr("results: found a folder without plan.json; expected an "
                                       "output folder of shardwright run\n"));
}

TEST(CalibrateCommand, NamesAllThatIsWrong) {
  const ScratchFolder folder;
  const std::string text = folder.write("notes.txt", "hello");
  expect_refused("calibrate " + folder.file("nowhere") + " " + text + " --cluster no-such --out " +
                     folder.file("out.json"),
                 {"nowhere: found no such file or folder; expected the --out "
                  "folder of shardwright run, or a file",
                  "notes.txt: found text without a table of nccl-tests", "no-such"});
  EXPECT_FALSE(std::filesystem::exists(folder.file("out.json")));
}

}  // namespace
}  // namespace shardwright::cli
