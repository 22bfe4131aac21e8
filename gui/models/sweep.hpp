// One quantity of a training step against another: GPUs, batch, sequence length, bandwidth.
#pragma once

#include <QString>
#include <functional>
#include <optional>
#include <stop_token>
#include <vector>

#include "planner/search.hpp"
#include "sim/validation/prediction_interval.hpp"

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
  Best,    // of each point, among the usual schedules and shardings
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
};

struct Sweep {
  SweepAxis axis = SweepAxis::Gpus;
  SweepPlan plan = SweepPlan::Best;
  std::vector<SweepPoint> points;               // ascending in x
  std::optional<sim::PredictionGround> ground;  // of its predictions
  std::optional<double> knee;  // where more stops to pay in tokens per second, or the last
                               // sequence that fits
  QString knee_reason;         // also why there is none
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
                    std::optional<sim::PredictionGround> ground);

// `scenario` is the chosen plan, `request` what it was found for. Throws InputError.
// `progress` gets shares of the work and may be called from several threads, one at a time.
Sweep run_sweep(SweepAxis axis, SweepPlan plan, const planner::PlanRequest& request,
                const Scenario& scenario, const std::function<void(double)>& progress,
                const std::stop_token& stop);

}  // namespace shardwright::gui
