#include "gui/views/point_chart.hpp"

#include <QLineF>

namespace shardwright::gui {
namespace {

// How far from its middle a point answers, in pixels.
constexpr double kReach = 14.0;

}  // namespace

QPointF PointChart::pixel_of(std::size_t point) const {
  const ChartPoint& at = points_[point];
  return {xAxis->coordToPixel(at.x), (at.right ? yAxis2 : yAxis)->coordToPixel(at.y)};
}

std::optional<std::size_t> PointChart::point_at(const QPointF& position) const {
  std::optional<std::size_t> nearest;
  double least = kReach;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const double away = QLineF(pixel_of(i), position).length();
    if (away >= least) continue;
    least = away;
    nearest = i;
  }
  return nearest;
}

QString PointChart::tool_tip_at(const QPointF& position) const {
  const auto point = point_at(position);
  return point ? tip_(*point) : QString();
}

void PointChart::click(const QPointF& position) {
  const auto point = point_at(position);
  if (point) Q_EMIT point_clicked(static_cast<int>(*point));
}

}  // namespace shardwright::gui
