// Timelines and traces: what is accepted reads back as it is written, and becomes a trace; the
// trace of a trace is read again.
#include <sstream>

#include "core/timeline/perfetto.hpp"
#include "core/timeline/timeline.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_document(data, size, [](const nlohmann::json& document) {
    const bool is_trace = document.is_object() && document.contains("traceEvents");
    const Timeline timeline =
        is_trace ? read_perfetto(document, fuzz::kSource) : read_timeline(document, fuzz::kSource);
    fuzz::check_round_trip(timeline, [](const nlohmann::json& written) {
      return read_timeline(written, fuzz::kSource);
    });
    std::ostringstream trace;
    write_perfetto(timeline, trace);
    SHARDWRIGHT_CHECK(nlohmann::json::accept(trace.str()), "a trace that is no JSON");
    if (!is_trace) return;
    try {
      const Timeline again = read_perfetto(nlohmann::json::parse(trace.str()), fuzz::kSource);
      SHARDWRIGHT_CHECK(again.spans.size() == timeline.spans.size(), "spans were lost");
      SHARDWRIGHT_CHECK(again.flows == timeline.flows, "messages have changed");
    } catch (const InputError& error) {
      SHARDWRIGHT_CHECK(false, error.what());
    }
  });
}
