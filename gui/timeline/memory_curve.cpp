#include "gui/timeline/memory_curve.hpp"

#include <QPolygonF>
#include <algorithm>

#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {
namespace {

// Pixels above the curves for the text of the capacity.
constexpr double kAbove = 17.0;
// Peaks below this share of the capacity would be flat if its line were drawn.
constexpr double kLeastOfCapacity = 0.05;
constexpr int kSeries = 5;

QColor base_colour(const Colours& colours) {
  return mixed_colour(colours.series(kSeries), colours.text, 0.45);
}

// Follows the highest level in each column of pixels.
QPolygonF area_below(const MemoryRow& memory, double MemoryPoint::*level_of, const QRectF& row,
                     const AxisWindow& window, const MemoryScale& scale) {
  const int width = static_cast<int>(row.width());
  const double left = row.left(), bottom = row.bottom() - 1.0;
  QPolygonF area;
  area.append(QPointF(left, bottom));
  auto next =
      std::lower_bound(memory.points.begin(), memory.points.end(), window.from,
                       [](const MemoryPoint& point, double time) { return point.time < time; });
  double level = memory.at(window.from).*level_of;
  for (int column = 0; column < width; ++column) {
    const double end = window.value_at(column + 1.0, width);
    double most = level;
    for (; next != memory.points.end() && next->time < end; ++next) {
      level = (*next).*level_of;
      most = std::max(most, level);
    }
    const double top = bottom - scale.pixels_above(Bytes(most), row.height());
    if (area.size() > 2 && area.back().y() == top) {
      area.back().setX(left + column + 1.0);
      continue;
    }
    area.append(QPointF(left + column, top));
    area.append(QPointF(left + column + 1.0, top));
  }
  area.append(QPointF(left + width, bottom));
  return area;
}

// Writes the text above the line, where there is no curve.
void paint_capacity(QPainter& painter, const QRectF& row, const MemoryScale& scale,
                    const Colours& colours) {
  if (scale.capacity.value() <= 0.0) return;
  const bool shown = scale.shows_capacity();
  const double level =
      row.bottom() - 1.0 - scale.pixels_above(shown ? scale.capacity : scale.highest, row.height());
  painter.setPen(QPen(colours.bad, 1.0, Qt::DashLine));
  if (shown) painter.drawLine(QPointF(row.left(), level), QPointF(row.right(), level));
  painter.setPen(shown ? colours.bad : colours.muted_text);
  painter.drawText(
      QRectF(row.left(), level - 16.0, row.width() - 6.0, 15.0), Qt::AlignRight | Qt::AlignBottom,
      u"capacity %1%2"_s.arg(bytes_text(scale.capacity), shown ? QString() : u", far above"_s));
}

}  // namespace

MemoryScale::MemoryScale(const std::vector<MemoryRow>& rows, Bytes of_a_rank)
    : capacity(of_a_rank), largest(of_a_rank) {
  for (const MemoryRow& row : rows) highest = std::max(highest, Bytes(row.peak.bytes));
}

bool MemoryScale::shows_capacity() const {
  return highest > kLeastOfCapacity * largest;
}

double MemoryScale::pixels_above(Bytes level, double row_height) const {
  const Bytes most = shows_capacity() ? std::max(highest, largest) : highest;
  return most.value() > 0.0 ? (row_height - kAbove - 2.0) * (level / most) : 0.0;
}

void paint_memory_curve(QPainter& painter, const MemoryRow& memory, const QRectF& row,
                        const AxisWindow& window, const MemoryScale& scale, const Colours& colours,
                        const QFont& font) {
  const QColor fill = colours.series(kSeries);
  // A cosmetic pen: wider ones are stroked as paths, which takes longer than all spans together.
  painter.setPen(QPen(fill, 0.0));
  painter.setBrush(faded(fill, 0.30));
  painter.drawPolygon(area_below(memory, &MemoryPoint::bytes, row, window, scale));
  if (memory.has_base()) {
    painter.setPen(QPen(base_colour(colours), 0.0));
    painter.setBrush(not_allocated(colours));
    painter.drawPolygon(area_below(memory, &MemoryPoint::base, row, window, scale));
  }
  painter.setFont(font);
  paint_capacity(painter, row, scale, colours);
}

QBrush not_allocated(const Colours& colours) {
  return {base_colour(colours), Qt::BDiagPattern};
}

}  // namespace shardwright::gui
