// What the ops of a run took, as the simulator means it.
//
// The simulator starts an op as soon as its stream and all that it waits for are ready, and counts
// its price from then on. So that is what is sampled: the time from `ready` to the op's end, with
// the wake-up of its thread; of a collective or message from when the last member was ready. A
// measured op is matched with its op of the program by rank, stream, peer and place in the stream's
// order; name, layer and microbatch must agree.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/program/op.hpp"
#include "core/spec/cluster_spec.hpp"
#include "sim/calibration/measured_run.hpp"
#include "sim/cost/placement.hpp"

namespace shardwright::sim {

// A kernel on a shape: the mean of its middle half of timings.
struct KernelSample {
  std::string name;  // of an op that it is
  OpKind kind = OpKind::Gemm;
  Phase phase = Phase::Forward;  // recomputation counts as forward
  Precision precision = Precision::Fp32;
  Work work;
  Seconds time;           // beside no collective
  std::size_t count = 0;  // timings
};

// A collective or message of one size in groups of one shape.
struct ExchangeTiming {
  std::string name;
  OpKind kind = OpKind::AllReduce;
  GroupPlacement placement;
  Bytes bytes;
  Seconds time;
  std::size_t count = 0;
};

struct RunSamples {
  std::vector<KernelSample> kernels;
  std::vector<ExchangeTiming> exchanges;
  Seconds launch;  // of the host for each op
  // How much longer kernels took beside a collective, relatively, and the time of the kernels that
  // say so; without such kernels zero.
  double slowdown = 0.0;
  Seconds slowed;
  // How much later than the mean the last member came to collectives, of the time since the one
  // before, over what the expected extreme of as many normal deviates is: a relative deviation.
  double variation = 0.0;
  std::size_t meetings = 0;  // that say so
};

// `cluster` places the groups. Throws InputError, naming the run, where a timeline does not belong
// to the run's plan.
RunSamples sample_run(const MeasuredRun& run, const ClusterSpec& cluster);

}  // namespace shardwright::sim
