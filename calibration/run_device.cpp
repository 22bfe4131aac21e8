#include "calibration/run_device.hpp"

#include <fmt/format.h>

namespace shardwright::calibration {
namespace {

bool is_cpu(const AcceleratorSpec& accelerator) {
  return accelerator.architecture == kCpuArchitecture;
}

}  // namespace

void check_device(const MeasuredRun& run, const ClusterSpec& cluster, ProblemList& problems) {
  const AcceleratorSpec& planned = run.scenario.cluster.accelerator;
  const AcceleratorSpec& profile = cluster.accelerator;
  const bool on_cpu = run.device.empty() ? is_cpu(planned) : run.device == kCpuDevice;
  const std::string expected =
      fmt::format("one on {}, which the cluster {} is of", profile.name, cluster.name);
  if (on_cpu != is_cpu(profile)) {
    problems.add("run " + run.name, on_cpu ? "a run on CPUs" : "a run on GPUs", expected);
  } else if (on_cpu == is_cpu(planned) && planned.name != profile.name) {
    problems.add("run " + run.name, "a run planned for " + planned.name, expected);
  }
}

}  // namespace shardwright::calibration
