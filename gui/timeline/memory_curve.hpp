// Paints the memory of a timeline's ranks: what tensors hold above what lies outside of them, and
// the capacity's line.
#pragma once

#include <QFont>
#include <QPainter>
#include <QRectF>
#include <vector>

#include "gui/painting/time_window.hpp"
#include "gui/style/palette.hpp"
#include "gui/timeline/timeline_tracks.hpp"

namespace shardwright::gui {

// One for all ranks, so that their curves can be compared.
struct MemoryScale {
  Bytes highest;   // peak of any rank
  Bytes capacity;  // of a rank; zero: not told

  MemoryScale(const std::vector<MemoryRow>& rows, Bytes of_a_rank);

  // Whether the capacity's line is drawn: above peaks that are far lower it would flatten them.
  bool shows_capacity() const;
  // How far above the bottom of a row of this height a level lies.
  double pixels_above(Bytes level, double row_height) const;
};

// `row`: its part of the plot, which shows `window`. `font`: of the capacity's text.
void paint_memory_curve(QPainter& painter, const MemoryRow& memory, const QRectF& row,
                        const TimeWindow& window, const MemoryScale& scale, const Colours& colours,
                        const QFont& font);

// How the area is filled of what a rank holds beside what is allocated.
QBrush not_allocated(const Colours& colours);

}  // namespace shardwright::gui
