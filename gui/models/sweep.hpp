// One quantity of a training step against another: GPUs, batch, sequence length, bandwidth.
#pragma once

#include <QString>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "planner/search.hpp"
#include "validation/prediction_interval.hpp"

namespace shardwright::gui {

enum class SweepAxis : std::uint8_t {
  Gpus,
  GlobalBatch,
  SeqLen,
  ScaleOutBandwidth,  // between nodes
  ScaleUpBandwidth,   // NVLink
  MemoryBandwidth,
};
inline constexpr int kSweepAxes = 6;

QString title_of(SweepAxis axis);  // "GPUs", "Inter-node bandwidth (GB/s per NIC)"

// Whose figures the points are.
enum class SweepPlan : std::uint8_t {
  Best,    // of each point
  Chosen,  // as it is at every point
};

// Along GPUs there is no other: a plan is of one number of them.
SweepPlan possible_plan(SweepAxis axis, SweepPlan wanted);

// What changes along the axis, what stays the same and what is searched again.
QString tip_of(SweepAxis axis, SweepPlan plan);

enum class SweepFigure : std::uint8_t {
  TokensPerSecond,
  TokensPerSecondPerGpu,
  Step,
  Mfu,
  Memory,
  CostPerMegatoken,
  EnergyPerKilotoken,
  Hfu,
  Exposed,
  Bubble,
  Host,
};
inline constexpr int kSweepFigures = 11;

QString title_of(SweepFigure figure);  // with its unit

// Whether the figure hangs on the step time, of which the prediction interval is known. Shares of
// the step and memory have none.
bool has_interval(SweepFigure figure);

struct SweepPoint {
  double x = 0.0;
  std::optional<planner::PlanCandidate> best;  // none: no plan runs here
  bool fits = true;                            // in memory
  QString why_not;                             // where `best` is missing or does not fit
  // Searched among the usual schedules and shardings alone (narrow_limits): the whole space may
  // hold a better plan, or one that fits.
  bool preliminary = false;
};

struct Sweep {
  SweepAxis axis = SweepAxis::Gpus;
  SweepPlan plan = SweepPlan::Best;
  std::vector<SweepPoint> points;                      // ascending in x
  std::optional<validation::PredictionGround> ground;  // of its predictions
  std::optional<double> knee;  // where more stops to pay in tokens per second, or the last
                               // sequence that fits
  QString knee_reason;         // also why there is none; empty while points are preliminary
  // Along GPUs, where the request leaves the batch open: sequences, the knee of the throughput on
  // the largest machine, which all points train (while any is preliminary, those searched last).
  std::optional<std::int64_t> chosen_batch;
  QString obstacle;  // why there is nothing to sweep, as a sentence; empty where there is

  bool is_final() const;
};

// Whether the knee is one of this figure's own curve: that of throughput, which cost and step time
// follow, is none of memory's.
bool knee_is_of(SweepAxis axis, SweepFigure figure);

struct SweepValue {
  double value = 0.0;
  double low = 0.0, high = 0.0;  // 80 % of measurements lie between; the value itself where the
                                 // figure has no interval
};

// `ground`: of the prediction; nothing where no interval is known.
SweepValue value_of(SweepFigure figure, const planner::PlanCandidate& candidate,
                    std::optional<validation::PredictionGround> ground);

// What is told while a sweep is at work; either may be empty.
struct SweepWatch {
  // Shares of the work; may be called from several threads, one at a time.
  std::function<void(double)> progress;
  // All points, first as the narrow search has them, then after each that the whole space was
  // searched for. Not the last time, which is the answer.
  std::function<void(const Sweep&)> found;
};

// `scenario` is the chosen plan, `request` what it was found for, with the limits of its search.
// The best plans are those of planner::search and, along GPUs, planner::scale: one search after
// the other. Throws InputError. Once `stop` is requested it ends with what there is so far.
Sweep run_sweep(SweepAxis axis, SweepPlan plan, const planner::PlanRequest& request,
                const Scenario& scenario, const SweepWatch& watch, const std::stop_token& stop);

}  // namespace shardwright::gui
