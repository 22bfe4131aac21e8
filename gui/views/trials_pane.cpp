#include "gui/views/trials_pane.hpp"

#include <QSignalBlocker>
#include <QTableWidget>
#include <algorithm>
#include <cmath>
#include <utility>

#include "core/base/error.hpp"
#include "gui/models/text.hpp"
#include "gui/views/point_chart.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

constexpr int kTableShare = 360, kChartShare = 460;

PointChart* loss_chart() {
  auto* chart = named<PointChart>(u"trials_loss"_s);
  chart->allow_zoom();
  chart->xAxis->setLabel(TrialsPane::tr("steps"));
  chart->yAxis->setLabel(TrialsPane::tr("loss of each trial"));
  return chart;
}

// Adds a trial's finite losses and returns the largest step.
double add_losses(Chart& chart, const std::vector<std::int64_t>& steps, const planner::Trial& trial,
                  bool is_chosen) {
  constexpr double kThin = 1.2, kThick = 2.4;
  QVector<double> xs, ys;
  for (std::size_t i = 0; i < trial.losses.size(); ++i) {
    if (!std::isfinite(trial.losses[i])) continue;
    xs.append(static_cast<double>(steps[i]));
    ys.append(trial.losses[i]);
  }
  const QColor colour = is_chosen ? chart.colours().series(0) : chart.colours().muted_text;
  QCPGraph* graph = chart.addGraph();
  graph->setPen(QPen(colour, is_chosen ? kThick : kThin));
  graph->setScatterStyle(scatter_style(Marker::Disc, colour, is_chosen ? 7.0 : 4.0));
  graph->setData(xs, ys, true);
  return xs.isEmpty() ? 0.0 : xs.back();
}

}  // namespace

TrialsPane::TrialsPane(QWidget* parent)
    : TrialsPane(text_table_widget(u"trials_table"_s), loss_chart(), parent) {}

TrialsPane::TrialsPane(QTableWidget* table, PointChart* chart, QWidget* parent)
    : PaneRow({table, chart}, {kTableShare, kChartShare}, parent), table_(table), chart_(chart) {
  constexpr int kLeastHeight = 180;
  table_->setSelectionMode(QAbstractItemView::SingleSelection);
  table_->setMinimumHeight(kLeastHeight);
  connect(table_, &QTableWidget::itemSelectionChanged, this, &TrialsPane::choose_row);
  connect(chart_, &Chart::restyled, this, &TrialsPane::draw);
  connect(chart_, &PointChart::point_clicked, this, [this](int point) {
    const std::size_t trial =
        drawn_[static_cast<std::size_t>(chart_->points()[static_cast<std::size_t>(point)].graph)];
    const auto row = std::ranges::find(tuning_->ranking, trial);
    table_->selectRow(static_cast<int>(row - tuning_->ranking.begin()));
  });
  connect(&watcher_, &QFileSystemWatcher::directoryChanged, this, &TrialsPane::read_again);
  hide();
}

void TrialsPane::show_tuning(TuningResults tuning) {
  forget();
  tuning_ = std::move(tuning);
  watcher_.addPath(tuning_->folder);
  fill();
  if (table_->rowCount() > 0) table_->selectRow(0);
  show();
}

void TrialsPane::forget() {
  if (tuning_) watcher_.removePath(tuning_->folder);
  tuning_.reset();
  chosen_.reset();
  hide();
}

// A file that cannot be read is being replaced or gone; what is shown stays.
void TrialsPane::read_again() {
  try {
    tuning_ = read_tuning_results(tuning_->folder);
  } catch (const InputError&) {
    return;
  }
  fill();
}

void TrialsPane::fill() {
  const QSignalBlocker quiet(table_);
  show_table(*table_, table_of(*tuning_));
  const auto row =
      std::ranges::find(tuning_->ranking, chosen_.value_or(tuning_->study.trials.size()));
  if (row != tuning_->ranking.end())
    table_->selectRow(static_cast<int>(row - tuning_->ranking.begin()));
  draw();
}

void TrialsPane::choose_row() {
  const int row = table_->currentRow();
  if (!tuning_ || row < 0 || row >= std::ssize(tuning_->ranking)) return;
  chosen_ = tuning_->ranking[static_cast<std::size_t>(row)];
  draw();
  Q_EMIT chosen(*chosen_);
}

void TrialsPane::draw() {
  if (!tuning_) return;
  chart_->clear_all();
  drawn_.clear();
  double last = 1.0;
  const auto add = [&](std::size_t trial, bool is_chosen) {
    drawn_.push_back(trial);
    last = std::max(
        last, add_losses(*chart_, tuning_->steps[trial], tuning_->study.trials[trial], is_chosen));
  };
  for (std::size_t trial = 0; trial < tuning_->study.trials.size(); ++trial)
    if (trial != chosen_) add(trial, false);
  if (chosen_) add(*chosen_, true);  // above the others
  answer_for_points();
  chart_->rescaleAxes();
  chart_->xAxis->setRange(0.0, last * 1.05);
  chart_->yAxis->scaleRange(1.1);
  chart_->replot(QCustomPlot::rpQueuedReplot);
}

void TrialsPane::answer_for_points() {
  std::vector<ChartPoint> points;
  for (int graph = 0; graph < chart_->graphCount(); ++graph) {
    for (const QCPGraphData& loss : *chart_->graph(graph)->data())
      points.push_back({loss.key, loss.value, graph});
  }
  chart_->set_points(std::move(points), [this](std::size_t point) {
    const ChartPoint& loss = chart_->points()[point];
    return tool_tip(
        tuning_->name_of(drawn_[static_cast<std::size_t>(loss.graph)]),
        TipSource(tr("loss measured by the trial's run")),
        {{tr("steps"), count_text(static_cast<std::int64_t>(loss.x))},
         {tr("loss"), tr("%1, %2 of the largest")
                          .arg(fixed_text(loss.y, 4), percent_text(loss.y / chart_->largest()))},
         {tr("A click chooses the trial.")}});
  });
}

}  // namespace shardwright::gui
