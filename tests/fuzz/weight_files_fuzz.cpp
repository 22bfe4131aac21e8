// Folders of weights: an index and a config.json of Hugging Face beside whole tensors. An input is
// the index, a line "%%" and the configuration.
#include "core/spec/model_library.hpp"
#include "executor/checkpoint/weight_files.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/fuzz/scratch_folder.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    static const fuzz::ScratchFolder kFolder;
    static const ModelSpec kModel = load_model("gpt2");
    const fuzz::TwoFiles files(text);
    kFolder.write("model.safetensors.index.json", files.first);
    kFolder.write("config.json", files.second);
    kFolder.write("model.safetensors", std::string("\2\0\0\0\0\0\0\0{}", 10));
    executor::WeightFiles(kFolder.path()).check(kModel);
  });
}
