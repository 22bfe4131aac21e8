// Timelines: what is accepted reads back as it is written, and becomes a trace.
#include <sstream>

#include "core/timeline/perfetto.hpp"
#include "core/timeline/timeline.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_document(data, size, [](const nlohmann::json& document) {
    const Timeline timeline = read_timeline(document, fuzz::kSource);
    fuzz::check_round_trip(timeline, [](const nlohmann::json& written) {
      return read_timeline(written, fuzz::kSource);
    });
    std::ostringstream trace;
    write_perfetto(timeline, trace);
    SHARDWRIGHT_CHECK(nlohmann::json::accept(trace.str()), "a trace that is no JSON");
  });
}
