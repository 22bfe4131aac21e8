// Published timings of collectives: what is accepted can be predicted, or says why not.
#include <cmath>
#include <sstream>

#include "core/spec/profile_library.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "validation/timing_report.hpp"

using namespace shardwright;

// The shipped clusters are read here, which is no input's time.
extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  shipped_cluster_specs();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    std::istringstream lines(text);
    for (const calibration::CollectiveTiming& timing :
         validation::read_collective_timings(lines, fuzz::kSource)) {
      if (!timing.unsupported.empty()) continue;
      const Seconds time = calibration::predict(timing, *timing.cluster);
      SHARDWRIGHT_CHECK(time > Seconds(0) && std::isfinite(time.value()), "no time");
      SHARDWRIGHT_CHECK(timing.measured > Seconds(0), "nothing measured");
    }
  });
}
