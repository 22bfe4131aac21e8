// Paints the memory of a timeline's ranks: the bytes of tensors above those that are not allocated,
// and the line of the capacity.
#pragma once

#include <QFont>
#include <QPainter>
#include <QRectF>
#include <vector>

#include "gui/painting/axis_window.hpp"
#include "gui/style/palette.hpp"
#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

// The scale of all ranks, so that their curves can be compared.
struct MemoryScale {
  Bytes highest;
  // The memory of the row's rank, and the largest of any rank; zero if it is unknown.
  Bytes capacity, largest;

  MemoryScale(const std::vector<MemoryRow>& rows, Bytes of_a_rank);

  // True if the line of the capacity is drawn. It would flatten peaks that are far lower.
  bool shows_capacity() const;
  // The distance of a level from the bottom of a row of this height.
  double pixels_above(Bytes level, double row_height) const;
};

// Paints into `row`, a part of the plot, which shows `window`. The text of the capacity has `font`.
void paint_memory_curve(QPainter& painter, const MemoryRow& memory, const QRectF& row,
                        const AxisWindow& window, const MemoryScale& scale, const Colours& colours,
                        const QFont& font);

// The fill of memory that a rank holds without having allocated it.
QBrush not_allocated(const Colours& colours);

}  // namespace shardwright::gui
