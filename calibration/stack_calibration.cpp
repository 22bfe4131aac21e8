#include <algorithm>
#include <cmath>

#include "calibration/figure_fit.hpp"
#include "calibration/part_calibration.hpp"
#include "core/lowering/lowering.hpp"
#include "core/spec/pools.hpp"
#include "sim/memory/memory_replay.hpp"

namespace shardwright::calibration {
namespace {

bool determined(const FitResult& result) {
  return is_determined(result.parameters.front().verdict);
}

// Gives figures that stay their first value, though a fit begins within the limits.
void keep_first(FitResult& result, double first) {
  FittedParameter& figure = result.parameters.front();
  figure.before = first;
  if (!determined(result)) figure.value = first;
}

// Fits one number to values of it, as a figure of the same kind as all others.
FitResult fit_value(const std::string& pointer, double first, double least, double most,
                    const std::vector<double>& values) {
  const double start = std::clamp(first, least, most);
  FitResult result = fit({{pointer, start, least, most}}, [&](const std::vector<double>& x) {
    std::vector<double> residuals;
    for (const double value : values) residuals.push_back(std::log(x.front() / value));
    return residuals;
  });
  keep_first(result, first);
  return result;
}

// Fits a number that may be zero or, by noise, below: a kernel's time with it is 1 + number, over
// that without. Residuals are shares of the time without.
FitResult fit_addition(const std::string& pointer, double first, double most,
                       const std::vector<double>& values) {
  const double start = 1.0 + std::clamp(first, 0.0, most);
  FitResult result = fit({{pointer, start, 1.0, 1.0 + most}}, [&](const std::vector<double>& x) {
    std::vector<double> residuals;
    for (const double value : values) residuals.push_back(x.front() - (1.0 + value));
    return residuals;
  });
  FittedParameter& figure = result.parameters.front();
  for (double* each : {&figure.value, &figure.low, &figure.high, &figure.limit})
    *each = std::max(0.0, *each - 1.0);
  keep_first(result, first);
  return result;
}

constexpr double kLeastLaunch = 1e-8, kMostLaunch = 1e-2;
constexpr double kMostSlowdown = 10.0;
// The least is a clock's step.
constexpr double kLeastVariation = 1e-6, kMostVariation = 0.2;

void calibrate_launch(ClusterSpec& cluster, const std::vector<RunSamples>& samples,
                      const FigureLog& log) {
  std::vector<double> values;
  for (const RunSamples& each : samples) {
    for (const Seconds launch : each.launches)
      if (launch > Seconds(0)) values.push_back(launch.value() * cluster.node.host.speed);
  }
  if (values.empty()) return;
  const FitResult result = fit_value("/host/launch_s", cluster.stack->host.launch_time.value(),
                                     kLeastLaunch, kMostLaunch, values);
  if (determined(result))
    cluster.stack->host.launch_time = Seconds(result.parameters.front().value);
  log.add("/stack", "host", result, cluster.stack->sources);
}

void calibrate_slowdown(ClusterSpec& cluster, const std::vector<RunSamples>& samples,
                        const FigureLog& log) {
  std::vector<double> values;
  for (const RunSamples& each : samples) {
    values.insert(values.end(), each.slowdowns.begin(), each.slowdowns.end());
  }
  const FitResult result = fit_addition("/overlap/slowdown_ratio", cluster.stack->overlap.slowdown,
                                        kMostSlowdown, values);
  if (determined(result)) cluster.stack->overlap.slowdown = result.parameters.front().value;
  log.add("/stack", "kernels beside collectives", result, cluster.stack->sources);
}

void calibrate_variation(ClusterSpec& cluster, const std::vector<RunSamples>& samples,
                         const FigureLog& log) {
  std::vector<double> values;
  for (const RunSamples& each : samples) {
    for (const double variation : each.variations)
      values.push_back(std::max(kLeastVariation, variation));
  }
  const FitResult result =
      fit_value("/efficiency/speed_variation_ratio", cluster.accelerator.speed_variation,
                kLeastVariation, kMostVariation, values);
  if (determined(result)) cluster.accelerator.speed_variation = result.parameters.front().value;
  log.add("/accelerator", "jitter", result, cluster.accelerator.sources);
}

struct MemoryTiming {
  // Bytes of states and tensors at the peak.
  double explained = 0.0;
  double measured = 0.0;
};

// Takes rank 0, whose process the metrics speak of.
MemoryTiming memory_of(const MeasuredRun& run) {
  StackSpec bare = run.scenario.stack;
  bare.memory.context = bare.memory.communicator = Bytes(0);
  bare.memory.fragmentation = 0.0;
  const Program program = lower(run.scenario.model, run.scenario.plan, run.scenario.stack);
  return {sim::peak_memory(program, bare).front().peak.value(), run.peak_memory.value()};
}

// True if rank 0 is on the hosts of the profile.
bool begins_on(const ClusterSpec& cluster, const Plan& plan) {
  return !names_pools(plan) || pool_name_of_stage(plan, 0) == cluster.name;
}

void calibrate_memory(ClusterSpec& cluster, const std::vector<MeasuredRun>& runs,
                      const FigureLog& log) {
  std::vector<MemoryTiming> timings;
  for (const MeasuredRun& run : runs)
    if (run.peak_memory > Bytes(0) && begins_on(cluster, run.scenario.plan))
      timings.push_back(memory_of(run));
  if (timings.empty()) return;
  const double communicators = cluster.stack->memory.communicator.value();
  const Figures<StackSpec> figures = {
      figure_at<StackSpec>("/memory/context_bytes", 1e5, 1e12,
                           [](StackSpec& s) -> Bytes& { return s.memory.context; }),
      figure_at<StackSpec>("/memory/fragmentation_ratio", 1e-4, 0.9,
                           [](StackSpec& s) -> double& { return s.memory.fragmentation; })};
  const FitResult result =
      fit_first_figure_first<StackSpec>(*cluster.stack, figures, [&](const StackSpec& stack) {
        std::vector<double> residuals;
        for (const MemoryTiming& timing : timings) {
          const double predicted = stack.memory.context.value() + communicators +
                                   timing.explained * (1.0 + stack.memory.fragmentation);
          residuals.push_back(std::log(predicted / timing.measured));
        }
        return residuals;
      });
  log.add("/stack", "memory", result, cluster.stack->sources);
}

}  // namespace

void calibrate_stack(ClusterSpec& cluster, const std::vector<MeasuredRun>& runs,
                     const std::vector<RunSamples>& samples, const FigureLog& log) {
  if (samples.empty() || !cluster.stack) return;
  calibrate_launch(cluster, samples, log);
  calibrate_slowdown(cluster, samples, log);
  calibrate_variation(cluster, samples, log);
  calibrate_memory(cluster, runs, log);
}

}  // namespace shardwright::calibration
