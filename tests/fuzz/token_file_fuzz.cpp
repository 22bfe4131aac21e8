// Corpora: raw tokens, llm.c's files and Megatron's. An input is the data, a line "%%" and
// Megatron's index, if there is one.
#include <vector>

#include "executor/data/token_file.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/fuzz/scratch_folder.hpp"

using namespace shardwright;

namespace {

void read_all(const std::filesystem::path& path) {
  const executor::TokenFile file(path);
  std::vector<std::int32_t> tokens(file.tokens());
  file.read(0, tokens);
  for (const std::int32_t token : tokens) SHARDWRIGHT_CHECK(token >= 0, "a negative token");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    static const fuzz::ScratchFolder kFolder;
    const fuzz::TwoFiles files(text);
    for (const char* name : {"data.bin", "data.u32"}) {
      kFolder.write(name, files.first);
      std::filesystem::remove(kFolder.path() / "data.idx");
      if (!files.second.empty()) kFolder.write("data.idx", files.second);
      try {
        read_all(kFolder.path() / name);
      } catch (const InputError&) {
        continue;
      }
    }
  });
}
