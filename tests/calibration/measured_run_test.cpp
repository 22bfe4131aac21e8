// Folders of runs that are not as the executor wrote them.
#include "calibration/measured_run.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/spec/scenario.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::calibration {
namespace {

using ::testing::HasSubstr;

class RunFolder : public ::testing::Test {
 protected:
  RunFolder() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write("plan.json", R"({"schema": "shardwright/plan", "version": 1, "model": "gpt2",
      "cluster": "dgx-h100", "stack": "megatron-core", "plan": {"dp": 1, "tp": 1, "pp": 1,
      "micro_batch": 1, "global_batch": 1, "seq_len": 64}})");
    write("metrics.jsonl", line(0, 0.5) + line(1, 0.25));
    write("timeline-1-0.json", timeline(R"([{"rank": 0, "label": "stage 0"}])"));
  }

  // A line of a step under the program that `more` says; without it, of a run of before programs
  // were recorded.
  static std::string line(int step, double seconds, const std::string& more = "") {
    return "{\"step\": " + std::to_string(step) + ", \"step_s\": " + std::to_string(seconds) +
           more + "}\n";
  }
  static std::string of_program(const std::string& sum) { return ", \"program\": \"" + sum + "\""; }

  static std::string timeline(const std::string& ranks) {
    return R"({"schema": "shardwright/timeline", "version": 1, "origin": "measured", "ranks": )" +
           ranks + R"(, "spans": [], "flows": [], "memory": []})";
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  std::string error() const {
    return thrown_by([this] { load_run(folder_); });
  }

  const std::filesystem::path folder_ = scratch_path("run");
};

TEST_F(RunFolder, IsReadWhereAllIsThere) {
  const MeasuredRun run = load_run(folder_);
  EXPECT_EQ(run.steps.size(), 1U);
  EXPECT_EQ(run.step_times.size(), 2U);
}

// Recording takes time on a GPU, where the other steps are the run's; a CPU keeps all.
TEST_F(RunFolder, RecordedStepsOnAGpuAreLeftOutIfThereAreOthers) {
  const auto run_on = [&](const std::string& device) {
    const std::string more = ", \"device\": \"" + device + "\"";
    write("metrics.jsonl", line(0, 0.25, more) + line(1, 0.75, more));
    return load_run(folder_);
  };
  EXPECT_EQ(run_on("cuda").step_times, std::vector<Seconds>{Seconds(0.25)});
  EXPECT_EQ(run_on("cuda").recording_time, Seconds(0.5));
  EXPECT_EQ(run_on("cpu").step_times.size(), 2U);
  EXPECT_EQ(run_on("cpu").recording_time, Seconds(0));
  write("timeline-0-0.json", timeline(R"([{"rank": 0, "label": "stage 0"}])"));
  EXPECT_EQ(run_on("cuda").step_times.size(), 2U);
  EXPECT_EQ(run_on("cuda").recording_time, Seconds(0));
}

TEST_F(RunFolder, HasItsOwnNameHoweverItIsWritten) {
  const std::string name = folder_.filename().string();
  std::filesystem::create_directories(folder_ / "below");
  for (const std::filesystem::path& path :
       {folder_, folder_ / "", folder_ / ".", folder_ / "below" / ".."})
    EXPECT_EQ(load_run(path).name, name) << path;
}

// Steps 0 to 2 under another plan, from step 3 on under plan.json; step 9 is of a longer run that
// was written over.
TEST_F(RunFolder, StepsOfOtherPlansAreLeftOut) {
  const std::string program =
      program_fingerprint(nlohmann::json::parse(std::ifstream(folder_ / "plan.json")));
  const std::string before = of_program("0123456789abcdef"), now = of_program(program);
  write("metrics.jsonl", line(0, 8.0, before) + line(1, 8.0, before) + line(2, 8.0, before) +
                             line(3, 0.5, now) + line(4, 0.5, now));
  for (const char* name : {"timeline-4-0.json", "timeline-9-0.json"})
    write(name, timeline(R"([{"rank": 0, "label": "stage 0"}])"));
  const MeasuredRun run = load_run(folder_);
  EXPECT_EQ(run.step_times, std::vector<Seconds>(2, Seconds(0.5)));
  ASSERT_EQ(run.steps.size(), 1U);
  EXPECT_EQ(run.steps.front().step, 4);
  EXPECT_EQ(run.left_out.steps, 3);
  EXPECT_EQ(run.left_out.recorded_steps, 2);
}

TEST_F(RunFolder, StepsOfOtherPlansAloneAreNoRun) {
  write("metrics.jsonl", line(1, 8.0, of_program("0123456789abcdef")));
  EXPECT_THAT(error(), HasSubstr("metrics.jsonl: found 1 steps under other plans than plan.json"));
}

TEST_F(RunFolder, TimelinesAreOfOneRankEach) {
  write("timeline-1-0.json", timeline("[]"));
  EXPECT_THAT(error(), HasSubstr("timeline-1-0.json: /ranks: found 0 ranks; expected the one"));
}

// A file that was renamed; timelines of before they said their step are taken by their name.
TEST_F(RunFolder, TimelinesAreOfTheStepThatTheirNameSays) {
  auto said = nlohmann::json::parse(timeline(R"([{"rank": 0, "label": "stage 0"}])"));
  for (const int step : {1, 7}) {
    said["step"] = step;
    write("timeline-1-0.json", said.dump());
    if (step == 1) {
      EXPECT_EQ(load_run(folder_).steps.size(), 1U);
    }
  }
  EXPECT_THAT(error(), HasSubstr("timeline-1-0.json: /step: found 7; expected 1, as the file's"));
}

TEST_F(RunFolder, BrokenLinesOfMetricsAreNamedByFileAndLine) {
  write("metrics.jsonl",
        line(0, 0.5) + "{\"step\": 1, \"step_s\": \"slow\"}\n[1]\n{\"step_s\": NaN}\n");
  const std::string all = error();
  EXPECT_THAT(all, HasSubstr("metrics.jsonl: line 2/step_s: found \"slow\""));
  EXPECT_THAT(all, HasSubstr("metrics.jsonl: line 3: found an array of 1; expected an object"));
  EXPECT_THAT(all, HasSubstr("metrics.jsonl: line 4: found"));
}

// A run that was killed while it wrote leaves such a line: it is left out, and that is known.
TEST_F(RunFolder, ALastLineThatIsCutOffIsLeftOut) {
  EXPECT_FALSE(load_run(folder_).left_out.torn_line);
  const std::string whole = line(0, 0.5) + line(1, 0.25);
  write("metrics.jsonl", whole + line(2, 0.75).substr(0, 15));
  EXPECT_TRUE(load_run(folder_).left_out.torn_line);
  EXPECT_EQ(load_run(folder_).step_times.size(), 2U);
  write("metrics.jsonl", whole + "{\"step\": 2, \"step_s\": 0.75}");
  EXPECT_FALSE(load_run(folder_).left_out.torn_line);
  EXPECT_EQ(load_run(folder_).step_times.size(), 3U);
  // A line with its end, or before another one, is none that a killed run leaves.
  write("metrics.jsonl", whole + "{\"step\": 2, \n");
  EXPECT_THAT(error(), HasSubstr("metrics.jsonl: line 3"));
  write("metrics.jsonl", line(0, 0.5) + "{\"step\": \n" + line(1, 0.25));
  EXPECT_THAT(error(), HasSubstr("metrics.jsonl: line 2"));
  write("metrics.jsonl", whole + "{\"step\": 2, \"step_s\": \"slow\"}");
  EXPECT_THAT(error(), HasSubstr("metrics.jsonl: line 3/step_s"));
}

// A pipe would be waited for.
TEST_F(RunFolder, PipesAndFoldersInPlaceOfItsFilesAreNamed) {
  for (const char* name : {"plan.json", "metrics.jsonl", "timeline-1-0.json"}) {
    const std::filesystem::path file = folder_ / name, kept = folder_ / "kept";
    std::filesystem::rename(file, kept);
    ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
    EXPECT_EQ(
        error(),
        file.string() + ": found a named pipe; expected a file that shardwright run has written");
    std::filesystem::remove(file);
    std::filesystem::create_directory(file);
    EXPECT_THAT(error(), HasSubstr(file.string() + ": found a folder; expected"));
    std::filesystem::remove(file);
    std::filesystem::rename(kept, file);
    EXPECT_EQ(error(), "");
  }
}

TEST_F(RunFolder, WhatIsMissingIsNamed) {
  std::filesystem::remove(folder_ / "timeline-1-0.json");
  EXPECT_THAT(error(), HasSubstr("timeline-STEP-RANK.json"));
  std::filesystem::remove(folder_ / "metrics.jsonl");
  EXPECT_THAT(error(), HasSubstr("metrics.jsonl: found no such readable file"));
}

}  // namespace
}  // namespace shardwright::calibration
