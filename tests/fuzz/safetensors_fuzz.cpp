// Safetensors files: every element of a tensor that is accepted lies in the file.
#include "executor/checkpoint/safetensors.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/fuzz/scratch_folder.hpp"

using namespace shardwright;

namespace {

void read_all(const executor::SafetensorsFile& file, const std::string& name) {
  const auto* view = file.find(name);
  if (view == nullptr || !view->is_readable()) return;
  executor::StoredTensor tensor{name, view->shape};
  const auto elements = static_cast<std::size_t>(tensor.elements());
  volatile float sum = 0.0F;
  for (std::size_t i = 0; i < elements; ++i) sum = sum + view->at(i);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    static const fuzz::ScratchFolder kFolder;
    kFolder.write("weights", text);
    try {
      const executor::SafetensorsFile file(kFolder.path() / "weights",
                                           executor::SafetensorsFile::Access::Read);
      for (const char* name : {"a", "b"}) read_all(file, name);
    } catch (const RuntimeFailure&) {
      return;
    }
  });
}
