#include "gui/views/bar_chart.hpp"

#include <algorithm>
#include <cmath>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

// A single bar is no thicker than one of these.
constexpr std::size_t kFewestRows = 4;
// Titles take no more of the width of a chart, unless they leave this many heights of their
// letters.
constexpr double kMostOfTitles = 0.6;
constexpr int kLeastForBars = 7;
// Nor do labels of the width behind the titles.
constexpr double kMostOfLabels = 0.75;

}  // namespace

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

BarChart::BarChart(const QString& values, QWidget* parent) : Chart(parent) {
  prepare_bar_axes(*this, values);
  connect(this, &Chart::restyled, this, &BarChart::rebuild);
  connect(this, &QCustomPlot::beforeReplot, this, &BarChart::fit_titles);
  connect(this, &QCustomPlot::afterLayout, this, &BarChart::fit_labels);
}

void BarChart::show_bars(std::vector<Bar> bars) {
  bars_ = std::move(bars);
  note_.clear();
  rebuild();
}

void BarChart::show_note(const QString& note) {
  bars_.clear();
  note_ = note;
  rebuild();
}

void BarChart::rebuild() {
  clear_all();
  labels_.clear();
  yAxis->setTicks(!bars_.empty());
  if (!note_.isEmpty()) add_note(note_, 0.5, 0.5, Qt::AlignCenter);
  double most = bars_.empty() ? 1.0 : 0.0, least = 0.0;
  for (std::size_t i = 0; i < bars_.size(); ++i) {
    const Bar& each = bars_[i];
    auto* bar = new HatchedBars(yAxis, xAxis);
    const QColor colour = each.value < 0.0 ? colours().bad : colours().series(each.series);
    bar->setWidth(kBarWidth);
    bar->set_fill(colour, colours().base, each.hatch);
    bar->setPen(QPen(colour.darker(125), 1.0));
    bar->addData(static_cast<double>(i), each.value);
    labels_.push_back(add_label(each.label, std::max(each.value, 0.0), static_cast<double>(i),
                                Qt::AlignLeft | Qt::AlignVCenter));
    most = std::max(most, each.value);
    least = std::min(least, each.value);
  }
  shown_titles_.clear();
  yAxis->setRange(-0.6, static_cast<double>(std::max(bars_.size(), kFewestRows)) - 0.4);
  wide_ = QCPRange(1.1 * least, most > 0.0 ? 1.6 * most : 1.0);
  xAxis->setRange(wide_);
  replot(rpQueuedReplot);
}

// Shortens long titles in a narrow chart, where they would leave no room for the bars. The tool tip
// has the whole title.
void BarChart::fit_titles() {
  const QFontMetrics metrics(yAxis->tickLabelFont());
  const int most = std::max(static_cast<int>(kMostOfTitles * width()),
                            width() - kLeastForBars * metrics.height());
  QStringList titles;
  for (const Bar& bar : bars_) titles.append(metrics.elidedText(bar.title, Qt::ElideRight, most));
  if (titles == shown_titles_) return;
  shown_titles_ = titles;
  yAxis->setTicker(ticker_of(titles));
}

// Extends the axis of a narrow chart until each label lies inside of it.
void BarChart::fit_labels() {
  QCPRange range = wide_;
  for (std::size_t i = 0; i < labels_.size(); ++i) {
    QCPItemText* label = labels_[i];
    const QFontMetrics metrics(label->font());
    // What is cut stands in the tip of the row.
    label->setText(metrics.elidedText(bars_[i].label, Qt::ElideRight,
                                      static_cast<int>(kMostOfLabels * axisRect()->width())));
    const int width = metrics.horizontalAdvance(label->text()) + 12;
    const double free = std::max(1.0 - static_cast<double>(width) / axisRect()->width(), 0.1);
    range.upper =
        std::max(range.upper, range.lower + (label->position->key() - range.lower) / free);
  }
  if (range == xAxis->range()) return;
  xAxis->setRange(range);
  replot(rpQueuedReplot);
}

std::optional<std::size_t> row_of_chart(const Chart& chart, std::size_t rows,
                                        const QPointF& position) {
  const QRect area = chart.axisRect()->rect();
  const double row = std::round(chart.yAxis->pixelToCoord(position.y()));
  if (row < 0.0 || row >= static_cast<double>(rows) || position.y() > area.bottom() ||
      position.y() < area.top())
    return std::nullopt;
  return static_cast<std::size_t>(row);
}

std::optional<std::size_t> BarChart::row_at(const QPointF& position) const {
  return row_of_chart(*this, bars_.size(), position);
}

QString BarChart::tool_tip_at(const QPointF& position) const {
  const auto row = row_at(position);
  return row ? bars_[*row].tip : QString();
}

}  // namespace shardwright::gui
