#include "gui/views/step_charts.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

// The looks of the categories in the order of the enumeration, which is that of the stack.
struct CategoryLook {
  int series;
  Qt::BrushStyle hatch;
};
constexpr std::array<CategoryLook, kMemoryCategories> kCategoryLooks = {{
    {0, Qt::SolidPattern},
    {1, Qt::BDiagPattern},
    {2, Qt::Dense6Pattern},
    {3, Qt::HorPattern},
    {4, Qt::FDiagPattern},
    {5, Qt::VerPattern},
    {6, Qt::CrossPattern},
    {1, Qt::Dense5Pattern},
    {6, Qt::DiagCrossPattern},
    {7, Qt::Dense7Pattern},
    {5, Qt::Dense4Pattern},
}};

// The unit in which times up to `longest` read well.
struct TimeUnit {
  double scale;
  const char* name;
};
TimeUnit unit_for(double longest) {
  if (longest >= 1.0) return {1.0, "seconds"};
  if (longest >= 1e-3) return {1e3, "milliseconds"};
  return {1e6, "microseconds"};
}

}  // namespace

WaterfallChart::WaterfallChart(QWidget* parent) : Chart(parent) {
  setObjectName(u"waterfall"_s);
  prepare_bar_axes(*this, tr("seconds of the step"));
  connect(this, &Chart::restyled, this, &WaterfallChart::rebuild);
  connect(this, &QCustomPlot::afterLayout, this, &WaterfallChart::place_shares);
}

void WaterfallChart::show(const sim::StepResult& result, TipSource source,
                          std::optional<sim::StepResult> beside) {
  source_ = std::move(source);
  result_ = result;
  beside_ = std::move(beside);
  rebuild();
}

std::vector<WaterfallChart::Row> WaterfallChart::rows() const {
  std::vector<Row> rows;
  Seconds at;
  for (const TimePart& part : time_parts(result_->time())) {
    rows.push_back({part.title, part.role, part.meaning, at, part.time, {}, {}});
    at += part.time;
  }
  if (!beside_) return rows;
  at = Seconds();
  auto behind = rows.begin();
  for (const TimePart& part : time_parts(beside_->time())) {
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& each) { return each.title == part.title; });
    // A part that only the other step has stands behind the part before it.
    if (row == rows.end())
      row = rows.insert(behind, {part.title, part.role, part.meaning, {}, {}, {}, {}});
    row->beside_start = at;
    row->beside_time = part.time;
    at += part.time;
    behind = row + 1;
  }
  return rows;
}

void WaterfallChart::add_bar(double key, double width, double start, double time, Role role,
                             bool is_beside) {
  if (time <= 0.0) return;
  auto* bar = new HatchedBars(yAxis, xAxis);
  bar->setWidth(width);
  bar->setBaseValue(start);
  const QColor colour = colours().of(role);
  bar->setPen(QPen(colour.darker(125), 1.0));
  bar->set_fill(is_beside ? faded(colour, 0.35) : colour, colours().text_on(role), hatch(role));
  bar->addData(key, time);
}

void WaterfallChart::rebuild() {
  clear_all();
  shares_.clear();
  if (!result_) return replot(rpQueuedReplot);
  const auto parts = rows();
  QStringList titles;
  const double step = std::max(result_->step.value(), beside_ ? beside_->step.value() : 0.0);
  const TimeUnit unit = unit_for(step);
  const double longest = step * unit.scale;
  const double width = beside_ ? kBarWidth / 2.0 : kBarWidth;
  xAxis->setLabel(tr("%1 of the step").arg(to_qstring(unit.name)));
  xAxis->ticker()->setTickCount(4);
  xAxis->setRange(0.0, longest * (beside_ ? 1.6 : 1.05));
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Row& row = parts[i];
    const auto key = static_cast<double>(i);
    const double offset = beside_ ? width / 2.0 : 0.0;
    const double start = row.start.value() * unit.scale, time = row.time.value() * unit.scale;
    const double beside_start = row.beside_start.value() * unit.scale;
    const double beside_time = row.beside_time.value() * unit.scale;
    add_bar(key - offset, width, start, time, row.role, false);
    titles.append(row.title);
    if (beside_) {
      add_bar(key + offset, width, beside_start, beside_time, row.role, true);
      const double first = time > 0.0 ? start : beside_start;
      const double second = beside_time > 0.0 ? beside_start : start;
      const QString times = tr("%1 | %2").arg(time_text(row.time), time_text(row.beside_time));
      shares_.push_back({add_label(times, first, key, {}), std::min(first, second),
                         std::max(first + time, second + beside_time), row.role});
    } else {
      shares_.push_back({add_label(share_text(row.time / result_->step), start, key, {}), start,
                         start + time, row.role});
    }
  }
  yAxis->setTicker(ticker_of(titles));
  yAxis->setRange(-0.6, static_cast<double>(parts.size()) - 0.4);
  replot(rpQueuedReplot);
}

// Puts each label to the right of its bar, or without room there to its left or inside of it.
void WaterfallChart::place_shares() {
  const QRect area = axisRect()->rect();
  for (const Share& share : shares_) {
    const double width = QFontMetrics(share.label->font()).horizontalAdvance(share.label->text()) +
                         share.label->padding().left() + share.label->padding().right();
    const bool is_right = xAxis->coordToPixel(share.end) + width <= area.right();
    const bool is_left = !is_right && xAxis->coordToPixel(share.start) - width >= area.left();
    const bool is_inside = !is_right && !is_left;
    share.label->position->setCoords(is_left ? share.start : share.end,
                                     share.label->position->value());
    share.label->setPositionAlignment((is_right ? Qt::AlignLeft : Qt::AlignRight) |
                                      Qt::AlignVCenter);
    share.label->setColor(is_inside ? colours().text_on(share.role) : colours().text);
    share.label->setBrush(is_inside ? QBrush(colours().of(share.role)) : QBrush(Qt::NoBrush));
  }
}

QString WaterfallChart::tool_tip_at(const QPointF& position) const {
  if (!result_) return {};
  const std::vector<Row> all = rows();
  const auto place = row_of_chart(*this, all.size(), position);
  if (!place) return {};
  const Row& row = all[*place];
  const auto amount = [](Seconds time, const sim::StepResult& result) {
    return tr("%1, %2 of the step").arg(time_text(time), share_text(time / result.step));
  };
  std::vector<TipLine> lines = {{beside_ ? tr("above") : tr("time"), amount(row.time, *result_)}};
  if (beside_) lines.push_back({tr("below"), amount(row.beside_time, *beside_)});
  lines.push_back({row.meaning});
  return tool_tip(row.title, source_, lines);
}

MemoryChart::MemoryChart(QWidget* parent) : Chart(parent) {
  setObjectName(u"memory"_s);
  xAxis->setTicker(QSharedPointer<WholeTicker>::create(xAxis));
  xAxis->setLabel(tr("pipeline stage"));
  xAxis->grid()->setVisible(false);
  auto* side = new QCPLayoutGrid;
  plotLayout()->addElement(0, 1, side);
  side->addElement(0, 0, legend);
  side->addElement(1, 0, new QCPLayoutElement);
  side->setRowStretchFactor(0, 0.001);
  plotLayout()->setColumnStretchFactor(1, 0.001);
  legend->setBorderPen(Qt::NoPen);
  legend->setVisible(true);
  connect(this, &Chart::restyled, this, &MemoryChart::rebuild);
}

// Keeps the legend whole, and room for the bars beside it.
QSize MemoryChart::minimumSizeHint() const {
  constexpr int kLeastAxes = 130;
  return {kLeastAxes + legend->minimumOuterSizeHint().width(), Chart::minimumSizeHint().height()};
}

// Lines of text above it take their height from the chart, as far as its legend leaves some.
QSize MemoryChart::sizeHint() const {
  constexpr int kLeastHeight = 150;
  return {Chart::sizeHint().width(),
          std::max(kLeastHeight, legend->minimumOuterSizeHint().height())};
}

void MemoryChart::show(const sim::StepResult& result, TipSource source,
                       std::vector<Bytes> capacities, const QString& accelerator) {
  source_ = std::move(source);
  accelerator_ = accelerator;
  result_ = result;
  capacities_ = std::move(capacities);
  rebuild();
}

// Names the line in the legend, because the axes of a narrow chart have no room for a text. It has
// a step where the stages of another pool begin.
void MemoryChart::add_capacity() {
  QVector<double> ends, levels;
  QStringList texts;
  for (std::size_t stage = 0; stage < capacities_.size(); ++stage) {
    const double place = static_cast<double>(stage), level = capacities_[stage] / gigabytes(1.0);
    const bool is_first = stage == 0, is_last = stage + 1 == capacities_.size();
    ends.append({is_first ? xAxis->range().lower : place - 0.5,
                 is_last ? xAxis->range().upper : place + 0.5});
    levels.append({level, level});
    const QString text = bytes_text(capacities_[stage]);
    if (texts.isEmpty() || texts.back() != text) texts.append(text);
  }
  QCPGraph* line = addGraph();
  const auto least = *std::min_element(capacities_.begin(), capacities_.end()) / gigabytes(1.0);
  const QString name = tr("capacity %1").arg(texts.join(tr(", then ")));
  line->setName(least > yAxis->range().upper ? tr("%1, above").arg(name) : name);
  line->setPen(QPen(colours().bad, 1.6, Qt::DashLine));
  line->setData(ends, levels, true);
}

void MemoryChart::rebuild() {
  clear_all();
  categories_.clear();
  if (!result_) return replot(rpQueuedReplot);
  QCPBars* below = nullptr;
  for (const MemoryCategory category : enumerators<MemoryCategory>()) {
    QVector<double> stages, sizes;
    double most = 0.0;
    for (std::size_t stage = 0; stage < result_->stages.size(); ++stage) {
      stages.append(static_cast<double>(stage));
      sizes.append(result_->stages[stage].memory.of(category) / gigabytes(1.0));
      most = std::max(most, sizes.last());
    }
    if (most <= 0.0) continue;
    auto* bars = new HatchedBars(xAxis, yAxis);
    bars->setName(tr("%1 %2").arg(title_of(category), bytes_text(gigabytes(most))));
    categories_.push_back(category);
    bars->setWidth(0.8);
    const CategoryLook look = kCategoryLooks[index_of(category)];
    const QColor colour = colours().series(look.series);
    bars->set_fill(colour, colours().base, look.hatch);
    bars->setPen(Qt::NoPen);
    bars->setData(stages, sizes, true);
    if (below != nullptr) bars->moveAbove(below);
    below = bars;
  }
  const double peak = result_->memory().peak / gigabytes(1.0);
  const auto stages = static_cast<double>(result_->stages.size());
  const Bytes most = *std::max_element(capacities_.begin(), capacities_.end());
  const double capacity = most / gigabytes(1.0);
  // Beside a capacity that is many times as large, the parts of a bar could not be told apart.
  constexpr double kMostTimes = 16.0;
  const bool is_far = peak > 0.0 && capacity > kMostTimes * peak;
  const double shown = is_far ? peak : std::max(peak, capacity);
  yAxis->setRange(0.0, 1.08 * shown);
  label_memory(*yAxis, tr("memory of each %1 (GB)").arg(accelerator_), shown);
  xAxis->setRange(-0.7, stages - 0.3);
  add_capacity();
  updateGeometry();
  replot(rpQueuedReplot);
}

QString MemoryChart::tip_of_part(const QString& title, Bytes part, std::size_t stage) const {
  const Bytes capacity = capacities_[stage];
  return tool_tip(
      title, source_,
      {{tr("memory"),
        tr("%1, %2 of the capacity").arg(bytes_text(part), percent_text(part / capacity))},
       {tr("stage %1 at its peak").arg(stage),
        tr("%1 of %2").arg(bytes_text(result_->stages[stage].memory.peak), bytes_text(capacity))}});
}

// Speaks of the stage that has the most of it, as the legend does.
QString MemoryChart::tip_of_category(MemoryCategory category) const {
  std::size_t stage = 0;
  const auto part = [&](std::size_t each) { return result_->stages[each].memory.of(category); };
  for (std::size_t each = 1; each < result_->stages.size(); ++each)
    if (part(each) > part(stage)) stage = each;
  return tip_of_part(title_of(category), part(stage), stage);
}

QString MemoryChart::tip_of_capacity(std::size_t stage) const {
  const Bytes capacity = capacities_[stage], peak = result_->stages[stage].memory.peak;
  return tool_tip(
      tr("capacity"), source_,
      {{tr("memory of each %1").arg(accelerator_), bytes_text(capacity)},
       {tr("stage %1 at its peak").arg(stage),
        tr("%1, %2 of the capacity").arg(bytes_text(peak), percent_text(peak / capacity))}});
}

// The entry of the capacity follows those of the categories.
QString MemoryChart::tip_of_legend(const QPointF& position) const {
  for (int i = 0; i < legend->itemCount(); ++i) {
    if (!legend->item(i)->outerRect().contains(position.toPoint())) continue;
    const auto entry = static_cast<std::size_t>(i);
    return entry < categories_.size() ? tip_of_category(categories_[entry])
                                      : tip_of_capacity(static_cast<std::size_t>(result_->fullest));
  }
  return {};
}

// The part of a stage's bar at this height, and above the bar what is left of the capacity.
QString MemoryChart::tip_of_bar(std::size_t stage, double y) const {
  const sim::MemoryPeak& memory = result_->stages[stage].memory;
  const Bytes capacity = capacities_[stage], height = gigabytes(yAxis->pixelToCoord(y));
  Bytes below;
  for (const MemoryCategory category : enumerators<MemoryCategory>()) {
    const Bytes part = memory.of(category);
    below += part;
    if (part > Bytes() && height <= below) return tip_of_part(title_of(category), part, stage);
  }
  return memory.peak <= capacity ? tip_of_part(tr("free"), capacity - memory.peak, stage)
                                 : tip_of_part(tr("too much"), memory.peak - capacity, stage);
}

QString MemoryChart::tool_tip_at(const QPointF& position) const {
  if (!result_) return {};
  if (!axisRect()->rect().contains(position.toPoint())) return tip_of_legend(position);
  const double place = std::round(xAxis->pixelToCoord(position.x()));
  if (place < 0.0 || place >= static_cast<double>(result_->stages.size())) return {};
  const auto stage = static_cast<std::size_t>(place);
  // In pixels, the half of the line that answers.
  constexpr double kNear = 3.0;
  const double line = yAxis->coordToPixel(capacities_[stage] / gigabytes(1.0));
  return std::abs(position.y() - line) <= kNear ? tip_of_capacity(stage)
                                                : tip_of_bar(stage, position.y());
}

SensitivityChart::SensitivityChart(QWidget* parent)
    : BarChart(tr("gain of throughput (%)"), parent) {
  setObjectName(u"sensitivity"_s);
}

void SensitivityChart::show(std::vector<planner::Sensitivity> sensitivities,
                            const TipSource& source) {
  sensitivities_ = std::move(sensitivities);
  std::vector<Bar> bars;
  for (const planner::Sensitivity& each : sensitivities_) {
    const QString title = to_qstring(planner::name_of(each.resource));
    const QString gain = signed_percent_text(each.gain);
    const QString through =
        each.through.empty() ? QString() : tr(" by %1").arg(to_qstring(each.through));
    bars.push_back({title, 100.0 * each.gain, gain,
                    tool_tip(tr("10 % more of %1").arg(title), source,
                             {{tr("throughput"), gain + through},
                              {tr("time of a step"), time_text(each.step)},
                              {tr("A click plans with it.")}})});
  }
  show_bars(std::move(bars));
}

void SensitivityChart::click(const QPointF& position) {
  const auto row = row_at(position);
  if (row && *row < sensitivities_.size()) Q_EMIT more_wanted(sensitivities_[*row].resource);
}

void SensitivityChart::show_waiting() {
  sensitivities_.clear();
  show_note(tr("simulating again …"));
}

}  // namespace shardwright::gui
