// The times of the ops of a run, as the simulator means them.
//
// The simulator starts an op as soon as its stream and all that it waits for are ready, and counts
// its price from then on. So the samples are: the time from `ready` to the op's end, with
// the wake-up of its thread; of a collective or message from when the last member was ready. A
// measured op is matched with its op of the program by rank, stream, peer and place in the stream's
// order; name, layer and microbatch must agree.
#pragma once

#include <string>
#include <vector>

#include "calibration/measured_run.hpp"
#include "core/op/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::calibration {

// A kernel on a shape.
struct KernelSample {
  // The name of one of its ops.
  std::string name;
  OpKind kind = OpKind::Gemm;
  // Recomputation counts as forward.
  Phase phase = Phase::Forward;
  Precision precision = Precision::Fp32;
  Work work;
  // Beside no collective: of each step the mean of its timings on all ranks. (Not their median:
  // what interrupts a kernel now and then is part of the step.)
  std::vector<Seconds> times;
  // The sum of all timings.
  Seconds total;
};

// A collective or message of one size in groups of one shape.
struct ExchangeTiming {
  std::string name;
  OpKind kind = OpKind::AllReduce;
  sim::GroupPlacement placement;
  Bytes bytes;
  // Times from the last member's arrival, ordered by step, too.
  std::vector<Seconds> times;
  // Times from the mean arrival to the last; empty if it is not within a stage.
  std::vector<Seconds> skews;
  Seconds total;
};

// One of the pools that an exchange reaches, with the places that the ranks of its group would have
// if all of them were there.
struct PoolEnd {
  std::string pool;
  sim::GroupPlacement placement;

  bool operator==(const PoolEnd&) const = default;
};

// A collective or message between pools. Its timing has the placement of the first end.
struct PoolExchange {
  ExchangeTiming timing;
  std::vector<PoolEnd> ends;
};

struct RunSamples {
  std::vector<KernelSample> kernels;
  std::vector<ExchangeTiming> exchanges;
  // Times of the host for an op, by rank and step.
  std::vector<Seconds> launches;
  // The relative time by which kernels took longer beside a collective (below zero: less long), for
  // each kernel that ran both alone and beside some.
  std::vector<double> slowdowns;
  // Relative standard deviation, over the ranks of a stage, of the time that kernels took, by step.
  std::vector<double> variations;
  // The device computed without long pauses, so that its clock was that of training. A few steps of
  // a host that cannot keep up run at a higher one.
  bool at_training_clock = true;
  // Sentences on what the samples leave out, and why.
  std::vector<std::string> left_out{};
  // The exchanges between pools, if the profile has all of these.
  std::vector<PoolExchange> between_pools{};
};

// `cluster` places the groups. Of a run on several pools, these are the samples of the pool that
// has its name, and of what stays on this pool. Throws InputError, naming the run, where a timeline
// does not belong to the run's plan.
RunSamples sample_run(const MeasuredRun& run, const ClusterSpec& cluster);

// The kernels of the device that runs timed alone, each shape once: the mean over its timings.
std::vector<MeasuredKernel> kernels_of(const std::vector<MeasuredRun>& runs,
                                       const ClusterSpec& cluster);

// The mean of the middle half of times, or of all of fewer than four. At least one.
Seconds middle_mean(const std::vector<Seconds>& times);

}  // namespace shardwright::calibration
