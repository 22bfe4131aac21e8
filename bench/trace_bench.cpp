// A trace of PyTorch's profiler with 200,000 kernels (320 MB): read, as a timeline, and as a
// report.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <variant>

#include "calibration/traces/trace_file.hpp"
#include "calibration/traces/trace_report.hpp"
#include "calibration/traces/trace_timeline.hpp"
#include "tests/calibration/traces/written_trace.hpp"

namespace shardwright::calibration {
namespace {

constexpr std::int64_t kKernels = 200'000;

const std::filesystem::path& file() {
  static const WrittenTrace kFile(kKernels);
  return kFile.path();
}

const Trace& trace() {
  static const Trace kTrace = std::get<Trace>(read_recording(file()));
  return kTrace;
}

void read_file(benchmark::State& state) {
  file();
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(read_recording(file()));
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(std::filesystem::file_size(file())));
}
BENCHMARK(read_file)->Unit(benchmark::kMillisecond)->UseRealTime();

void make_timeline(benchmark::State& state) {
  trace();
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(timeline_of(trace()));
}
BENCHMARK(make_timeline)->Unit(benchmark::kMillisecond);

void make_report(benchmark::State& state) {
  trace();
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(report_of(trace()));
}
BENCHMARK(make_report)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwright::calibration
