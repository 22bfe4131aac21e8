#include "gui/views/step_charts.hpp"

#include <algorithm>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

constexpr double kBar = 0.68;

void prepare_bar_axes(Chart& chart, const QString& values) {
  chart.xAxis->setLabel(values);
  chart.yAxis->setRangeReversed(true);
  chart.yAxis->grid()->setVisible(false);
  chart.yAxis->setTickLength(0);
  chart.xAxis->grid()->setVisible(true);
}

QSharedPointer<QCPAxisTickerText> ticker_of(const QStringList& titles) {
  QSharedPointer<QCPAxisTickerText> ticker(new QCPAxisTickerText);
  for (int i = 0; i < titles.size(); ++i) ticker->addTick(i, titles[i]);
  return ticker;
}

// Ascending, at most about ten.
QSharedPointer<QCPAxisTickerFixed> whole_numbers(std::size_t count) {
  QSharedPointer<QCPAxisTickerFixed> ticker(new QCPAxisTickerFixed);
  double step = 1.0;
  while (static_cast<double>(count) / step > 10.0) step *= 2.0;
  ticker->setTickStep(step);
  return ticker;
}

}  // namespace

WaterfallChart::WaterfallChart(QWidget* parent) : Chart(parent) {
  setObjectName(QStringLiteral("waterfall"));
  prepare_bar_axes(*this, tr("seconds of the step"));
  connect(this, &Chart::restyled, this, &WaterfallChart::rebuild);
}

void WaterfallChart::show(const sim::StepResult& result, std::optional<sim::StepResult> beside) {
  result_ = result;
  beside_ = std::move(beside);
  rebuild();
}

void WaterfallChart::clear() {
  result_.reset();
  beside_.reset();
  rebuild();
}

std::vector<WaterfallChart::Row> WaterfallChart::rows() const {
  std::vector<Row> rows;
  Seconds at;
  for (const TimePart& part : time_parts(result_->time())) {
    rows.push_back({part.title, part.role, at, part.time, {}, {}});
    at += part.time;
  }
  if (!beside_) return rows;
  at = Seconds();
  for (const TimePart& part : time_parts(beside_->time())) {
    auto row = std::find_if(rows.begin(), rows.end(),
                            [&](const Row& each) { return each.title == part.title; });
    if (row == rows.end())
      row = rows.insert(rows.end(), {part.title, part.role, result_->step, {}, {}, {}});
    row->beside_start = at;
    row->beside_time = part.time;
    at += part.time;
  }
  return rows;
}

void WaterfallChart::add_bar(double key, double width, Seconds start, Seconds time, Role role,
                             bool is_beside) {
  if (time <= Seconds()) return;
  auto* bar = new QCPBars(yAxis, xAxis);
  bar->setWidth(width);
  bar->setBaseValue(start.value());
  const QColor colour = colours().of(role);
  bar->setPen(QPen(colour.darker(125), 1.0));
  bar->setBrush(is_beside ? QBrush(colour, Qt::Dense4Pattern) : QBrush(colour));
  bar->addData(key, time.value());
}

void WaterfallChart::rebuild() {
  clear_all();
  if (!result_) return replot(rpQueuedReplot);
  const auto parts = rows();
  QStringList titles;
  const double longest = std::max(result_->step.value(), beside_ ? beside_->step.value() : 0.0);
  const double width = beside_ ? kBar / 2.0 : kBar;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const Row& row = parts[i];
    const auto key = static_cast<double>(i);
    const double offset = beside_ ? width / 2.0 : 0.0;
    add_bar(key - offset, width, row.start, row.time, row.role, false);
    add_bar(key + offset, width, row.beside_start, row.beside_time, row.role, true);
    titles.append(row.title);
    const double end = std::max((row.start + row.time).value(),
                                beside_ ? (row.beside_start + row.beside_time).value() : 0.0);
    QString text = percent_text(row.time / result_->step);
    if (beside_) text = tr("%1 → %2").arg(text, percent_text(row.beside_time / beside_->step));
    // What stands too far right for a label has it on its left.
    const bool left = end > 0.72 * longest && !beside_;
    add_label(text, left ? row.start.value() : end, key,
              (left ? Qt::AlignRight : Qt::AlignLeft) | Qt::AlignVCenter);
  }
  yAxis->setTicker(ticker_of(titles));
  yAxis->setRange(-0.6, static_cast<double>(parts.size()) - 0.4);
  xAxis->setRange(0.0, longest * (beside_ ? 1.55 : 1.02));
  replot(rpQueuedReplot);
}

MemoryChart::MemoryChart(QWidget* parent) : Chart(parent) {
  setObjectName(QStringLiteral("memory"));
  xAxis->setLabel(tr("pipeline stage"));
  yAxis->setLabel(tr("memory of a GPU (GB)"));
  xAxis->grid()->setVisible(false);
  auto* side = new QCPLayoutGrid;
  plotLayout()->addElement(0, 1, side);
  side->addElement(0, 0, legend);
  side->addElement(1, 0, new QCPLayoutElement);
  side->setRowStretchFactor(0, 0.001);
  plotLayout()->setColumnStretchFactor(1, 0.001);
  legend->setVisible(true);
  connect(this, &Chart::restyled, this, &MemoryChart::rebuild);
}

void MemoryChart::show(const sim::StepResult& result, Bytes capacity) {
  result_ = result;
  capacity_ = capacity;
  rebuild();
}

void MemoryChart::clear() {
  result_.reset();
  rebuild();
}

void MemoryChart::add_capacity() {
  auto* line = new QCPItemStraightLine(this);
  line->setPen(QPen(colours().bad, 1.6, Qt::DashLine));
  line->point1->setCoords(0.0, capacity_.value() / 1e9);
  line->point2->setCoords(1.0, capacity_.value() / 1e9);
  auto* label = add_label(tr("capacity %1").arg(bytes_text(capacity_)), 0.0, 0.0,
                          Qt::AlignLeft | Qt::AlignBottom);
  label->position->setTypeX(QCPItemPosition::ptAxisRectRatio);
  label->position->setCoords(0.0, capacity_.value() / 1e9);
  label->setColor(colours().bad);
}

void MemoryChart::rebuild() {
  clear_all();
  if (!result_) return replot(rpQueuedReplot);
  QCPBars* below = nullptr;
  int series = 0;
  for (int i = 0; i < kMemoryCategories; ++i) {
    const auto category = static_cast<MemoryCategory>(i);
    QVector<double> stages, sizes;
    double most = 0.0;
    for (std::size_t stage = 0; stage < result_->stages.size(); ++stage) {
      stages.append(static_cast<double>(stage));
      sizes.append(result_->stages[stage].memory.of(category).value() / 1e9);
      most = std::max(most, sizes.last());
    }
    if (most <= 0.0) continue;
    auto* bars = new QCPBars(xAxis, yAxis);
    bars->setName(title_of(category));
    bars->setWidth(0.8);
    const QColor colour = colours().series(series);
    // Beyond eight categories the colours come again, hatched.
    bars->setBrush(QBrush(colour, series < 8 ? Qt::SolidPattern : Qt::BDiagPattern));
    bars->setPen(Qt::NoPen);
    bars->setData(stages, sizes, true);
    if (below != nullptr) bars->moveAbove(below);
    below = bars;
    ++series;
  }
  const double peak = result_->memory().peak.value() / 1e9;
  const auto stages = static_cast<double>(result_->stages.size());
  // Room for the capacity's label.
  yAxis->setRange(0.0, 1.15 * std::max(peak, capacity_.value() / 1e9));
  xAxis->setRange(-0.7, stages - 0.3);
  xAxis->setTicker(whole_numbers(result_->stages.size()));
  add_capacity();
  replot(rpQueuedReplot);
}

SensitivityChart::SensitivityChart(QWidget* parent) : Chart(parent) {
  setObjectName(QStringLiteral("sensitivity"));
  prepare_bar_axes(*this, tr("gain of throughput (%)"));
  connect(this, &Chart::restyled, this, &SensitivityChart::rebuild);
}

void SensitivityChart::show(std::vector<planner::Sensitivity> sensitivities) {
  sensitivities_ = std::move(sensitivities);
  waiting_ = false;
  rebuild();
}

void SensitivityChart::show_waiting() {
  sensitivities_.clear();
  waiting_ = true;
  rebuild();
}

void SensitivityChart::clear() {
  sensitivities_.clear();
  waiting_ = false;
  rebuild();
}

void SensitivityChart::rebuild() {
  clear_all();
  yAxis->setTicks(!sensitivities_.empty());
  if (waiting_) add_note(tr("simulating again …"), 0.5, 0.5, Qt::AlignCenter);
  QStringList titles;
  double most = 1.0, least = 0.0;
  for (std::size_t i = 0; i < sensitivities_.size(); ++i) {
    const planner::Sensitivity& each = sensitivities_[i];
    const double gain = 100.0 * each.gain;
    auto* bar = new QCPBars(yAxis, xAxis);
    const QColor colour = gain < 0.0 ? colours().bad : colours().series(0);
    bar->setWidth(kBar);
    bar->setBrush(colour);
    bar->setPen(QPen(colour.darker(125), 1.0));
    bar->addData(static_cast<double>(i), gain);
    titles.append(QString::fromUtf8(planner::name_of(each.resource)));
    QString text = signed_percent_text(each.gain);
    if (!each.through.empty()) text += tr(" by %1").arg(to_qstring(each.through));
    add_label(text, std::max(gain, 0.0), static_cast<double>(i), Qt::AlignLeft | Qt::AlignVCenter);
    most = std::max(most, gain);
    least = std::min(least, gain);
  }
  yAxis->setTicker(ticker_of(titles));
  yAxis->setRange(-0.6, static_cast<double>(std::max<std::size_t>(sensitivities_.size(), 1)) - 0.4);
  xAxis->setRange(1.1 * least, 1.6 * most);
  replot(rpQueuedReplot);
}

}  // namespace shardwright::gui
