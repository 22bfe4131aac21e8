#include "gui/views/forecast_charts.hpp"

#include <algorithm>
#include <cmath>

#include "gui/models/text.hpp"
#include "planner/run_wording.hpp"

namespace shardwright::gui {
namespace {

using sim::RunInterruption;
using sim::RunPart;
using sim::RunSpan;

// The parts into which the lower chart cuts the axis.
constexpr std::size_t kParts = 120;
// In pixels.
constexpr double kNearMark = 8.0, kBetweenCheckpoints = 9.0;
constexpr int kLossesHeight = 46;
// Many marks are small, because large ones would hide the range of the runs.
constexpr int kManyMarks = 25;
constexpr double kMark = 7.0, kSmallMark = 4.0;

struct PartLook {
  int series;
  Qt::BrushStyle hatch;
};
constexpr EnumArray<RunPart, PartLook> kLooks{{{{0, Qt::SolidPattern},
                                                {5, Qt::SolidPattern},
                                                {4, Qt::SolidPattern},
                                                {2, Qt::SolidPattern},
                                                {0, Qt::BDiagPattern},
                                                {1, Qt::SolidPattern},
                                                {3, Qt::SolidPattern},
                                                {6, Qt::HorPattern},
                                                {7, Qt::FDiagPattern},
                                                {5, Qt::VerPattern}}}};

double days(Seconds time) {
  return time.value() / kSecondsPerDay;
}

Seconds from_days(double days) {
  return Seconds(days * kSecondsPerDay);
}

struct TokenUnit {
  double size;
  const char* name;
};
TokenUnit token_unit(double tokens) {
  if (tokens >= 1e12) return {1e12, "T"};
  if (tokens >= 1e9) return {1e9, "B"};
  if (tokens >= 1e6) return {1e6, "M"};
  return {1.0, ""};
}

// Labels dollars.
class MoneyTicker : public ShortTicker {
 public:
  using ShortTicker::ShortTicker;

 protected:
  QString getTickLabel(double tick, const QLocale&, QChar, int) override {
    return to_qstring(planner::money_text(Dollars(tick)));
  }
};

}  // namespace

int series_of(RunPart part) {
  return kLooks[part].series;
}

Qt::BrushStyle hatch_of(RunPart part) {
  return kLooks[part].hatch;
}

TrajectoryChart::TrajectoryChart(QWidget* parent) : Chart(parent) {
  setObjectName(u"trajectory"_s);
  allow_zoom();
  axisRect()->setRangeDrag(Qt::Horizontal);
  axisRect()->setRangeZoom(Qt::Horizontal);
  legend->setVisible(true);
  put_legend_above();
  create_losses();
  connect(this, &Chart::restyled, this, &TrajectoryChart::rebuild);
  connect(xAxis, qOverload<const QCPRange&>(&QCPAxis::rangeChanged), this,
          &TrajectoryChart::follow_axis);
}

void TrajectoryChart::create_losses() {
  losses_ = new QCPAxisRect(this);
  for (QCPAxis* axis : losses_->axes()) {
    axis->setLayer(u"axes"_s);
    axis->grid()->setLayer(u"grid"_s);
  }
  plotLayout()->addElement(plotLayout()->rowCount(), 0, losses_);
  losses_->setMaximumSize(QWIDGETSIZE_MAX, kLossesHeight);
  losses_->setMinimumSize(0, kLossesHeight);
  losses_->setRangeDrag({});
  losses_->setRangeZoom({});
  auto* margins = new QCPMarginGroup(this);
  for (QCPAxisRect* rect : {axisRect(), losses_})
    rect->setMarginGroup(QCP::msLeft | QCP::msRight, margins);
  QCPAxis* share = losses_->axis(QCPAxis::atLeft);
  share->setLabel(tr("lost (%)"));
  share->setTicker(QSharedPointer<ShortTicker>::create(share));
  share->ticker()->setTickCount(3);
  QCPAxis* time = losses_->axis(QCPAxis::atBottom);
  time->setTicker(QSharedPointer<ShortTicker>::create(time));
  time->setLabel(tr("days"));
  xAxis->setTickLabels(false);
  xAxis2->setTicker(QSharedPointer<MoneyTicker>::create(xAxis2));
  xAxis2->setTickLabels(true);
}

void TrajectoryChart::show(std::shared_ptr<const RunForecast> run) {
  run_ = std::move(run);
  rebuild();
  if (run_) show_all();
}

void TrajectoryChart::show_nothing() {
  show(nullptr);
}

void TrajectoryChart::show_all() {
  xAxis->setRange(0.0, days(run_->trajectory.times.back()));
}

int TrajectoryChart::marked_checkpoints() const {
  return checkpoints_ == nullptr ? 0 : checkpoints_->dataCount();
}

double TrajectoryChart::tokens_at(double share) const {
  return run_->forecast.tokens_at(share) / unit_;
}

void TrajectoryChart::rebuild() {
  clear_all();
  checkpoints_ = nullptr;
  bars_.clear();
  for (const QCPAxis::AxisType type : {QCPAxis::atLeft, QCPAxis::atBottom})
    style_axis(losses_->axis(type));
  if (!run_) return replot(rpQueuedReplot);
  const TokenUnit unit = token_unit(run_->request.tokens);
  unit_ = unit.size;
  yAxis->setLabel(tr("tokens (%1)").arg(to_qstring(unit.name)));
  yAxis->setRange(0.0, 1.06 * tokens_at(1.0));
  xAxis2->setVisible(run_->cost_after(Seconds(1.0)) > Dollars());
  add_range();
  add_median();
  add_interruptions();
  follow_axis();
}

void TrajectoryChart::add_range() {
  const sim::RunTrajectory& course = run_->trajectory;
  QVector<double> times, low, high;
  for (std::size_t i = 0; i < course.times.size(); ++i) {
    times.append(days(course.times[i]));
    low.append(tokens_at(course.progress[i].p10));
    high.append(tokens_at(course.progress[i].p90));
  }
  QCPGraph* below = addGraph();
  below->removeFromLegend();
  below->setPen(Qt::NoPen);
  below->setData(times, low, true);
  QCPGraph* above = addGraph();
  above->setName(tr("80 % of runs"));
  above->setPen(Qt::NoPen);
  above->setBrush(colours().band(colours().series(0)));
  above->setChannelFillGraph(below);
  above->setData(times, high, true);
}

void TrajectoryChart::add_median() {
  QVector<double> times, tokens;
  for (const RunSpan& span : run_->trajectory.median.spans) {
    times << days(span.begin) << days(span.end);
    tokens << tokens_at(span.from) << tokens_at(span.to);
  }
  QCPGraph* line = addGraph();
  line->setName(tr("median run"));
  line->setPen(QPen(colours().series(0), 1.6));
  line->setData(times, tokens, true);
}

void TrajectoryChart::add_interruptions() {
  const sim::RunHistory& run = run_->trajectory.median;
  QVector<double> times, tokens;
  for (const RunInterruption& each : run.interruptions) {
    times.append(days(each.time));
    tokens.append(tokens_at(run.progress_at(each.time)));
  }
  checkpoints_ = addGraph();
  checkpoints_->setName(tr("checkpoint"));
  checkpoints_->removeFromLegend();
  checkpoints_->setLineStyle(QCPGraph::lsNone);
  checkpoints_->setScatterStyle(scatter_style(Marker::Plus, colours().text, 6.0));
  if (times.isEmpty()) return;
  QCPGraph* marks = addGraph();
  marks->setName(tr("interruption"));
  marks->setLineStyle(QCPGraph::lsNone);
  const double size = times.size() > kManyMarks ? kSmallMark : kMark;
  marks->setScatterStyle(scatter_style(Marker::TriangleDown, colours().bad, size));
  marks->setData(times, tokens, true);
}

void TrajectoryChart::follow_axis() {
  if (!run_) return;
  losses_->axis(QCPAxis::atBottom)->setRange(xAxis->range());
  const double dollars_a_day = run_->cost_after(from_days(1.0)).value();
  xAxis2->setRange(dollars_a_day * xAxis->range().lower, dollars_a_day * xAxis->range().upper);
  mark_checkpoints();
  fill_losses();
  replot(rpQueuedReplot);
}

void TrajectoryChart::mark_checkpoints() {
  const sim::RunHistory& run = run_->trajectory.median;
  const double cycle = run.checkpoint_share;
  QVector<double> times, tokens;
  const double length = days(cycle * run.running_time);
  const bool apart = length / xAxis->range().size() * axisRect()->width() > kBetweenCheckpoints;
  for (const RunSpan& span : run.spans) {
    const bool in_view =
        days(span.end) >= xAxis->range().lower && days(span.begin) <= xAxis->range().upper;
    if (!apart || !in_view || span.to <= span.from) continue;
    for (double at = (std::floor(span.from / cycle) + 1.0) * cycle; at <= span.to; at += cycle) {
      const double share = (at - span.from) / (span.to - span.from);
      times.append(days(span.begin + share * (span.end - span.begin)));
      tokens.append(tokens_at(at));
    }
  }
  checkpoints_->setData(times, tokens, true);
}

void TrajectoryChart::fill_losses() {
  for (QCPBars* bars : bars_) removePlottable(bars);
  bars_.clear();
  const QCPRange range = xAxis->range();
  const double width = range.size() / static_cast<double>(kParts);
  times_ =
      run_->trajectory.median.times_between(from_days(range.lower), from_days(range.upper), kParts);
  double most = 0.0;
  for (const sim::RunTimes& each : times_)
    most = std::max(most, 100.0 * (sim::total(each) - each[RunPart::Step]) / from_days(width));
  for (const RunShare& lost : lost_times(*run_)) {
    auto* bars = new HatchedBars(losses_->axis(QCPAxis::atBottom), losses_->axis(QCPAxis::atLeft));
    const QColor colour = colours().series(series_of(*lost.part));
    bars->setName(lost.title);
    bars->setWidth(width);
    bars->setPen(Qt::NoPen);
    bars->set_fill(colour, colours().base, hatch_of(*lost.part));
    bars->removeFromLegend();
    QVector<double> keys, values;
    for (std::size_t i = 0; i < times_.size(); ++i) {
      keys.append(range.lower + (static_cast<double>(i) + 0.5) * width);
      values.append(100.0 * times_[i][*lost.part] / from_days(width));
    }
    bars->setData(keys, values, true);
    if (!bars_.empty()) bars->moveAbove(bars_.back());
    bars_.push_back(bars);
  }
  losses_->axis(QCPAxis::atLeft)->setRange(0.0, most > 0.0 ? std::min(105.0, 1.08 * most) : 1.0);
}

const RunInterruption* TrajectoryChart::interruption_at(const QPointF& position) const {
  const sim::RunHistory& run = run_->trajectory.median;
  const RunInterruption* nearest = nullptr;
  double least = kNearMark;
  for (const RunInterruption& each : run.interruptions) {
    const double x = xAxis->coordToPixel(days(each.time)) - position.x();
    const double y = yAxis->coordToPixel(tokens_at(run.progress_at(each.time))) - position.y();
    if (std::hypot(x, y) >= least) continue;
    least = std::hypot(x, y);
    nearest = &each;
  }
  return nearest;
}

QString TrajectoryChart::tool_tip_at(const QPointF& position) const {
  if (!run_) return {};
  const double day = xAxis->pixelToCoord(position.x());
  if (losses_->rect().contains(position.toPoint())) {
    const double width = xAxis->range().size() / static_cast<double>(kParts);
    const auto part = static_cast<std::size_t>(
        std::clamp((day - xAxis->range().lower) / width, 0.0, static_cast<double>(kParts - 1)));
    if (sim::total(times_[part]) <= Seconds()) return {};
    const double begin = xAxis->range().lower + static_cast<double>(part) * width;
    return uses_text(times_[part], from_days(begin), from_days(begin + width));
  }
  if (!axisRect()->rect().contains(position.toPoint())) return {};
  if (const RunInterruption* hit = interruption_at(position)) return interruption_text(*run_, *hit);
  return progress_text(*run_, from_days(std::max(0.0, day)));
}

void TrajectoryChart::mouseDoubleClickEvent(QMouseEvent*) {
  if (run_) show_all();
}

}  // namespace shardwright::gui
