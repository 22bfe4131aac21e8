#include "gui/views/sweep_chart.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gui/models/text.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

using planner::Sweep;
using planner::SweepAxis;
using planner::SweepPlan;
using planner::SweepPoint;

// The part of the axis below zero, so that a cross at zero is seen whole.
constexpr double kBelowZero = 0.08;
// The ring around the scenario's own point, in pixels. The legend would cut a larger one.
constexpr double kScenarioRing = 11.5;
// Where a curve is open.
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// Ticks stand at the swept values themselves: powers of two read better than powers of ten.
QSharedPointer<QCPAxisTickerText> ticker_of(const Sweep& sweep) {
  QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  for (const SweepPoint& point : sweep.points)
    ticker->addTick(axis_value(sweep.axis, point.value), axis_text(sweep.axis, point.value));
  return ticker;
}

}  // namespace

SweepChart::SweepChart(QWidget* parent) : PointChart(parent) {
  allow_zoom();
  legend->setVisible(true);
  put_legend_above();
  yAxis2->setTicker(QSharedPointer<ShortTicker>::create(yAxis2));
  connect(this, &QCustomPlot::afterLayout, this, &SweepChart::fit_titles);
}

void SweepChart::fit_titles() {
  const QFontMetrics metrics(yAxis->labelFont());
  for (const auto& [axis, title] : {std::pair(yAxis, left_title_), {yAxis2, right_title_}})
    axis->setLabel(metrics.elidedText(title, Qt::ElideRight, axisRect()->height()));
}

void SweepChart::show_nothing() {
  clear_all();
  set_points({}, {});
  replot(QCustomPlot::rpQueuedReplot);
}

void SweepChart::show_figures(SweptFigures shown) {
  shown_ = std::move(shown);
  clear_all();
  xAxis->setLabel(title_of(shown_.sweep.axis, accelerator()));
  xAxis->setScaleType(QCPAxis::stLogarithmic);
  xAxis->setTicker(ticker_of(shown_.sweep));
  add_line();
  add_preliminary();
  add_missing();
  add_current();
  add_second();
  add_tips();
  xAxis->setRange(axis_value(shown_.sweep.axis, shown_.sweep.points.front().value) / 1.15,
                  axis_value(shown_.sweep.axis, shown_.sweep.points.back().value) * 1.15);
  if (knee_is_of(shown_.sweep.axis, shown_.figure)) add_knee();
  replot(QCustomPlot::rpQueuedReplot);
}

void SweepChart::add_line() {
  QVector<double> xs, values, lows, highs;
  bool has_band = false;
  double most = 0.0;
  for (const SweepPoint& point : shown_.sweep.points) {
    // The line is open where no plan runs.
    const SweepValue value = point.candidate ? value_at(point) : SweepValue{kNone, kNone, kNone};
    if (point.candidate) {
      has_band = has_band || value.low != value.high;
      most = std::max(most, value.high);
    }
    xs.append(axis_value(shown_.sweep.axis, point.value));
    values.append(value.value);
    lows.append(value.low);
    highs.append(value.high);
  }
  const QColor colour = colours().series(0);
  if (has_band) {
    QCPGraph* low = addGraph();
    low->removeFromLegend();
    low->setPen(Qt::NoPen);
    low->setData(xs, lows, true);
    QCPGraph* high = addGraph();
    high->setName(tr("80 % of measurements lie here"));
    high->setPen(Qt::NoPen);
    high->setBrush(colours().band(colour));
    high->setChannelFillGraph(low);
    high->setData(xs, highs, true);
  }
  QCPGraph* line = addGraph();
  line->setName(shown_.sweep.plan == SweepPlan::Best ? tr("predicted, best plan of each point")
                                                     : tr("predicted, the chosen plan"));
  line->setPen(QPen(colour, 2.0));
  line->setScatterStyle(scatter_style(Marker::Disc, colour, 8.0));
  line->setData(xs, values, true);
  // Room above for the knee's label.
  yAxis->setRange(0.0, most > 0.0 ? 1.15 * most : 1.0);
  label_memory(*yAxis, title_of(shown_.figure, accelerator()), most);
  left_title_ = yAxis->label();
}

void SweepChart::add_preliminary() {
  QVector<double> xs, ys;
  for (const SweepPoint& point : shown_.sweep.points) {
    if (!point.preliminary || !point.candidate) continue;
    xs.append(axis_value(shown_.sweep.axis, point.value));
    ys.append(value_at(point).value);
  }
  if (xs.isEmpty()) return;
  QCPGraph* hollow = addGraph();
  hollow->setName(tr("preliminary"));
  hollow->setLineStyle(QCPGraph::lsNone);
  hollow->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colours().series(0), 1.6),
                                          QBrush(colours().base), 9.0));
  hollow->setData(xs, ys, true);
}

// Marks points that do not fit in memory and, at zero, points where no plan runs, which are known
// once the whole space was searched.
void SweepChart::add_missing() {
  const auto add = [this](bool runs, const QString& name, Marker marker) {
    QVector<double> xs, ys;
    for (const SweepPoint& point : shown_.sweep.points) {
      if (point.fits || point.preliminary || point.candidate.has_value() != runs) continue;
      xs.append(axis_value(shown_.sweep.axis, point.value));
      ys.append(runs ? value_at(point).value : 0.0);
    }
    if (xs.isEmpty()) return;
    QCPGraph* marks = addGraph();
    marks->setName(name);
    marks->setLineStyle(QCPGraph::lsNone);
    marks->setScatterStyle(scatter_style(marker, colours().bad, 13.0));
    marks->setData(xs, ys, true);
    if (!runs) yAxis->setRangeLower(-kBelowZero * yAxis->range().upper);
  };
  add(true, tr("does not fit"), Marker::Cross);
  const bool is_best = shown_.sweep.plan == SweepPlan::Best;
  add(false, is_best ? tr("no plan") : tr("the plan cannot run here"), Marker::Plus);
}

// Marks the value that the scenario has now: with a ring around its point or, between points, with
// a line.
void SweepChart::add_current() {
  const double value = shown_.own_value;
  if (!(value > 0.0)) return;
  const auto point =
      std::find_if(shown_.sweep.points.begin(), shown_.sweep.points.end(), [&](const auto& each) {
        return each.candidate && std::abs(each.value / value - 1.0) < 1e-9;
      });
  if (point == shown_.sweep.points.end()) {
    QCPGraph* line = addGraph();
    line->setName(tr("the scenario"));
    line->setPen(QPen(colours().accent, 1.4, Qt::DotLine));
    const double x = axis_value(shown_.sweep.axis, value);
    return line->setData({x, x}, {0.0, yAxis->range().upper}, true);
  }
  QCPGraph* ring = addGraph();
  ring->setName(tr("the scenario"));
  ring->setLineStyle(QCPGraph::lsNone);
  ring->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle, QPen(colours().accent, 2.0),
                                        Qt::NoBrush, kScenarioRing));
  ring->setData({axis_value(shown_.sweep.axis, point->value)}, {value_at(*point).value}, true);
}

// Draws a second figure of the same plans, on an axis of its own on the right.
void SweepChart::add_second() {
  const auto second = shown_.second;
  yAxis2->setVisible(second.has_value());
  if (!second) return;
  QVector<double> xs, ys;
  double most = 0.0;
  for (const SweepPoint& point : shown_.sweep.points) {
    xs.append(axis_value(shown_.sweep.axis, point.value));
    ys.append(point.candidate ? value_at(point, *second).value : kNone);
    if (point.candidate) most = std::max(most, ys.back());
  }
  const QColor colour = colours().series(1);
  QCPGraph* line = addGraph(xAxis, yAxis2);
  line->setName(tr("%1, right").arg(title_of(*second, accelerator())));
  line->setPen(QPen(colour, 2.0, Qt::DashLine));
  line->setScatterStyle(scatter_style(Marker::Square, colour, 7.0));
  line->setData(xs, ys, true);
  label_memory(*yAxis2, title_of(*second, accelerator()), most);
  right_title_ = yAxis2->label();
  yAxis2->setTicks(true);
  yAxis2->setTickLabels(true);
  yAxis2->setRange(0.0, most > 0.0 ? 1.15 * most : 1.0);
}

// The points of the second curve, if there is one, follow those of the first.
void SweepChart::add_tips() {
  std::vector<ChartPoint> points;
  const auto add = [&](SweepFigure figure, bool right) {
    for (const SweepPoint& point : shown_.sweep.points)
      points.push_back({axis_value(shown_.sweep.axis, point.value),
                        point.candidate ? value_at(point, figure).value : 0.0, 0, right});
  };
  add(shown_.figure, false);
  if (const auto second = shown_.second) add(*second, true);
  set_points(std::move(points), [this](std::size_t point) {
    return tip_of(shown_.sweep.points[point % shown_.sweep.points.size()]);
  });
}

TipLine SweepChart::tip_line(SweepFigure figure, const SweepPoint& point) const {
  const SweepValue value = value_at(point, figure);
  // The ends of an interval across a thousand have the same unit.
  const auto text_of = [](double number) {
    return number >= 999.5 && number < 1e4 ? fixed_text(number, 0) : short_text(number);
  };
  QString text = text_of(value.value);
  if (value.low != value.high)
    text += tr(" (80 %: %1 to %2)").arg(text_of(value.low), text_of(value.high));
  // Memory has the unit that suits it, as on the axis.
  if (figure == SweepFigure::Memory) text = bytes_text(gigabytes(value.value));
  double most = 0.0;
  for (const SweepPoint& each : shown_.sweep.points)
    if (each.candidate) most = std::max(most, value_at(each, figure).value);
  if (most > 0.0) text += tr(", %1 of the largest").arg(percent_text(value.value / most));
  return {title_of(figure, accelerator()).remove(u" (GB)"_s), text};
}

QString SweepChart::tip_of(const SweepPoint& point) const {
  std::vector<TipLine> lines;
  if (point.candidate) {
    lines.push_back(tip_line(shown_.figure, point));
    if (const auto second = shown_.second) lines.push_back(tip_line(*second, point));
    lines.push_back({plan_text(point.candidate->plan)});
  }
  if (!point.fits && !point.preliminary)
    lines.push_back({to_qstring(planner::obstacle_text(point, shown_.scenario.cluster))});
  if (!planner::is_bandwidth(shown_.sweep.axis)) lines.push_back({tr("A click plans for it.")});
  return tool_tip(u"%1: %2"_s.arg(title_of(shown_.sweep.axis, accelerator()),
                                  axis_text(shown_.sweep.axis, point.value)),
                  simulated_on(shown_.scenario.cluster), lines);
}

void SweepChart::add_knee() {
  if (!shown_.sweep.knee) return;
  const double value = shown_.sweep.points[*shown_.sweep.knee].value,
               x = axis_value(shown_.sweep.axis, value);
  auto* line = new QCPItemStraightLine(this);
  line->setPen(QPen(colours().warning, 1.4, Qt::DashLine));
  line->point1->setCoords(x, 0.0);
  line->point2->setCoords(x, 1.0);
  const QString text =
      shown_.sweep.axis == SweepAxis::SeqLen ? tr("longest that fits: %1") : tr("knee %1");
  // The label stands on the side that has the room.
  const bool left = xAxis->coordToPixel(x) > axisRect()->center().x();
  auto* label = add_label(text.arg(axis_text(shown_.sweep.axis, value)), x, 0.98, {});
  label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
  label->position->setCoords(x, 0.02);
  label->setPositionAlignment((left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop);
  label->setColor(colours().warning);
}

}  // namespace shardwright::gui
