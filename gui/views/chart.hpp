// A QCustomPlot in the colours of the desktop, and what the charts of all views share.
#pragma once

#include <qcustomplot.h>

#include <optional>

#include "gui/style/palette.hpp"

namespace shardwright::gui {

// Follows the palette and emits `restyled` after each change, so that data can follow. A picture in
// a vector device (SVG, PDF) consists of vectors; one of another scale is drawn anew.
class Chart : public QCustomPlot {
  Q_OBJECT

 public:
  explicit Chart(QWidget* parent = nullptr);

  const Colours& colours() const { return colours_; }
  // Lets the wheel zoom around the cursor, over an axis only that axis, and dragging pan.
  void allow_zoom();
  // Moves the legend out of the axis rectangle, where it would lie on data, into lines above it.
  void put_legend_above();
  // Frees the picture of a chart that nobody sees, which takes megabytes. It is drawn anew when the
  // chart is seen again.
  void drop_unseen_picture();
  void clear_all();
  // Adds a text whose corner that `alignment` names lies at a point in plot coordinates.
  QCPItemText* add_label(const QString& text, double x, double y, Qt::Alignment alignment);
  // Adds a text at a share of the axis rectangle's width and height.
  QCPItemText* add_note(const QString& text, double x_share, double y_share,
                        Qt::Alignment alignment);

  QSize minimumSizeHint() const override { return {120, 90}; }
  QSize sizeHint() const override { return {320, 220}; }

 Q_SIGNALS:
  void restyled();
  // The user wants the chart alone in a file: "png", "svg" or "pdf".
  void export_wanted(const QString& suffix);

 protected:
  // A left click has ended at a place. The second one of a double click is none.
  virtual void click(const QPointF& /*position*/) {}
  // What the mark at a place says; empty if there is none.
  virtual QString tool_tip_at(const QPointF& /*position*/) const { return {}; }
  // Labels an axis of gigabytes, on which values go up to `most`, in the unit that suits these:
  // "Memory (MB)" for "Memory (GB)". Leaves other axes as they are.
  static void label_memory(QCPAxis& axis, const QString& label, double most);
  // Gives an axis of another rectangle the look of those of the first.
  void style_axis(QCPAxis* axis) const;

  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void changeEvent(QEvent* event) override;
  void contextMenuEvent(QContextMenuEvent* event) override;
  void wheelEvent(QWheelEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;

 private:
  void arrange_legend();
  void lay_out_anew();
  void restyle();

  Colours colours_;
  // The size for which the ticks of the axes were chosen.
  QSize laid_out_;
  // Where a click has begun, until it ends.
  std::optional<QPointF> pressed_at_;
  bool is_legend_above_ = false;
};

// Bars with a hatch on their colour, in the legend too.
class HatchedBars : public QCPBars {
  Q_OBJECT

 public:
  using QCPBars::QCPBars;

  void set_fill(const QColor& colour, const QColor& lines, Qt::BrushStyle hatch);

 protected:
  void draw(QCPPainter* painter) override;
  void drawLegendIcon(QCPPainter* painter, const QRectF& rect) const override;

 private:
  QBrush hatch_ = Qt::NoBrush;
};

// Labels ticks with SI prefixes, such as "2 M": one for all of a linear axis. An axis whose labels
// would touch each other has fewer ticks, and at last ticks without a label.
class ShortTicker : public QCPAxisTicker {
 public:
  // The axis owns the ticker.
  explicit ShortTicker(const QCPAxis* axis) : axis_(axis) {}
  // Labels each tick with so many times its number.
  void set_factor(double factor) { factor_ = factor; }

  void generate(const QCPRange& range, const QLocale& locale, QChar format, int precision,
                QVector<double>& ticks, QVector<double>* sub_ticks,
                QVector<QString>* labels) override;

 protected:
  QString getTickLabel(double tick, const QLocale& locale, QChar format, int precision) override;
  // Gives all numbers of a linear axis but 0 equally many decimals: "0.048", "0.050".
  QVector<QString> createLabelVector(const QVector<double>& ticks, const QLocale& locale,
                                     QChar format, int precision) override;

 private:
  // Returns the index of the first label that touches the one before it, or the size.
  qsizetype first_touching(const QVector<double>& ticks, const QVector<QString>& labels) const;
  // Empties labels that touch the one before them. Returns the number of those left.
  qsizetype keep_apart(const QVector<double>& ticks, QVector<QString>& labels) const;

  const QCPAxis* axis_;
  // The largest tick, whose prefix all have; 0 where each has its own.
  double largest_ = 0.0;
  double factor_ = 1.0;
};

// Labels whole numbers alone, such as those of steps.
class WholeTicker : public ShortTicker {
 public:
  using ShortTicker::ShortTicker;

 protected:
  double getTickStep(const QCPRange& range) override;
};

// Fills the shape; `size` is in pixels.
QCPScatterStyle scatter_style(Marker marker, const QColor& colour, double size = 8.0);

// Returns a colour from light to dark: five steps of the cividis scale, which is legible to
// colour-blind readers (Nuñez, Anderton, Renslow 2018, doi 10.1371/journal.pone.0199239).
QColor scale_colour(int step, int steps, bool dark);

}  // namespace shardwright::gui
