// Published runs: what is accepted has figures that a forecast can be held against.
#include <cmath>
#include <sstream>

#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "validation/published_run.hpp"

using namespace shardwright;

// Reads shipped documents here, so that no input is charged with the time.
extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  shipped_cluster_specs();
  shipped_model_specs();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    std::istringstream lines(text);
    for (const validation::PublishedRun& run :
         validation::read_published_runs(lines, fuzz::kSource)) {
      if (!run.setup.scenario) continue;
      SHARDWRIGHT_CHECK(run.tokens > 0.0, "a run without tokens");
      SHARDWRIGHT_CHECK(run.gpu_hours() > 0.0 && std::isfinite(run.gpu_hours()),
                        "a run without hours");
    }
  });
}
