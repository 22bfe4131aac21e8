#include "gui/views/run_charts.hpp"

#include <algorithm>
#include <cmath>

#include "gui/models/scenario_tips.hpp"
#include "gui/models/text.hpp"
#include "gui/views/point_chart.hpp"

namespace shardwright::gui {
namespace {

// Validations that are few and far between are marked, in pixels: a dotted line alone is lost on
// the line of the steps.
constexpr qsizetype kMostMarks = 60;
constexpr double kMarkSize = 4.5;

// Returns the tensors that a step allocates, as the run counts them: without those that last from
// step to step, and without memory that no tensor explains.
Bytes tensor_memory(const sim::StepResult& result) {
  Bytes tensors;
  for (const MemoryCategory category : {MemoryCategory::Activations, MemoryCategory::Temporaries,
                                        MemoryCategory::GatheredParameters, MemoryCategory::Logits})
    tensors += result.stages.front().memory.of(category);
  return tensors;
}

PointChart* metric_chart(const QString& id, const QString& title) {
  auto* chart = new PointChart;
  chart->setObjectName(id);
  chart->allow_zoom();
  chart->xAxis->setTicker(QSharedPointer<WholeTicker>::create(chart->xAxis));
  chart->xAxis->setLabel(RunCharts::tr("step"));
  chart->yAxis->setLabel(title);
  chart->legend->setVisible(true);
  chart->put_legend_above();
  return chart;
}

void draw_steps(Chart& chart, const DrawnRun& run, const QPen& pen, double RunStep::*figure,
                double factor, const QString& name) {
  QVector<double> xs, ys;
  for (const RunStep& step : run.steps) {
    if (!std::isfinite(step.*figure)) continue;
    xs.append(step.step);
    ys.append(step.*figure * factor);
  }
  if (xs.isEmpty()) return;
  QCPGraph* graph = chart.addGraph();
  graph->setName(name);
  graph->setPen(pen);
  graph->setData(xs, ys, true);
  // A line of one point draws nothing.
  if (xs.size() == 1 || (pen.style() == Qt::DotLine && xs.size() <= kMostMarks))
    graph->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssDisc, pen.color(), kMarkSize));
}

// The steps that are drawn, each with its figure.
std::vector<ChartPoint> points_of(const PointChart& chart) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < chart.graphCount(); ++i) {
    for (const QCPGraphData& step : *chart.graph(i)->data())
      points.push_back({step.key, step.value, i});
  }
  return points;
}

QString tip_of_step(const PointChart& chart, const ChartPoint& point) {
  return tool_tip(RunCharts::tr("step %1").arg(count_text(static_cast<std::int64_t>(point.x))),
                  TipSource(RunCharts::tr("measured, %1").arg(chart.graph(point.graph)->name())),
                  {{chart.yAxis->label(),
                    RunCharts::tr("%1, %2 of the largest")
                        .arg(short_text(point.y), percent_text(point.y / chart.largest()))}});
}

// A prediction is held against what was measured, where a step was.
QString tip_of_prediction(const PointChart& chart, const QString& title, double value,
                          const TipSource& source) {
  const double largest = std::isfinite(chart.largest()) ? chart.largest() : value;
  return tool_tip(
      title, source,
      {{chart.yAxis->label(), RunCharts::tr("%1, %2 of the largest")
                                  .arg(short_text(value), percent_text(value / largest))}});
}

}  // namespace

QString tip_of_tensors() {
  return RunCharts::tr(
      "The most that activations, temporaries, gathered parameters and logits take in a step. "
      "What Timeline calls allocated holds parameters, gradients and optimizer states, too.");
}

RunCharts::RunCharts(QWidget* parent)
    : RunCharts(
          {metric_chart(u"run_loss"_s, tr("loss")), metric_chart(u"run_rate"_s, tr("tokens/s")),
           metric_chart(u"run_mfu"_s, tr("MFU (%)")),
           metric_chart(u"run_memory"_s, tr("step's tensors (MB)"))},
          parent) {}

RunCharts::RunCharts(const Charts& charts, QWidget* parent)
    : PaneRow({charts.loss, charts.rate, charts.mfu, charts.memory}, {300, 300, 300, 300}, parent),
      charts_(charts) {
  for (PointChart* chart : {charts.loss, charts.rate, charts.mfu, charts.memory})
    connect(chart, &Chart::restyled, this, &RunCharts::restyled);
}

void RunCharts::draw(PointChart& chart, const std::vector<DrawnRun>& runs, double RunStep::*figure,
                     double factor, const std::vector<Forecast>& forecasts,
                     double RunStep::*validation) {
  chart.clear_all();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const QColor colour = chart.colours().series(i == 0 ? 0 : 3);
    draw_steps(chart, runs[i], QPen(colour, 1.8, i == 0 ? Qt::SolidLine : Qt::DashDotLine), figure,
               factor, runs[i].name);
    if (validation != nullptr)
      draw_steps(chart, runs[i], QPen(colour, 1.8, Qt::DotLine), validation, factor,
                 tr("%1, validation").arg(runs[i].name));
  }
  chart.set_points(points_of(chart), [&chart](std::size_t point) {
    return tip_of_step(chart, chart.points()[point]);
  });
  double most = 0.0, last = 1.0;
  for (int i = 0; i < chart.graphCount(); ++i) {
    for (const QCPGraphData& step : *chart.graph(i)->data()) {
      most = std::max(most, step.value);
      last = std::max(last, step.key);
    }
  }
  int series = 1;
  for (const Forecast& forecast : forecasts) {
    QCPGraph* line = chart.addGraph();
    line->setName(forecast.title);
    line->setPen(
        QPen(chart.colours().series(series), 1.8, series == 1 ? Qt::DashLine : Qt::DotLine));
    line->setData({0.0, last}, {forecast.value, forecast.value}, true);
    chart.add_level(forecast.value,
                    tip_of_prediction(chart, forecast.title, forecast.value, forecast.source));
    most = std::max(most, forecast.value);
    ++series;
  }
  chart.xAxis->setRange(0.0, last);
  chart.yAxis->setRange(0.0, most > 0.0 ? 1.15 * most : 1.0);
  chart.replot(QCustomPlot::rpQueuedReplot);
}

std::vector<RunCharts::Forecast> RunCharts::forecasts(const RunPrediction& prediction,
                                                      double at_predicted_step) {
  std::vector<Forecast> all = {{tr("predicted"), at_predicted_step, simulated_step()}};
  if (prediction.calibrated) {
    const double gain = prediction.plan->result.step / *prediction.calibrated;
    all.push_back(
        {tr("calibrated"), at_predicted_step * gain,
         TipSource(tr("event simulation with the profile that was calibrated on this run"))});
  }
  return all;
}

void RunCharts::show(const std::vector<DrawnRun>& runs, const RunPrediction& prediction) {
  std::vector<Forecast> rates, shares, memory;
  if (prediction.plan != nullptr) {
    const sim::StepResult& result = prediction.plan->result;
    rates = forecasts(prediction, prediction.plan->tokens() / result.step.value());
    shares = forecasts(prediction, 100.0 * result.throughput.mfu);
    memory = {{tr("predicted"), tensor_memory(result).value() / 1e6, simulated_step()}};
  }
  draw(*charts_.loss, runs, &RunStep::loss, 1.0, {}, &RunStep::validation_loss);
  draw(*charts_.rate, runs, &RunStep::tokens_per_s, 1.0, rates);
  draw(*charts_.mfu, runs, &RunStep::mfu, 100.0, shares);
  draw(*charts_.memory, runs, &RunStep::memory_bytes, 1e-6, memory);
}

}  // namespace shardwright::gui
