// A chart of points each of which answers to the mouse.
#pragma once

#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "gui/views/chart.hpp"

namespace shardwright::gui {

struct ChartPoint {
  // In the coordinates of the axes.
  double x = 0.0, y = 0.0;
  // The graph that it lies on.
  int graph = 0;
  // True if `y` is one of the axis on the right.
  bool right = false;
};

class PointChart : public Chart {
  Q_OBJECT

 public:
  using Chart::Chart;

  // What a point says where the mouse rests on it; rich text. It is asked for then, because a long
  // run has hundreds of thousands of points.
  using Tip = std::function<QString(std::size_t point)>;
  // The points that lie on what is drawn.
  void set_points(std::vector<ChartPoint> points, Tip tip);
  // Adds a level line, which answers along its length where no point does. set_points() drops it.
  void add_level(double y, QString tip) { levels_.emplace_back(y, std::move(tip)); }
  const std::vector<ChartPoint>& points() const { return points_; }
  // The largest `y` of the points; NaN without points.
  double largest() const { return largest_; }
  QPointF pixel_of(std::size_t point) const;

 Q_SIGNALS:
  // The user has clicked on a point, which is an index into points().
  void point_clicked(int point);

 protected:
  QString tool_tip_at(const QPointF& position) const override;
  void click(const QPointF& position) override;

 private:
  // The nearest point, if one is near.
  std::optional<std::size_t> point_at(const QPointF& position) const;

  std::vector<ChartPoint> points_;
  std::vector<std::pair<double, QString>> levels_;
  double largest_ = std::numeric_limits<double>::quiet_NaN();
  Tip tip_;
};

}  // namespace shardwright::gui
