// Refits a cluster profile to runs of the executor and to timed exchanges.
//
// Kernels: where the device has curves (a CPU), the curve of each kind and phase; else the
// KernelEfficiency. Exchanges: the figures of links and network, and for each kind of exchange in
// groups of each shape alpha and beta. Of the stack: the host's time for an op, the slowdown of
// kernels beside collectives, the memory that no tensor explains. Of the device: the variation of
// speed among ranks. All by robust least squares on logarithms (least_squares.hpp); a figure that
// the data do not determine, or push to a limit of its range, stays as it was, and nothing gets a
// curve of such figures alone: data that determine nothing leave every prediction as it was.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/error_statistics.hpp"
#include "calibration/least_squares.hpp"
#include "calibration/measured_run.hpp"
#include "calibration/run_samples.hpp"
#include "core/base/error.hpp"
#include "core/spec/cluster_spec.hpp"
#include "core/spec/exchange_sample.hpp"
#include "core/timeline/timeline.hpp"

namespace shardwright::calibration {

struct CalibratedFigure {
  // The pointer into the cluster's file.
  std::string pointer;
  // "gemm forward" or "all_reduce of 4 on 4 nodes", for example.
  std::string about;
  FittedParameter fit;
  std::size_t samples = 0;
  // The median relative error that is left of the samples.
  double residual = 0.0;
};

// A run's step under the profile before and after.
struct StepComparison {
  std::string run;
  Seconds measured, before, after;

  double error_before() const { return before / measured - 1.0; }
  double error_after() const { return after / measured - 1.0; }
  // The profile's step was nearer before, by more than rounding.
  bool got_worse() const;
};

// Errors of the durations of all ops of one kind.
struct OpErrors {
  std::string kind;
  // The time of all such ops on all ranks in the recorded steps.
  Seconds share;
  ErrorSummary before, after;

  // The median error was smaller before, by more than noise.
  bool got_worse() const;
};

struct Calibration {
  ClusterSpec cluster;
  // Figures of the profile, also those that stay as they were.
  std::vector<CalibratedFigure> figures;
  // Kernels and exchanges ("norm forward", "all_reduce of 2 on 1 node") that the profile has no
  // curve of, and of which the data determine none: they are priced as before.
  std::vector<std::string> without_curve;
  // Steps of the runs, in their order.
  std::vector<StepComparison> steps;
  std::vector<OpErrors> ops;
};

struct CalibrationData {
  std::vector<MeasuredRun> runs;
  // Samples of ranks numbered as the cluster's, or on its hosts.
  std::vector<ExchangeSample> exchanges;
  // The samples of other programs' traces (trace_samples.hpp), and the stack whose host figures
  // they refit.
  std::optional<RunSamples> recorded{};
  std::optional<StackSpec> stack{};
};

// Runs on several pools count with the ranks of the pool that has the cluster's name.
//
// `source` is what fitted figures name as their origin, with this confidence. Throws InputError
// where a run does not fit its plan, or the profile has no place for a plan or an exchange.
Calibration calibrate(const ClusterSpec& cluster, const CalibrationData& data,
                      const std::string& source, Confidence confidence = Confidence::Fitted);

// The stack of a run's scenario as the profile knows it: that of the profile where it is the same
// one by name.
StackSpec stack_on(const ClusterSpec& cluster, const StackSpec& stack);

// The simulated step (event level) of a scenario on the profile, whatever cluster it names; of a
// plan on several pools with the profile in place of the pool that has its name.
Seconds predicted_step(const Scenario& scenario, const ClusterSpec& cluster);

// Adds a problem where the run computed on CPUs and the profile is of GPUs or the other way round,
// or where it was planned for another accelerator of the same kind. A run that does not say what it
// computed on did so on what its plan is for.
void check_device(const MeasuredRun& run, const ClusterSpec& cluster, ProblemList& problems);

// The run's last recorded step. Each measured rank is followed by the prediction of its stage on
// the profile: rank r becomes 2 r and 2 r + 1, labelled "rank 3, stage 1: measured" and ":
// predicted". Spans keep their names, streams, layers and microbatches, so that they can be
// compared line by line.
Timeline side_by_side(const MeasuredRun& run, const ClusterSpec& cluster);

}  // namespace shardwright::calibration
