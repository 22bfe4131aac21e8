// Simulates training runs of weeks: a discrete-event simulation of failures, recovery and repair
// that jumps over whole checkpoint intervals in closed form between two events.
#pragma once

#include <cstdint>
#include <stop_token>

#include "sim/run/run_model.hpp"

namespace shardwright::sim {

struct RunOptions {
  std::int64_t runs = 1000;
  std::uint64_t seed = 1;
  // 0: as many threads as cores.
  int threads = 0;
  // Simulations of many runs end early once a stop is requested; their results then mean nothing.
  std::stop_token stop{};
};

struct RunHistory;

// The step time of run `index` of `runs` over the predicted one. The runs divide the distribution,
// whose 10 % and 90 % quantiles are those of the interval, evenly among them, so that few of them
// have its median.
double step_factor(const RunModel& model, std::int64_t runs, std::int64_t index);

// Simulates run `index` of `runs`. The interval of the model is above zero.
RunOutcome simulate_run(const RunModel& model, const RunOptions& options, std::int64_t index);
// The same, told from its beginning to its end (run_history.hpp).
RunHistory simulate_history(const RunModel& model, const RunOptions& options, std::int64_t index);

// Simulates all runs. The result does not depend on the number of threads.
RunStatistics simulate_runs(const RunModel& model, const RunOptions& options);

}  // namespace shardwright::sim
