#include "gui/painting/legend_lines.hpp"

namespace shardwright::gui {
namespace {

constexpr double kLegendMargin = 10.0, kLegendPadding = 4.0, kLegendLine = 18.0;

}  // namespace

std::vector<QPointF> places_in_legend(const std::vector<double>& entries, double width) {
  std::vector<QPointF> places;
  double x = kLegendMargin, middle = kLegendPadding + 0.5 * kLegendLine;
  for (const double entry : entries) {
    if (x > kLegendMargin && x + entry - kLegendGap > width) {
      x = kLegendMargin;
      middle += kLegendLine;
    }
    places.emplace_back(x, middle);
    x += entry;
  }
  return places;
}

double legend_height(const std::vector<double>& entries, double width) {
  const std::vector<QPointF> places = places_in_legend(entries, width);
  const double first = kLegendPadding + 0.5 * kLegendLine;
  return (places.empty() ? first : places.back().y()) + first;
}

}  // namespace shardwright::gui
