// Output of nccl-tests, as text and as JSON.
#include "calibration/nccl_tests.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    const auto samples = calibration::parse_nccl_tests(text, fuzz::kSource).samples;
    SHARDWRIGHT_CHECK(
        read_exchanges(nlohmann::json::parse(to_json(samples).dump()), fuzz::kSource) == samples,
        "samples that are none");
  });
}
