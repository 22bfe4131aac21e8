#include "gui/views/point_chart.hpp"

#include <QLineF>
#include <algorithm>
#include <cmath>

namespace shardwright::gui {
namespace {

// How far from its middle a point answers, in pixels.
constexpr double kReach = 14.0;
// How far from it a level line does.
constexpr double kReachOfLevel = 5.0;

}  // namespace

void PointChart::set_points(std::vector<ChartPoint> points, Tip tip) {
  points_ = std::move(points);
  tip_ = std::move(tip);
  levels_.clear();
  const auto largest = std::ranges::max_element(points_, {}, &ChartPoint::y);
  largest_ = largest == points_.end() ? std::numeric_limits<double>::quiet_NaN() : largest->y;
}

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
  if (const auto point = point_at(position)) return tip_(*point);
  if (!axisRect()->rect().contains(position.toPoint())) return {};
  for (const auto& [y, tip] : levels_)
    if (std::abs(yAxis->coordToPixel(y) - position.y()) < kReachOfLevel) return tip;
  return {};
}

void PointChart::click(const QPointF& position) {
  const auto point = point_at(position);
  if (point) Q_EMIT point_clicked(static_cast<int>(*point));
}

}  // namespace shardwright::gui
