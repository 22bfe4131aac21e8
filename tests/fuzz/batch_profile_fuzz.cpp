// Batch profiles.
#include "core/spec/batch_json.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_document(data, size, [](const nlohmann::json& document) {
    fuzz::check_round_trip(read_batch(document, fuzz::kSource), [](const nlohmann::json& written) {
      return read_batch(written, fuzz::kSource);
    });
  });
}
