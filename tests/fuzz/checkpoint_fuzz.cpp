// State files of checkpoints: one that is accepted is of its checkpoint's step, or damage is found.
#include "executor/checkpoint/checkpoint_folder.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/fuzz/scratch_folder.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    static const fuzz::ScratchFolder kFolder;
    executor::CheckpointFolder checkpoints(kFolder.path());
    std::filesystem::create_directories(checkpoints.path(1));
    const std::string name = checkpoints.path(1).filename().string() + "/";
    kFolder.write(name + executor::kModelFile, "");
    kFolder.write(name + executor::kOptimizerFile, "");
    kFolder.write(name + executor::kStateFile, text);
    const auto damage = checkpoints.find_damage(1);
    const executor::RunState state = checkpoints.read_state(1);
    SHARDWRIGHT_CHECK(damage || state.steps == 1, "another step's checkpoint without damage");
  });
}
