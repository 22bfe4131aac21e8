// Existing content of the folder of a run.
#include "executor/launch/run_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/spec/model_library.hpp"
#include "executor/telemetry/metrics_log.hpp"
#include "executor/telemetry/run_files.hpp"
#include "tests/scratch_path.hpp"
#include "tests/thrown.hpp"

namespace shardwright::executor {
namespace {

class FolderOfARun : public testing::Test {
 protected:
  FolderOfARun() { options_.out = scratch_path("folder"); }

  void write(const std::filesystem::path& name, const std::string& text = "kept") const {
    std::filesystem::create_directories((options_.out / name).parent_path());
    std::ofstream(options_.out / name) << text;
  }
  bool is_there(const std::filesystem::path& name) const {
    return std::filesystem::exists(options_.out / name);
  }
  std::string refusal() const {
    return thrown_by([&] { check_run_folder(options_); });
  }

  RunOptions options_;
};

TEST_F(FolderOfARun, IsMade) {
  EXPECT_EQ(refusal(), "");
  const FolderLock held = prepare_run_folder(options_);
  EXPECT_TRUE(std::filesystem::is_directory(options_.out));
}

TEST_F(FolderOfARun, IsThatOfOneRunAtATime) {
  options_.force = true;
  const std::string checkpoint = "checkpoints/step-00000005/state.json";
  {
    const FolderLock held = prepare_run_folder(options_);
    write(checkpoint);
    EXPECT_THAT(thrown_by([&] { const FolderLock second = prepare_run_folder(options_); }),
                testing::HasSubstr("which another run is writing into"));
    EXPECT_TRUE(is_there(checkpoint));
  }
  const FolderLock next = prepare_run_folder(options_);
  EXPECT_FALSE(is_there(checkpoint));
}

// The metrics of a run, or checkpoints alone, as after copying them.
TEST_F(FolderOfARun, IsNotOverwrittenByDefault) {
  for (const char* left : {"metrics.jsonl", "checkpoints/step-00000005/state.json"}) {
    std::filesystem::remove_all(options_.out);
    write(left);
    EXPECT_THAT(refusal(), testing::HasSubstr("expected a folder without an earlier run")) << left;
    EXPECT_TRUE(is_there(left));
  }
}

// Checked before ranks start; the broken file stays as it is.
TEST_F(FolderOfARun, IsNotResumedWithBrokenMetrics) {
  write("metrics.jsonl", "kept\n{\"step\":1}\n");
  options_.resume = true;
  EXPECT_THAT(refusal(), testing::HasSubstr("metrics.jsonl: line 1: found no JSON"));
  options_.resume = false;
  options_.force = true;
  EXPECT_EQ(refusal(), "");
  EXPECT_TRUE(is_there("metrics.jsonl"));
}

// Reading a pipe would wait for its writer.
TEST_F(FolderOfARun, IsNotResumedWithAPipeOrAFolderInPlaceOfMetrics) {
  const std::string file = (options_.out / "metrics.jsonl").string();
  options_.resume = true;
  std::filesystem::create_directories(file);
  EXPECT_EQ(
      refusal(),
      file + ": found a folder; expected a regular file with the metrics of a run, or nothing");
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_THAT(refusal(), testing::HasSubstr(file + ": found a named pipe; expected"));
  // After a refused run.
  write_prometheus_of_last_line(file);
}

// Other files are replaced.
TEST_F(FolderOfARun, IsNotStartedAnewWithAFolderInPlaceOfMetrics) {
  const std::filesystem::path file = options_.out / "metrics.jsonl";
  options_.force = true;
  std::filesystem::create_directories(file);
  EXPECT_THAT(refusal(), testing::HasSubstr(file.string() + ": found a folder; expected"));
  std::filesystem::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(refusal(), "");
  std::filesystem::remove(file);
  std::filesystem::create_directory_symlink(options_.out, file);
  EXPECT_EQ(refusal(), "");
}

// The run would start anew and replace the existing metrics.
TEST_F(FolderOfARun, IsNotResumedWithoutACheckpointUnlessForced) {
  write("metrics.jsonl", "{\"step\":0}\n{\"step\":1}\n");
  options_.resume = true;
  EXPECT_THAT(refusal(),
              testing::HasSubstr("found no checkpoint in " + options_.checkpoint_folder().string() +
                                 ", and metrics of 2 steps in "));
  options_.force = true;
  EXPECT_EQ(refusal(), "");
  options_.force = false;
  write("checkpoints/step-00000002/state.json");
  EXPECT_EQ(refusal(), "");
}

// A run that always resumes, also the first time, or that failed in its first step.
TEST_F(FolderOfARun, IsResumedWithoutACheckpointIfNoStepIsLost) {
  options_.resume = true;
  EXPECT_EQ(refusal(), "");
  write("metrics.jsonl", "");
  EXPECT_EQ(refusal(), "");
}

TEST_F(FolderOfARun, LosesItsCheckpointsOnlyIfForced) {
  const char* const checkpoint = "checkpoints/step-00000005/state.json";
  write(checkpoint);
  options_.resume = true;
  EXPECT_EQ(refusal(), "");
  { const FolderLock held = prepare_run_folder(options_); }
  EXPECT_TRUE(is_there(checkpoint));
  options_.resume = false;
  options_.force = true;
  EXPECT_EQ(refusal(), "");
  const FolderLock held = prepare_run_folder(options_);
  EXPECT_FALSE(is_there(checkpoint));
}

// Whatever an earlier run, or someone else, has linked to: --force replaces the links.
TEST_F(FolderOfARun, IsOverwrittenWithoutFollowingLinks) {
  const std::vector<std::string> names = {
      "metrics.jsonl", "metrics.jsonl.tmp", "metrics.prom",      "metrics.prom.tmp",
      "plan.json",     "plan.json.tmp",     "timeline-3-0.json", "timeline-3-0.json.tmp"};
  const std::filesystem::path elsewhere = scratch_path("elsewhere");
  std::filesystem::create_directories(elsewhere / "checkpoints");
  std::filesystem::create_directories(options_.out);
  const auto link = [&](const std::string& name) {
    std::ofstream(elsewhere / name) << "precious";
    std::filesystem::create_symlink(elsewhere / name, options_.out / name);
  };
  for (const std::string& name : names) link(name);
  std::ofstream(elsewhere / "checkpoints/file") << "precious";
  std::filesystem::create_directory_symlink(elsewhere / "checkpoints",
                                            options_.out / "checkpoints");
  options_.force = true;
  {
    const FolderLock held = prepare_run_folder(options_);
    MetricsLog metrics(options_.metrics_file(), {}, 0);
    StepReport report;
    report.seconds = 0.1;
    metrics.write(report, {});
    write_json(options_.out / "plan.json", {{"schema", "a plan"}});
    write_timeline(options_.out, 3, 0, {});
    EXPECT_FALSE(is_there("checkpoints"));
  }
  for (const std::string& name : names) EXPECT_EQ(content_of(elsewhere / name), "precious") << name;
  EXPECT_EQ(content_of(elsewhere / "checkpoints/file"), "precious");
  for (const char* written : {"metrics.jsonl", "metrics.prom", "plan.json", "timeline-3-0.json"})
    EXPECT_TRUE(
        std::filesystem::is_regular_file(std::filesystem::symlink_status(options_.out / written)));
}

// Each parameter of a checkpoint takes twelve bytes; no disk of a test has room for these.
TEST_F(FolderOfARun, NeedsSpaceForItsCheckpoints) {
  const ModelSpec model = load_model("llama3.1-405b");
  const auto found = [&] { return thrown_by([&] { check_free_space(options_, model); }); };
  options_.training.steps = 100;
  EXPECT_EQ(found(), "");
  options_.checkpoint_every = 30;
  options_.keep_checkpoints = 1;
  EXPECT_THAT(found(), testing::ContainsRegex("--out: found .*B of free space in /.*; expected "
                                              "9.74 TB: 2 checkpoints of 4.87 TB"));
  options_.keep_checkpoints = 9;
  EXPECT_THAT(found(), testing::HasSubstr(": 3 checkpoints of 4.87 TB"));
  options_.checkpoint_every = 101;
  EXPECT_EQ(found(), "");
  EXPECT_FALSE(std::filesystem::exists(options_.out));
}

}  // namespace
}  // namespace shardwright::executor
