// The metrics of a run over its steps, beside their prediction and another run.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "core/base/units.hpp"
#include "gui/models/run_follower.hpp"
#include "gui/models/text.hpp"
#include "gui/views/layouts.hpp"
#include "planner/search.hpp"

namespace shardwright::gui {

class PointChart;

struct DrawnRun {
  std::span<const RunStep> steps;
  QString name;
};

struct RunPrediction {
  const planner::PlanCandidate* plan = nullptr;
  std::optional<Seconds> calibrated;
};

// Says which tensors count as the step's, and which more Timeline counts.
QString tip_of_tensors();

class RunCharts : public PaneRow {
  Q_OBJECT

 public:
  explicit RunCharts(QWidget* parent = nullptr);

  // Draws one run or two. The prediction is that of the first.
  void show(const std::vector<DrawnRun>& runs, const RunPrediction& prediction);

 Q_SIGNALS:
  // The charts have other colours and were cleared.
  void restyled();

 private:
  struct Forecast {
    QString title;
    double value;
    TipSource source;
  };
  // The forecasts of a rate, which is inverse to the step time: as predicted, and with the refitted
  // profile.
  static std::vector<Forecast> forecasts(const RunPrediction& prediction, double at_predicted_step);
  static void draw(PointChart& chart, const std::vector<DrawnRun>& runs, double RunStep::*figure,
                   double factor, const std::vector<Forecast>& forecasts,
                   double RunStep::*validation = nullptr);

  struct Charts {
    PointChart *loss, *rate, *mfu, *memory;
  };
  RunCharts(const Charts& charts, QWidget* parent);

  Charts charts_;
};

}  // namespace shardwright::gui
