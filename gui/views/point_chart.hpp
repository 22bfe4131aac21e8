// A chart of points each of which answers to the mouse.
#pragma once

#include <optional>
#include <vector>

#include "gui/views/chart.hpp"

namespace shardwright::gui {

struct ChartPoint {
  // In the coordinates of the axes.
  double x = 0.0, y = 0.0;
  // What the point says where the mouse rests on it; rich text.
  QString tip;
};

class PointChart : public Chart {
  Q_OBJECT

 public:
  using Chart::Chart;

  // The points that lie on what is drawn.
  void set_points(std::vector<ChartPoint> points) { points_ = std::move(points); }
  const std::vector<ChartPoint>& points() const { return points_; }
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
};

}  // namespace shardwright::gui
