// How collectives slow down the kernels that run beside them on the same accelerator.
//
// A collective's own kernels occupy streaming multiprocessors and memory bandwidth. While at least
// one runs, the compute stream works at the rate 1 / (1 + s): a kernel that starts at t and takes d
// alone ends at T with
//
//   integral from t to T of r(u) du = d,   r(u) = 1 / (1 + s) beside a collective, else 1.
//
// s is the stack's `slowdown_ratio` (Prices::interference). Measured on four GPUs: 19 % on average
// over models, batches and accelerators (A100, H100, MI210, MI250), up to 40 % ("Characterizing
// Compute-Communication Overlap in GPU-Accelerated Distributed Deep Learning", arXiv 2507.03114);
// a kernel of exactly one wave can lose half of its rate.
//
// Only collectives that the host issued before the kernel count: those after it hardly ever start
// before it ends. Pipeline messages and copies to the host do not count: they use copy engines or
// few multiprocessors. Two collectives at once slow kernels no more than one.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "core/program/op.hpp"

namespace shardwright::sim {

// The collectives of one rank, as far as kernels to come may run beside them. Times in seconds.
class RunningCollectives {
 public:
  // Those of one stream are added in the order of time.
  void add(Stream stream, double start, double finish);

  // When a kernel is through that takes `duration` alone. Kernels are asked for in the order of
  // time: what ended before `start` is forgotten.
  double finish_of_kernel(double start, double duration, double slowdown);

 private:
  struct Interval {
    double start, finish;
  };
  struct Queue {
    std::vector<Interval> intervals;
    std::size_t first = 0;  // that has not ended
  };

  void forget(double time);

  std::array<Queue, kStreams> queues_;
  std::vector<std::size_t> busy_;  // queues with a collective that has not ended
};

}  // namespace shardwright::sim
