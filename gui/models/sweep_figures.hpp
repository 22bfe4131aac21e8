// The figures of a sweep that the window draws, and their texts.
#pragma once

#include <QString>
#include <QStringList>
#include <optional>

#include "gui/models/scenario_choice.hpp"
#include "planner/sweep.hpp"
#include "validation/prediction_errors.hpp"

namespace shardwright::gui {

// "GPUs", "Inter-node bandwidth (GB/s per NIC)". `accelerator` is the word for what trains.
QString title_of(planner::SweepAxis axis, const char* accelerator = "GPU");

// Returns a value of the axis in the unit of its title.
double axis_value(planner::SweepAxis axis, double value);

// "64", "1.5": the same on the axis, at the knee and below the chart.
QString axis_text(planner::SweepAxis axis, double value);

// The points of a sweep as the user sets them, in the unit of the axis' title.
struct SweepRange {
  double from = 0.0, to = 0.0;
  int points = 0;

  bool operator==(const SweepRange&) const = default;
};
inline constexpr Range kSweepPoints = {2, 24};

// The ends that the user may set, and the most points.
SweepRange widest_range(planner::SweepAxis axis);

QStringList texts_of(const SweepRange& range);
// Reads both ends and the number of points. Returns none for texts that name no possible range.
std::optional<SweepRange> read_range(planner::SweepAxis axis, const QStringList& ends_and_points);

// Returns the values from one end to the other, each as much larger than the one before, in the
// unit of the planner. They are ones that plans can have: GPUs in whole nodes or powers of two,
// batches in multiples of `batch_unit` sequences, lengths in multiples of 128 tokens. Fewer where
// several come to the same.
std::vector<double> swept_values(planner::SweepAxis axis, const SweepRange& range,
                                 std::int64_t gpus_of_node, std::int64_t batch_unit);

// Says what changes along the axis, what stays the same and what is searched again.
QString tip_of(planner::SweepAxis axis, planner::SweepPlan plan, const char* accelerator = "GPU");

// Says how many points of a sweep that goes on, or was stopped, are the best of the whole space.
QString preliminary_text(const planner::Sweep& sweep, bool stopped);

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

QString title_of(SweepFigure figure, const char* accelerator = "GPU");

// True if the figure depends on the step time, whose prediction interval is known. Memory and
// shares of the step have none.
bool has_interval(SweepFigure figure);

// True if the knee, which is one of throughput, belongs to this figure's own curve. Cost and step
// time follow throughput; memory does not.
bool knee_is_of(planner::SweepAxis axis, SweepFigure figure);

struct SweepValue {
  double value = 0.0;
  // 80 % of measurements lie between these; both are the value if the figure has no interval.
  double low = 0.0, high = 0.0;
};

// `of` is the class of the prediction; it is none if no interval is known.
SweepValue value_of(SweepFigure figure, const planner::PlanCandidate& candidate,
                    std::optional<validation::PredictionClass> of);

// Returns the figure of a point that has a candidate, in a sweep of the scenario.
SweepValue value_of(SweepFigure figure, const planner::SweepPoint& point, const Scenario& swept);

}  // namespace shardwright::gui
