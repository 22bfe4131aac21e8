// Simulated runs told from their beginning to their end, and the progress of many over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/run/run_simulation.hpp"

namespace shardwright::sim {

// What a run does between two of its events.
struct RunSpan {
  RunPart part = RunPart::Step;
  Seconds begin, end;
  // The share of the run's work that is done at both ends. A failure takes it back to a checkpoint.
  double from = 0.0, to = 0.0;
};

struct RunInterruption {
  FailureCause cause = FailureCause::Gpu;
  Seconds time;
  // The running time since the state that the run goes back to.
  Seconds lost;
};

struct RunHistory {
  // Without gaps, in the order of time.
  std::vector<RunSpan> spans;
  std::vector<RunInterruption> interruptions;
  RunOutcome outcome;
  // The time of the run if nothing interrupts it, and its uses.
  Seconds running_time;
  RunTimes running{};
  // The share of the work between two checkpoints.
  double checkpoint_share = 0.0;

  // The share of the work that is done at a time; that of the end afterwards.
  double progress_at(Seconds time) const;
  // The uses of the time from `begin` to `end`, in so many parts of equal length. Work that a
  // failure takes back later counts as lost, as in the outcome.
  std::vector<RunTimes> times_between(Seconds begin, Seconds end, std::size_t parts) const;
};

// The progress of all runs of `options`.
struct RunTrajectory {
  std::vector<Seconds> times;
  // The share of the work that is done at each time: of ten runs, one has done no more than p10.
  std::vector<Percentiles> progress;
  // The run whose wall time is the median.
  RunHistory median;
};

// Asks for `points` times from zero to `until`, at least two.
RunTrajectory run_trajectory(const RunModel& model, const RunOptions& options, Seconds until,
                             std::size_t points);

}  // namespace shardwright::sim
