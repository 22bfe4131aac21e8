// Published timings of kernels: what is accepted can be predicted, or says why not.
#include <cmath>
#include <sstream>

#include "core/spec/profile_library.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "validation/timing_report.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    static const AcceleratorSpec kAccelerator = load_accelerator("h100-sxm");
    std::istringstream lines(text);
    for (const calibration::KernelTiming& timing :
         validation::read_kernel_timings(lines, fuzz::kSource)) {
      if (!timing.unsupported.empty()) continue;
      const Seconds time = calibration::predict(timing, kAccelerator);
      SHARDWRIGHT_CHECK(time > Seconds(0) && std::isfinite(time.value()), "no time");
      SHARDWRIGHT_CHECK(timing.measured > Seconds(0), "nothing measured");
    }
  });
}
