// Checks that a checkpoint flushes each folder on the path to it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <vector>

#include "executor/checkpoint/checkpoint_folder.hpp"
#include "tests/scratch_path.hpp"

namespace {

std::mutex guard;
// Paths in the order of flushing.
std::vector<std::string> flushed;

}  // namespace

// Replaces the C library's function.
extern "C" int fsync(int descriptor) {
  {
    std::error_code unknown;
    const std::scoped_lock lock(guard);
    flushed.push_back(
        std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor), unknown)
            .string());
  }
  return static_cast<int>(syscall(SYS_fsync, descriptor));
}

namespace shardwright::executor {
namespace {

std::vector<std::string> flushed_by_checkpoint(CheckpointFolder& folder, std::int64_t steps) {
  flushed.clear();
  const std::filesystem::path place = folder.begin(steps);
  for (const char* name : {kModelFile, kOptimizerFile}) std::ofstream(place / name) << "tensors";
  RunState state;
  state.steps = steps;
  folder.finish(state);
  return flushed;
}

TEST(FlushedFolders, OfTheFirstCheckpointHoldTheFolderOfCheckpointsToo) {
  const std::filesystem::path out = scratch_path("flushed");
  std::filesystem::create_directories(out);
  CheckpointFolder folder(out / "checkpoints");
  const std::string unfinished = folder.unfinished(1).string();
  EXPECT_THAT(flushed_by_checkpoint(folder, 1),
              testing::ElementsAre(out.string(), unfinished + "/" + kModelFile,
                                   unfinished + "/" + kOptimizerFile, unfinished + "/" + kStateFile,
                                   unfinished, (out / "checkpoints").string()));
  EXPECT_THAT(flushed_by_checkpoint(folder, 2), testing::Not(testing::Contains(out.string())));
}

}  // namespace
}  // namespace shardwright::executor
