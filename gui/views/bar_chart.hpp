// Bars of named values below each other.
#pragma once

#include <QString>
#include <optional>
#include <vector>

#include "gui/views/chart.hpp"

namespace shardwright::gui {

// Prepares a chart for horizontal bars with names, the first of them above.
void prepare_bar_axes(Chart& chart, const QString& values);

QSharedPointer<QCPAxisTickerText> ticker_of(const QStringList& titles);

// The row of a chart of `rows` bars at a place, over its whole width with its name.
std::optional<std::size_t> row_of_chart(const Chart& chart, std::size_t rows,
                                        const QPointF& position);

inline constexpr double kBarWidth = 0.68;

struct Bar {
  QString title;
  double value = 0.0;
  // Behind the bar, and where the mouse rests on it.
  QString label, tip;
  // Values below zero have the colour of what is bad instead.
  int series = 0;
  Qt::BrushStyle hatch = Qt::SolidPattern;
};

// The axis reaches so far that each label lies inside of it.
class BarChart : public Chart {
  Q_OBJECT

 public:
  // `values` names the values and their unit.
  explicit BarChart(const QString& values, QWidget* parent = nullptr);

  void show_bars(std::vector<Bar> bars);
  // Shows a note in place of the bars.
  void show_note(const QString& note);
  const std::vector<Bar>& bars() const { return bars_; }

  // The row at a place, over its whole width with its name.
  std::optional<std::size_t> row_at(const QPointF& position) const;

 protected:
  QString tool_tip_at(const QPointF& position) const override;

 private:
  void rebuild();
  void fit_titles();
  void fit_labels();

  std::vector<Bar> bars_;
  // Of the bars, in their order.
  std::vector<QCPItemText*> labels_;
  QString note_;
  // As the chart has room for them.
  QStringList shown_titles_;
  QCPRange wide_{0.0, 1.0};
};

}  // namespace shardwright::gui
