#include "sim/calibration/stack_calibration.hpp"

#include <algorithm>
#include <cmath>

#include "core/lowering/lowering.hpp"
#include "sim/calibration/figure_fit.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::sim {
namespace {

// Fits one number to values of it, as a figure of the same kind as all others.
FitResult fit_value(const std::string& pointer, double first, double least, double most,
                    const std::vector<double>& values) {
  const double start = std::clamp(first, least, most);
  FitResult result = fit({{pointer, start, least, most}}, [&](const std::vector<double>& x) {
    std::vector<double> residuals;
    for (const double value : values) residuals.push_back(std::log(x.front() / value));
    return residuals;
  });
  result.parameters.front().before = first;
  return result;
}

bool determined(const FitResult& result) {
  return result.parameters.front().verdict != FitVerdict::Undetermined;
}

constexpr double kLeastLaunch = 1e-8, kMostLaunch = 1e-2;
constexpr double kLeastSlowdown = 0.005, kMostSlowdown = 10.0;
constexpr double kLeastVariation = 0.001, kMostVariation = 0.2;

void calibrate_launch(ClusterSpec& cluster, const std::vector<RunSamples>& samples,
                      const FigureLog& log) {
  std::vector<double> values;
  for (const RunSamples& each : samples) {
    for (const Seconds launch : each.launches)
      if (launch > Seconds(0)) values.push_back(launch.value() * cluster.node.host.speed);
  }
  if (values.empty()) return;
  const FitResult result = fit_value("/host/launch_s", cluster.stack->launch_time.value(),
                                     kLeastLaunch, kMostLaunch, values);
  if (determined(result)) cluster.stack->launch_time = Seconds(result.parameters.front().value);
  log.add("/stack", "host", result, cluster.stack->sources);
}

void calibrate_slowdown(ClusterSpec& cluster, const std::vector<RunSamples>& samples,
                        const FigureLog& log) {
  std::vector<double> values;
  for (const RunSamples& each : samples) {
    for (const double slowdown : each.slowdowns)
      values.push_back(std::max(kLeastSlowdown, slowdown));
  }
  const FitResult result = fit_value("/overlap/slowdown_ratio", cluster.stack->overlap_slowdown,
                                     kLeastSlowdown, kMostSlowdown, values);
  if (determined(result)) cluster.stack->overlap_slowdown = result.parameters.front().value;
  log.add("/stack", "kernels beside collectives", result, cluster.stack->sources);
}

void calibrate_variation(ClusterSpec& cluster, const std::vector<RunSamples>& samples,
                         const FigureLog& log) {
  std::vector<double> values;
  for (const RunSamples& each : samples) {
    for (const double variation : each.variations)
      values.push_back(std::clamp(variation, kLeastVariation, kMostVariation));
  }
  const FitResult result =
      fit_value("/efficiency/speed_variation_ratio", cluster.accelerator.speed_variation,
                kLeastVariation, kMostVariation, values);
  if (determined(result)) cluster.accelerator.speed_variation = result.parameters.front().value;
  log.add("/accelerator", "jitter", result, cluster.accelerator.sources);
}

struct MemoryTiming {
  double explained = 0.0;  // bytes of states and tensors at the peak
  double measured = 0.0;
};

// Of rank 0, whose process it is that the metrics speak of.
MemoryTiming memory_of(const MeasuredRun& run) {
  StackSpec bare = run.scenario.stack;
  bare.context_memory = bare.communicator_memory = Bytes(0);
  bare.fragmentation = 0.0;
  const Program program = lower(run.scenario.model, run.scenario.plan, run.scenario.stack);
  return {peak_memory(program, bare).front().peak.value(), run.peak_memory.value()};
}

void calibrate_memory(ClusterSpec& cluster, const std::vector<MeasuredRun>& runs,
                      const FigureLog& log) {
  std::vector<MemoryTiming> timings;
  for (const MeasuredRun& run : runs)
    if (run.peak_memory > Bytes(0)) timings.push_back(memory_of(run));
  if (timings.empty()) return;
  const double communicators = cluster.stack->communicator_memory.value();
  const Figures<StackSpec> figures = {
      figure_at<StackSpec>("/memory/context_bytes", 1e5, 1e12,
                           [](StackSpec& s) -> Bytes& { return s.context_memory; }),
      figure_at<StackSpec>("/memory/fragmentation_ratio", 1e-4, 0.9,
                           [](StackSpec& s) -> double& { return s.fragmentation; })};
  const FitResult result =
      fit_first_figure_first<StackSpec>(*cluster.stack, figures, [&](const StackSpec& stack) {
        std::vector<double> residuals;
        for (const MemoryTiming& timing : timings) {
          const double predicted = stack.context_memory.value() + communicators +
                                   timing.explained * (1.0 + stack.fragmentation);
          residuals.push_back(std::log(predicted / timing.measured));
        }
        return residuals;
      });
  log.add("/stack", "memory", result, cluster.stack->sources);
}

}  // namespace

void calibrate_stack(ClusterSpec& cluster, const std::vector<MeasuredRun>& runs,
                     const std::vector<RunSamples>& samples, const FigureLog& log) {
  if (runs.empty()) return;
  calibrate_launch(cluster, samples, log);
  calibrate_slowdown(cluster, samples, log);
  calibrate_variation(cluster, samples, log);
  calibrate_memory(cluster, runs, log);
}

}  // namespace shardwright::sim
