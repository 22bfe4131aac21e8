// The interruptions of one run and cause, in the order of their times.
#pragma once

#include <optional>

#include "sim/run/random_stream.hpp"
#include "sim/run/run_model.hpp"

namespace shardwright::sim {

// Everything that chance decides about an interruption. It does not depend on what the run does at
// that time, so that variants of a run meet the same failures (common random numbers).
struct Interruption {
  Seconds time;
  bool correlated = false;
  bool replaced = false;
  bool manual = false;
  // The repair time over its mean.
  double repair = 0.0;
};

class FailureSource {
 public:
  // `rate_factor` multiplies the rate of the process.
  FailureSource(const FailureProcess& process, double rate_factor, RandomStream random);

  // Returns the next interruption, or nothing if there is none.
  std::optional<Interruption> next(const RunModel& model);

 private:
  // The time at which `exponential` more failures than until now_ are expected.
  double time_after(double exponential) const;

  double rate_, shape_, age_, kept_, replaced_;
  double now_ = 0.0;
  RandomStream random_;
};

}  // namespace shardwright::sim
