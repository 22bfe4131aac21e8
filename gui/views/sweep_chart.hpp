// One or two figures of a sweep over its axis, with what does not fit, the knee and the scenario.
#pragma once

#include <optional>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/sweep_figures.hpp"
#include "gui/models/text.hpp"
#include "gui/views/point_chart.hpp"

namespace shardwright::gui {

struct SweptFigures {
  // Has points.
  planner::Sweep sweep;
  // The swept one.
  Scenario scenario;
  SweepFigure figure = SweepFigure::TokensPerSecondPerGpu;
  // Drawn on an axis of its own on the right.
  std::optional<SweepFigure> second;
  // What the scenario has now of the swept quantity; 0 if nothing.
  double own_value = 0.0;
};

class SweepChart : public PointChart {
  Q_OBJECT

 public:
  explicit SweepChart(QWidget* parent = nullptr);

  void show_nothing();
  void show_figures(SweptFigures shown);

 private:
  // Shortens titles of axes that a low chart would cut. The boxes above it have them whole.
  void fit_titles();
  void add_line();
  void add_preliminary();
  void add_missing();
  void add_current();
  void add_second();
  void add_tips();
  void add_knee();
  QString tip_of(const planner::SweepPoint& point) const;
  TipLine tip_line(SweepFigure figure, const planner::SweepPoint& point) const;

  const char* accelerator() const { return accelerator_word(shown_.scenario.cluster); }
  SweepValue value_at(const planner::SweepPoint& point, SweepFigure figure) const {
    return value_of(figure, point, shown_.scenario);
  }
  SweepValue value_at(const planner::SweepPoint& point) const {
    return value_at(point, shown_.figure);
  }

  SweptFigures shown_;
  // The whole titles of the axes on the left and on the right.
  QString left_title_, right_title_;
};

}  // namespace shardwright::gui
