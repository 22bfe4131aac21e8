// Traces as JSON of PyTorch's profiler and memory snapshots: what is accepted becomes a report that
// is JSON, in which parts are not larger than what they are parts of.
#include <algorithm>
#include <cstring>

#include "calibration/traces/kineto.hpp"
#include "calibration/traces/memory_snapshot.hpp"
#include "calibration/traces/rank_matching.hpp"
#include "calibration/traces/trace_report.hpp"
#include "tests/fuzz/fuzz_input.hpp"

using namespace shardwright;

namespace {

void check_snapshot(const std::string& text) {
  const PickleDocument document = read_pickle(text, fuzz::kSource);
  const auto snapshot = calibration::memory_snapshot(document.root, fuzz::kSource);
  for (const calibration::DeviceMemory& device : snapshot.devices)
    SHARDWRIGHT_CHECK(device.fragmentation() >= 0.0 && device.fragmentation() <= 1.0,
                      "split memory");
  calibration::to_json(snapshot).dump();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    if (text.starts_with('\x80')) return check_snapshot(text);
    std::size_t at = 0;
    const calibration::ByteSource bytes = [&](char* to, std::size_t most) {
      const std::size_t count = std::min({most, text.size() - at, std::size_t{64}});
      std::memcpy(to, text.data() + at, count);
      at += count;
      return count;
    };
    const calibration::Trace trace = calibration::read_kineto(bytes, fuzz::kSource);
    const calibration::TraceReport report = calibration::report_of(trace);
    const calibration::BusyTimes& times = report.times;
    const double rounding = 1.0 + 1e-9;
    SHARDWRIGHT_CHECK(times.exposed_collective <= times.collective * rounding, "exposed time");
    SHARDWRIGHT_CHECK(times.busy <= times.window * rounding, "busy time");
    calibration::Trace other = trace;
    other.rank = trace.rank.value_or(0) == 0 ? 1 : 0;
    calibration::match_ranks({trace, other});
    calibration::to_json(report).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  });
}
