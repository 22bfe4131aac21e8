// The chart of a run over its days.
#pragma once

#include <memory>
#include <vector>

#include "gui/models/run_forecast.hpp"
#include "gui/views/chart.hpp"

namespace shardwright::gui {

// The looks of a use of the time of a run.
int series_of(sim::RunPart part);
Qt::BrushStyle hatch_of(sim::RunPart part);

// Above, the tokens that runs have trained against time: the range of 80 % of them and the run of
// median length with its interruptions, and with its checkpoints where it is zoomed in far enough.
// Below, what the time of that run goes into besides its steps.
class TrajectoryChart : public Chart {
  Q_OBJECT

 public:
  explicit TrajectoryChart(QWidget* parent = nullptr);

  void show(std::shared_ptr<const RunForecast> run);
  void show_nothing();
  const QCPAxisRect& losses() const { return *losses_; }
  // The checkpoints that are marked; none while they would touch each other.
  int marked_checkpoints() const;

 protected:
  QString tool_tip_at(const QPointF& position) const override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 private:
  void create_losses();
  void rebuild();
  void add_range();
  void add_median();
  void add_interruptions();
  void show_all();
  // What depends on the part of the axis in view.
  void follow_axis();
  void mark_checkpoints();
  void fill_losses();
  double tokens_at(double share) const;
  const sim::RunInterruption* interruption_at(const QPointF& position) const;

  std::shared_ptr<const RunForecast> run_;
  // Tokens over the unit of the axis.
  double unit_ = 1.0;
  QCPAxisRect* losses_ = nullptr;
  QCPGraph* checkpoints_ = nullptr;
  std::vector<QCPBars*> bars_;
  // The uses of the part in view, in parts of equal length.
  std::vector<sim::RunTimes> times_;
};

}  // namespace shardwright::gui
