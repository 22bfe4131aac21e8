// Plans as points in two figures, with a third as colour and shape.
#pragma once

#include <QPointF>
#include <QPolygonF>
#include <map>
#include <set>
#include <vector>

#include "gui/models/plan_figures.hpp"
#include "gui/models/text.hpp"
#include "gui/views/chart.hpp"

namespace shardwright::gui {

class PlanScatter : public Chart {
  Q_OBJECT

 public:
  explicit PlanScatter(QWidget* parent = nullptr);

  // The figures are indices into plan_figures(); names cannot be axes.
  void set_axes(int x, int y, int colour);
  void show(PlanSetPointer set, std::vector<int> rows);
  void mark(std::optional<std::size_t> chosen, std::optional<std::size_t> compared);

  // The plans on the front of the two axes, in the order of the line.
  const std::vector<int>& front() const { return front_; }
  QPointF pixel_of(int row) const;

 Q_SIGNALS:
  void clicked(int row);
  // The user has clicked a point with Ctrl.
  void compared(int row);
  // The user has dragged the left button around points, or with Shift over a rectangle.
  void lassoed(const std::set<int>& rows);

 protected:
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;

 private:
  struct Category {
    QString title;
    QColor colour;
    Marker shape = Marker::Disc;
  };

  void rebuild();
  void add_points();
  void add_front();
  void update_marks();
  void fit_axis(QCPAxis& axis, std::vector<double> values) const;
  void label_axis(QCPAxis& axis, int figure, const std::vector<double>& values) const;
  TipLine tip_line(int figure, std::size_t plan) const;
  std::vector<Category> categories(std::vector<int>& category_of_row) const;
  int place_of(const PlanFigure& figure, double number, const QString& name) const;
  std::vector<Category> bins(std::vector<int>& category_of_row) const;
  double value(int figure, int row) const;
  std::vector<double> values_of(int figure) const;
  QPointF pixel_at(std::size_t point) const;
  // The row nearest to the pixel, if one is near.
  std::optional<int> row_at(QPointF pixel) const;
  void draw_lasso();
  std::set<int> rows_in_lasso() const;

  PlanSetPointer set_;
  std::vector<int> rows_;
  std::vector<double> xs_, ys_;
  std::vector<int> front_;
  std::optional<std::size_t> chosen_, compared_;
  int x_ = 0, y_ = 0, colour_ = 0;
  // Numbers names in the order in which they came.
  mutable std::map<QString, int> place_of_name_;
  QPolygonF lasso_;
  bool crowd_only_ = false;
  QCPRange fitted_x_, fitted_y_;
  bool rectangle_ = false, pressed_ = false, panning_ = false;
  QPointF pan_from_;
  QCPCurve* outline_ = nullptr;
  QCPGraph* chosen_mark_ = nullptr;
  QCPGraph* compared_mark_ = nullptr;
};

}  // namespace shardwright::gui
