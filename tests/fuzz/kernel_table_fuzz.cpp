// Tables of measured kernels: what is accepted reads back as it is written, and prices kernels.
#include <cmath>
#include <sstream>

#include "core/spec/profile_library.hpp"
#include "sim/cost/kernel_cost.hpp"
#include "sim/cost/measured_kernels.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    static const AcceleratorSpec kAccelerator = load_accelerator("h100-sxm");
    std::istringstream table(text);
    AcceleratorSpec accelerator = kAccelerator;
    accelerator.measured_kernels = sim::read_kernel_table(table, fuzz::kSource);
    std::stringstream written;
    sim::write_kernel_table(written, accelerator.measured_kernels);
    SHARDWRIGHT_CHECK(
        sim::read_kernel_table(written, fuzz::kSource) == accelerator.measured_kernels,
        "the table changed on a round trip");
    for (const MeasuredKernel& kernel : accelerator.measured_kernels) {
      const Seconds time =
          sim::kernel_cost(kernel.kind, kernel.work, kernel.precision, accelerator, StackSpec{})
              .time;
      SHARDWRIGHT_CHECK(time >= Seconds(0) && std::isfinite(time.value()), "no time");
    }
  });
}
