// Folders of runs as calibration reads them back, and the metrics of an earlier run as the executor
// goes on with them. An input is the metrics, a line "%%" and the timeline of the one rank.
#include "calibration/calibrate.hpp"
#include "calibration/measured_run.hpp"
#include "core/spec/scenario.hpp"
#include "executor/telemetry/metrics_log.hpp"
#include "tests/fuzz/fuzz_input.hpp"
#include "tests/fuzz/scratch_folder.hpp"

using namespace shardwright;

namespace {

constexpr const char* kPlan = R"({"schema": "shardwright/plan", "version": 1, "model": "gpt2",
  "cluster": "dgx-h100", "stack": "megatron-core", "plan": {"dp": 1, "tp": 1, "pp": 1,
  "micro_batch": 1, "global_batch": 1, "seq_len": 64}})";

// With all its parts inside: names would be looked up on the disk for each input.
const std::string& whole_plan() {
  static const std::string kWhole =
      to_json(read_scenario(parse_json(kPlan, fuzz::kSource), fuzz::kSource)).dump();
  return kWhole;
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** /*arguments*/) {
  whole_plan();
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::try_text(data, size, [](const std::string& text) {
    static const fuzz::ScratchFolder kFolder;
    const fuzz::TwoFiles files(text);
    kFolder.write("metrics.jsonl", files.first);
    const executor::MetricsLog log(kFolder.path() / "metrics.jsonl", {}, 1);
    kFolder.write("metrics.jsonl", files.first);
    kFolder.write("plan.json", whole_plan());
    kFolder.write("timeline-3-0.json", files.second);
    const calibration::MeasuredRun run = calibration::load_run(kFolder.path());
    calibration::calibrate(run.scenario.cluster, {.runs = {run}, .exchanges = {}}, fuzz::kSource);
  });
}
