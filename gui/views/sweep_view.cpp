#include "gui/views/sweep_view.hpp"

#include <QComboBox>
#include <QDoubleSpinBox>
#include <QSettings>
#include <QSignalBlocker>
#include <QSpinBox>
#include <QVBoxLayout>
#include <algorithm>
#include <cmath>
#include <utility>

#include "gui/models/text.hpp"
#include "gui/views/empty_state.hpp"
#include "gui/views/layouts.hpp"
#include "gui/views/point_chart.hpp"
#include "gui/views/widgets.hpp"
#include "planner/wording.hpp"

namespace shardwright::gui {
namespace {

using planner::Sweep;
using planner::SweepAxis;
using planner::SweepPlan;
using planner::SweepPoint;

constexpr int kLeastChartHeight = 180;
// The part of the axis below zero, so that a cross at zero is seen whole.
constexpr double kBelowZero = 0.08;
// The ring around the scenario's own point, in pixels. The legend would cut a larger one.
constexpr double kScenarioRing = 11.5;

// The ends and points that the user may set.
SweepRange limits_of(SweepAxis axis) {
  if (planner::is_bandwidth(axis)) return {0.1, 1e6, static_cast<int>(kSweepPoints.most)};
  const Range limits = axis == SweepAxis::Gpus          ? kGpusRange
                       : axis == SweepAxis::GlobalBatch ? Range{1, kGlobalBatchRange.most}
                                                        : kSeqLenRange;
  return {static_cast<double>(limits.least), static_cast<double>(limits.most),
          static_cast<int>(kSweepPoints.most)};
}

QString range_key(SweepAxis axis) {
  return u"sweeps/range "_s + to_qstring(name_of(axis));
}

// Returns none for a value that save() has not written.
std::optional<SweepRange> read_range(SweepAxis axis, const QStringList& ends_and_points) {
  if (ends_and_points.size() != 3) return std::nullopt;
  const SweepRange range = {ends_and_points[0].toDouble(), ends_and_points[1].toDouble(),
                            ends_and_points[2].toInt()};
  const SweepRange limits = limits_of(axis);
  const bool is_possible = range.from >= limits.from && range.to <= limits.to &&
                           range.from <= range.to && range.points >= kSweepPoints.least &&
                           range.points <= kSweepPoints.most;
  return is_possible ? std::optional(range) : std::nullopt;
}

// Ticks stand at the swept values themselves: powers of two read better than powers of ten.
QSharedPointer<QCPAxisTickerText> ticker_of(const Sweep& sweep) {
  QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  for (const SweepPoint& point : sweep.points)
    ticker->addTick(axis_value(sweep.axis, point.value), axis_text(sweep.axis, point.value));
  return ticker;
}

}  // namespace

SweepView::SweepView(Selection* selection, QWidget* parent)
    : View(parent),
      selection_(selection),
      job_(
          this,
          [this](const auto& sweep) {
            take(*sweep);
            call_ready();
          },
          [this](const QString& error) {
            end();
            if (sweep_.points.empty()) empty_->show_hint(error.toHtmlEscaped());
            Q_EMIT problem(error);
            call_ready();
          }) {
  chart_ = named<PointChart>(u"sweep_chart"_s);
  chart_->allow_zoom();
  chart_->legend->setVisible(true);
  chart_->put_legend_above();
  empty_ = new EmptyState(chart_);
  reason_ = wrapped_label(u"knee_reason"_s);
  chart_->setMinimumHeight(kLeastChartHeight);
  QVBoxLayout* layout = scrolled_column(*this);
  layout->setContentsMargins(6, 6, 6, 6);
  layout->addWidget(create_controls());
  layout->addWidget(empty_, 1);
  layout->addWidget(reason_);
  connect(chart_, &PointChart::point_clicked, this, [this](int point) {
    if (!planner::is_bandwidth(sweep_.axis))
      Q_EMIT point_wanted(
          sweep_.axis, sweep_.points[static_cast<std::size_t>(point) % sweep_.points.size()].value);
  });
  connect(chart_, &Chart::restyled, this, &SweepView::rebuild);
  connect(selection_, &Selection::chosen_changed, this, &SweepView::follow_selection);
  show_nothing();
}

void SweepView::follow_selection() {
  const bool tries_again = stopped_at_ && selection_->scenario() != stopped_at_;
  // A search that goes on names the same plan again and again.
  if (swept_ && asked() == swept_ && !tries_again) return;
  outdated_ = true;
  look_again();
  call_ready();
}

void SweepView::look_again() {
  if (!outdated_) return;
  if (is_wanted()) return begin();
  job_.cancel();
  forget_points();
  end();
}

std::optional<SweepView::Asked> SweepView::asked() const {
  auto scenario = selection_->scenario();
  if (!scenario) return std::nullopt;
  if (axis() == SweepAxis::Gpus) scenario->plan = {};
  const planner::PlanRequest& request = selection_->set()->request;
  return Asked{*std::move(scenario), request.gpus,         request.global_batch, request.seq_len,
               request.precision,    request.lora,         request.constraints,  request.objective,
               request.max_memory,   request.memory_share, request.limits};
}

void SweepView::show_nothing() {
  job_.cancel();
  swept_.reset();
  forget_points();
  end();
  reason_->clear();
  empty_->show_hint(
      tr("Choose a plan in <b>Plans</b> to see how it fares on other machines and "
         "with other batches."));
}

// Drops the points, because those of an earlier plan would pass for the points of the present one.
void SweepView::forget_points() {
  sweep_ = {};
  stopped_ = false;
  stopped_at_.reset();
  rebuild();
}

QWidget* SweepView::create_controls() {
  axis_ = named<QComboBox>(u"sweep_axis"_s);
  for (const SweepAxis axis : enumerators<SweepAxis>()) axis_->addItem(title_of(axis));
  plan_ = named<QComboBox>(u"sweep_plan"_s);
  plan_->addItem(tr("the best plan of each point"));
  plan_->addItem(tr("the chosen plan"));
  plan_->setCurrentIndex(static_cast<int>(SweepPlan::Chosen));
  figure_ = named<QComboBox>(u"sweep_figure"_s);
  for (const SweepFigure figure : enumerators<SweepFigure>()) figure_->addItem(title_of(figure));
  figure_->setCurrentIndex(static_cast<int>(SweepFigure::TokensPerSecondPerGpu));
  for (QComboBox* box : {axis_, plan_, figure_}) leave_wheel_to_scrolling(*box);
  second_ = named<QComboBox>(u"sweep_second"_s);
  second_->addItem(tr("nothing else"));
  for (const SweepFigure figure : enumerators<SweepFigure>()) second_->addItem(title_of(figure));
  leave_wheel_to_scrolling(*second_);
  progress_ = new ShareBar;
  stop_ = tool_button(u"stop_sweep"_s, tr("Stop"),
                      tr("Stops the sweep and keeps its points as they are."));
  end();
  auto* controls = new QWidget;
  auto* line = new FlowLayout(controls);
  line->setContentsMargins(0, 0, 0, 0);
  // A word stays with its box if the line is broken.
  line->addWidget(figure_);
  line->addWidget(row_of({new QLabel(tr("and")), second_}));
  line->addWidget(row_of({new QLabel(tr("against")), axis_}));
  line->addWidget(row_of({new QLabel(tr("of")), plan_}));
  line->addWidget(create_range());
  line->addWidget(progress_);
  line->addWidget(stop_);
  connect(stop_, &QToolButton::clicked, this, &SweepView::stop);
  connect(axis_, &QComboBox::currentIndexChanged, this, &SweepView::sweep_anew);
  connect(plan_, &QComboBox::currentIndexChanged, this, &SweepView::sweep_anew);
  connect(figure_, &QComboBox::currentIndexChanged, this, &SweepView::rebuild);
  connect(second_, &QComboBox::currentIndexChanged, this, &SweepView::rebuild);
  update_plan_choice();
  return controls;
}

QWidget* SweepView::create_range() {
  const auto end = [&](const QString& id, const QString& tip) {
    auto* box = named<QDoubleSpinBox>(id);
    box->setKeyboardTracking(false);
    box->setToolTip(tip);
    separate_thousands(*box);
    leave_wheel_to_scrolling(*box);
    connect(box, &QDoubleSpinBox::valueChanged, this, &SweepView::take_range);
    return box;
  };
  from_ = end(u"sweep_from"_s, tr("The first point, in the unit of the axis"));
  to_ = end(u"sweep_to"_s, tr("The last point, in the unit of the axis"));
  points_ = named<QSpinBox>(u"sweep_points"_s);
  points_->setRange(static_cast<int>(kSweepPoints.least), static_cast<int>(kSweepPoints.most));
  points_->setKeyboardTracking(false);
  points_->setSuffix(tr(" points"));
  points_->setToolTip(
      tr("Each is as many times as large as the one before; several that come to the same possible "
         "value are one"));
  leave_wheel_to_scrolling(*points_);
  connect(points_, &QSpinBox::valueChanged, this, &SweepView::take_range);
  usual_range_ = tool_button(u"usual_range"_s, tr("Usual range"),
                             tr("Sweeps the points around the chosen plan again"));
  connect(usual_range_, &QToolButton::clicked, this, [this] {
    ranges_[axis()].reset();
    sweep_anew();
  });
  return row_of({new QLabel(tr("from")), from_, new QLabel(tr("to")), to_, points_, usual_range_});
}

void SweepView::show_range() {
  const auto scenario = selection_->scenario();
  usual_range_->setEnabled(ranges_[axis()].has_value());
  if (!scenario) return;
  const auto usual = planner::usual_values(axis(), selection_->set()->request, *scenario);
  if (usual.empty()) return;
  const SweepRange range = ranges_[axis()].value_or(SweepRange{axis_value(axis(), usual.front()),
                                                               axis_value(axis(), usual.back()),
                                                               static_cast<int>(usual.size())});
  const bool is_bandwidth = planner::is_bandwidth(axis());
  const SweepRange limits = limits_of(axis());
  for (const auto& [box, value] : {std::pair(from_, range.from), {to_, range.to}}) {
    const QSignalBlocker quiet(box);
    box->setDecimals(is_bandwidth ? 1 : 0);
    box->setRange(limits.from, limits.to);
    box->setValue(value);
  }
  const QSignalBlocker quiet(points_);
  points_->setValue(range.points);
}

void SweepView::take_range() {
  ranges_[axis()] = SweepRange{std::min(from_->value(), to_->value()),
                               std::max(from_->value(), to_->value()), points_->value()};
  sweep_anew();
}

// Returns the points that the user has set; none stands for the usual ones.
std::vector<double> SweepView::values() const {
  const auto& range = ranges_[axis()];
  const auto scenario = selection_->scenario();
  if (!range || !scenario) return {};
  const Plan& plan = scenario->plan;
  return swept_values(axis(), *range, scenario->cluster.node.accelerators,
                      plan.dp * plan.micro_batch);
}

void SweepView::set_plan(SweepPlan plan) {
  plan_->setCurrentIndex(static_cast<int>(plan));
}

SweepAxis SweepView::axis() const {
  return static_cast<SweepAxis>(axis_->currentIndex());
}

SweepPlan SweepView::plan() const {
  return planner::possible_plan(axis(), static_cast<SweepPlan>(plan_->currentIndex()));
}

// The box says that an axis allows only the best plans, and keeps the user's choice for other axes.
void SweepView::update_plan_choice() {
  const bool free = planner::possible_plan(axis(), SweepPlan::Chosen) == SweepPlan::Chosen;
  plan_->setEnabled(free);
  const auto wanted = static_cast<SweepPlan>(plan_->currentIndex());
  const QSignalBlocker quiet(plan_);
  if (!free) {
    if (plan_wanted_ == std::nullopt) plan_wanted_ = wanted;
    set_plan(SweepPlan::Best);
  } else if (plan_wanted_) {
    set_plan(*std::exchange(plan_wanted_, std::nullopt));
  }
}

void SweepView::sweep_anew() {
  update_plan_choice();
  outdated_ = true;
  look_again();
}

SweepFigure SweepView::figure() const {
  return static_cast<SweepFigure>(figure_->currentIndex());
}

std::optional<SweepFigure> SweepView::second_figure() const {
  if (second_->currentIndex() == 0) return std::nullopt;
  return static_cast<SweepFigure>(second_->currentIndex() - 1);
}

void SweepView::begin() {
  const auto scenario = selection_->scenario();
  if (!scenario) return show_nothing();
  outdated_ = false;
  swept_ = asked();
  show_range();
  const SweepAxis axis = this->axis();
  const SweepPlan plan = this->plan();
  forget_points();
  empty_->show_hint(tr("Sweeping …"));
  progress_->begin();
  stop_->show();
  reason_->setText(gui::tip_of(axis, plan));
  planner::SweepWatch watch;
  watch.progress = progress_->reporter();
  planner::SweepRequest request{axis, plan, values(), selection_->set()->request, *scenario};
  job_.start([this, watch, request](const std::stop_token& stop) mutable {
    request.request.stop = stop;
    watch.found = [this, stop](const Sweep& sweep) {
      // Queued: another sweep may have been asked for before it arrives.
      const auto take_current = [this, stop, sweep] {
        if (!stop.stop_requested()) take(sweep);
      };
      QMetaObject::invokeMethod(this, take_current, Qt::QueuedConnection);
    };
    return planner::run_sweep(request, watch);
  });
}

void SweepView::stop() {
  job_.cancel();
  stopped_ = true;
  end();
  if (sweep_.points.empty()) {
    stopped_at_ = selection_->scenario();
    empty_->show_hint(
        tr("Stopped before there was a point. Choose another plan or axis to sweep again."));
  } else {
    show_knee();
  }
  call_ready();
}

void SweepView::end() {
  progress_->hide();
  stop_->hide();
}

void SweepView::take(const Sweep& sweep) {
  sweep_ = sweep;
  if (sweep_.lacks_link) return show_obstacle();
  const bool any = std::any_of(sweep_.points.begin(), sweep_.points.end(),
                               [](const SweepPoint& point) { return point.candidate.has_value(); });
  if (any) {
    empty_->show_content();
  } else {
    empty_->show_hint(sweep_.is_final() ? tr("No plan runs at any of these points.")
                                        : tr("No plan found yet: the whole space is searched."));
  }
  rebuild();
  if (!sweep_.is_final()) return;
  end();
  Q_EMIT settled();
}

void SweepView::show_obstacle() {
  empty_->show_hint(to_qstring(planner::lacking_link_text(sweep_.axis, swept_->scenario.cluster))
                        .toHtmlEscaped());
  reason_->clear();
  rebuild();
  end();
  Q_EMIT settled();
}

QString SweepView::preliminary_text() const {
  const auto searched = std::count_if(sweep_.points.begin(), sweep_.points.end(),
                                      [](const SweepPoint& point) { return !point.preliminary; });
  return (stopped_ ? tr("Stopped: %1 of %2 points are the best of the whole space; hollow ones are "
                        "preliminary, the best of the usual schedules and shardings. No knee.")
                   : tr("%1 of %2 points are the best of the whole space; hollow ones are "
                        "preliminary, the best of the usual schedules and shardings, until it is "
                        "searched. The knee comes last."))
      .arg(searched)
      .arg(sweep_.points.size());
}

void SweepView::show_knee() {
  const QString knee =
      sweep_.is_final() ? to_qstring(planner::knee_text(sweep_, memory())) : preliminary_text();
  QString text = knee + u' ' + gui::tip_of(sweep_.axis, sweep_.plan);
  if (sweep_.chosen_batch) {
    text += tr(" All train %1, the throughput knee on %2; Plans may use another batch.")
                .arg(counted_text(*sweep_.chosen_batch, "sequence"),
                     counted_text(static_cast<std::int64_t>(sweep_.points.back().value), "GPU"));
  }
  if (!has_interval(figure()))
    text += tr(" This figure has no prediction interval: only step times have one.");
  reason_->setText(text);
}

void SweepView::rebuild() {
  chart_->clear_all();
  chart_->set_points({}, {});
  if (sweep_.points.empty()) return chart_->replot(QCustomPlot::rpQueuedReplot);
  chart_->xAxis->setLabel(title_of(sweep_.axis));
  chart_->yAxis->setLabel(title_of(figure()));
  chart_->xAxis->setScaleType(QCPAxis::stLogarithmic);
  chart_->xAxis->setTicker(ticker_of(sweep_));
  add_line();
  add_preliminary();
  add_missing();
  add_current();
  add_second();
  add_tips();
  chart_->xAxis->setRange(axis_value(sweep_.axis, sweep_.points.front().value) / 1.15,
                          axis_value(sweep_.axis, sweep_.points.back().value) * 1.15);
  if (knee_is_of(sweep_.axis, figure())) add_knee();
  show_knee();
  chart_->replot(QCustomPlot::rpQueuedReplot);
}

SweepValue SweepView::value_at(const SweepPoint& point, SweepFigure figure) const {
  Scenario scenario = swept_->scenario;
  scenario.plan = point.candidate->plan;
  return value_of(figure, *point.candidate, validation::class_of(scenario));
}

void SweepView::add_line() {
  QVector<double> xs, values, lows, highs;
  for (const SweepPoint& point : sweep_.points) {
    if (!point.candidate) continue;
    const SweepValue value = value_at(point);
    xs.append(axis_value(sweep_.axis, point.value));
    values.append(value.value);
    lows.append(value.low);
    highs.append(value.high);
  }
  const QColor colour = chart_->colours().series(0);
  if (lows != highs) {
    QCPGraph* low = chart_->addGraph();
    low->removeFromLegend();
    low->setPen(Qt::NoPen);
    low->setData(xs, lows, true);
    QCPGraph* high = chart_->addGraph();
    high->setName(tr("80 % of measurements lie here"));
    high->setPen(Qt::NoPen);
    high->setBrush(faded(colour, 0.20));
    high->setChannelFillGraph(low);
    high->setData(xs, highs, true);
  }
  QCPGraph* line = chart_->addGraph();
  line->setName(sweep_.plan == SweepPlan::Best ? tr("predicted, best plan of each point")
                                               : tr("predicted, the chosen plan"));
  line->setPen(QPen(colour, 2.0));
  line->setScatterStyle(scatter_style(Marker::Disc, colour, 8.0));
  line->setData(xs, values, true);
  const auto most = std::max_element(highs.begin(), highs.end());
  // Room above for the knee's label.
  const double top = most == highs.end() ? 0.0 : 1.15 * *most;
  chart_->yAxis->setRange(0.0, top > 0.0 ? top : 1.0);
}

void SweepView::add_preliminary() {
  QVector<double> xs, ys;
  for (const SweepPoint& point : sweep_.points) {
    if (!point.preliminary || !point.candidate) continue;
    xs.append(axis_value(sweep_.axis, point.value));
    ys.append(value_at(point).value);
  }
  if (xs.isEmpty()) return;
  QCPGraph* hollow = chart_->addGraph();
  hollow->setName(tr("preliminary"));
  hollow->setLineStyle(QCPGraph::lsNone);
  hollow->setScatterStyle(QCPScatterStyle(QCPScatterStyle::ssCircle,
                                          QPen(chart_->colours().series(0), 1.6),
                                          QBrush(chart_->colours().base), 9.0));
  hollow->setData(xs, ys, true);
}

// Marks points that do not fit in memory and points where no plan runs, which are known once the
// whole space was searched.
void SweepView::add_missing() {
  QVector<double> xs, ys;
  for (const SweepPoint& point : sweep_.points) {
    if (point.fits || point.preliminary) continue;
    xs.append(axis_value(sweep_.axis, point.value));
    ys.append(point.candidate ? value_at(point).value : 0.0);
  }
  if (xs.isEmpty()) return;
  QCPGraph* crosses = chart_->addGraph();
  crosses->setName(tr("does not fit"));
  crosses->setLineStyle(QCPGraph::lsNone);
  crosses->setScatterStyle(scatter_style(Marker::Cross, chart_->colours().bad, 13.0));
  crosses->setData(xs, ys, true);
  if (ys.contains(0.0)) chart_->yAxis->setRangeLower(-kBelowZero * chart_->yAxis->range().upper);
}

// Marks the value that the scenario has now: with a ring around its point or, between points, with a
// line.
void SweepView::add_current() {
  const double value =
      planner::own_value(sweep_.axis, selection_->set()->request, swept_->scenario.cluster);
  if (!(value > 0.0)) return;
  const auto point =
      std::find_if(sweep_.points.begin(), sweep_.points.end(), [&](const auto& each) {
        return each.candidate && std::abs(each.value / value - 1.0) < 1e-9;
      });
  if (point == sweep_.points.end()) {
    QCPGraph* line = chart_->addGraph();
    line->setName(tr("the scenario"));
    line->setPen(QPen(chart_->colours().accent, 1.4, Qt::DotLine));
    const double x = axis_value(sweep_.axis, value);
    return line->setData({x, x}, {0.0, chart_->yAxis->range().upper}, true);
  }
  QCPGraph* ring = chart_->addGraph();
  ring->setName(tr("the scenario"));
  ring->setLineStyle(QCPGraph::lsNone);
  ring->setScatterStyle(QCPScatterStyle(
      QCPScatterStyle::ssCircle, QPen(chart_->colours().accent, 2.0), Qt::NoBrush, kScenarioRing));
  ring->setData({axis_value(sweep_.axis, point->value)}, {value_at(*point).value}, true);
}

// Draws a second figure of the same plans, on an axis of its own on the right.
void SweepView::add_second() {
  const auto second = second_figure();
  chart_->yAxis2->setVisible(second.has_value());
  if (!second) return;
  QVector<double> xs, ys;
  for (const SweepPoint& point : sweep_.points) {
    if (!point.candidate) continue;
    xs.append(axis_value(sweep_.axis, point.value));
    ys.append(value_at(point, *second).value);
  }
  const QColor colour = chart_->colours().series(1);
  QCPGraph* line = chart_->addGraph(chart_->xAxis, chart_->yAxis2);
  line->setName(tr("%1, right").arg(title_of(*second)));
  line->setPen(QPen(colour, 2.0, Qt::DashLine));
  line->setScatterStyle(scatter_style(Marker::Square, colour, 7.0));
  line->setData(xs, ys, true);
  const auto most = std::max_element(ys.begin(), ys.end());
  const double top = most == ys.end() ? 0.0 : 1.15 * *most;
  chart_->yAxis2->setLabel(title_of(*second));
  chart_->yAxis2->setTicks(true);
  chart_->yAxis2->setTickLabels(true);
  chart_->yAxis2->setRange(0.0, top > 0.0 ? top : 1.0);
}

// The points of the second curve, if there is one, follow those of the first.
void SweepView::add_tips() {
  std::vector<ChartPoint> points;
  const auto add = [&](SweepFigure figure, bool right) {
    for (const SweepPoint& point : sweep_.points)
      points.push_back({axis_value(sweep_.axis, point.value),
                        point.candidate ? value_at(point, figure).value : 0.0, 0, right});
  };
  add(figure(), false);
  if (const auto second = second_figure()) add(*second, true);
  chart_->set_points(std::move(points), [this](std::size_t point) {
    return tip_of(sweep_.points[point % sweep_.points.size()]);
  });
}

TipLine SweepView::tip_line(SweepFigure figure, const SweepPoint& point) const {
  const SweepValue value = value_at(point, figure);
  QString text = short_text(value.value);
  if (value.low != value.high)
    text += tr(" (80 %: %1 to %2)").arg(short_text(value.low), short_text(value.high));
  return {title_of(figure), text};
}

QString SweepView::tip_of(const SweepPoint& point) const {
  std::vector<TipLine> lines;
  if (point.candidate) {
    lines.push_back(tip_line(figure(), point));
    if (const auto second = second_figure()) lines.push_back(tip_line(*second, point));
    lines.push_back({plan_text(point.candidate->plan)});
  }
  if (!point.fits && !point.preliminary)
    lines.push_back({to_qstring(planner::obstacle_text(point, memory()))});
  if (!planner::is_bandwidth(sweep_.axis)) lines.push_back({tr("A click plans for it.")});
  return tool_tip(u"%1: %2"_s.arg(title_of(sweep_.axis), axis_text(sweep_.axis, point.value)),
                  lines);
}

void SweepView::add_knee() {
  if (!sweep_.knee) return;
  const double value = sweep_.points[*sweep_.knee].value, x = axis_value(sweep_.axis, value);
  auto* line = new QCPItemStraightLine(chart_);
  line->setPen(QPen(chart_->colours().warning, 1.4, Qt::DashLine));
  line->point1->setCoords(x, 0.0);
  line->point2->setCoords(x, 1.0);
  const QString text =
      sweep_.axis == SweepAxis::SeqLen ? tr("longest that fits: %1") : tr("knee %1");
  // The label stands on the side that has the room.
  const bool left = chart_->xAxis->coordToPixel(x) > chart_->axisRect()->center().x();
  auto* label = chart_->add_label(text.arg(axis_text(sweep_.axis, value)), x, 0.98, {});
  label->position->setTypeY(QCPItemPosition::ptAxisRectRatio);
  label->position->setCoords(x, 0.02);
  label->setPositionAlignment((left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignTop);
  label->setColor(chart_->colours().warning);
}

TextTable SweepView::table() const {
  TextTable table;
  if (sweep_.points.empty()) return table;
  table.header = {
      title_of(sweep_.axis),   title_of(figure()), tr("Low"), tr("High"), tr("Fits"), tr("Plan"),
      tr("Batch (sequences)"), tr("Preliminary")};
  const auto second = second_figure();
  if (second) table.header.append(title_of(*second));
  for (const SweepPoint& point : sweep_.points) {
    QStringList row = {QString::number(axis_value(sweep_.axis, point.value), 'g', 9)};
    if (point.candidate) {
      const SweepValue value = value_at(point);
      for (const double each : {value.value, value.low, value.high})
        row.append(QString::number(each, 'g', 9));
      row +=
          {point.fits ? tr("yes") : to_qstring(planner::obstacle_text(point, memory())),
           plan_text(point.candidate->plan), QString::number(point.candidate->plan.global_batch)};
    } else {
      row += {QString(), QString(), QString(), to_qstring(planner::obstacle_text(point, memory())),
              QString(), QString()};
    }
    row.append(point.preliminary ? tr("yes") : tr("no"));
    if (second)
      row.append(point.candidate ? QString::number(value_at(point, *second).value, 'g', 9)
                                 : QString());
    table.rows.push_back(row);
  }
  return table;
}

// A figure is kept by its title, which stays when figures are added.
void SweepView::save(QSettings& settings) const {
  settings.setValue(u"sweeps/axis"_s, to_qstring(name_of(axis())));
  for (const QComboBox* box : {figure_, second_})
    settings.setValue(u"sweeps/"_s + box->objectName(), box->currentText());
  const auto plan = plan_wanted_.value_or(static_cast<SweepPlan>(plan_->currentIndex()));
  settings.setValue(u"sweeps/of_best_plans"_s, plan == SweepPlan::Best);
  for (const SweepAxis axis : enumerators<SweepAxis>()) {
    const std::optional<SweepRange>& range = ranges_[axis];
    save_list(settings, range_key(axis),
              range
                  ? QStringList{QString::number(range->from, 'g', 17),
                                QString::number(range->to, 'g', 17), QString::number(range->points)}
                  : QStringList());
  }
}

void SweepView::restore(const QSettings& settings) {
  for (const SweepAxis each : enumerators<SweepAxis>())
    ranges_[each] = read_range(each, settings.value(range_key(each)).toStringList());
  for (QComboBox* box : {figure_, second_}) {
    const int index = box->findText(settings.value(u"sweeps/"_s + box->objectName()).toString());
    if (index >= 0) box->setCurrentIndex(index);
  }
  const QString axis = settings.value(u"sweeps/axis"_s).toString();
  for (const SweepAxis each : enumerators<SweepAxis>())
    if (axis == to_qstring(name_of(each))) axis_->setCurrentIndex(static_cast<int>(each));
  if (!settings.value(u"sweeps/of_best_plans"_s).toBool()) return;
  if (plan_wanted_) plan_wanted_ = SweepPlan::Best;
  set_plan(SweepPlan::Best);
}

std::vector<ReportPart> SweepView::report() const {
  if (sweep_.points.empty()) return {};
  return {{tr("%1 against %2").arg(title_of(figure()), title_of(sweep_.axis)),
           reason_->text(),
           chart_,
           {}}};
}

}  // namespace shardwright::gui
