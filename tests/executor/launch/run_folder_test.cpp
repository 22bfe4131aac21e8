// Existing content of the folder of a run.
#include "executor/launch/run_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "executor/telemetry/metrics_log.hpp"
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

}  // namespace
}  // namespace shardwright::executor
