// The frame of a painted widget that has the keyboard.
#pragma once

#include <QPainter>
#include <QRect>

#include "gui/style/palette.hpp"

namespace shardwright::gui {

inline void paint_focus(QPainter& painter, const QRect& area, const Colours& colours) {
  painter.setBrush(Qt::NoBrush);
  painter.setPen(QPen(colours.accent, 1.0));
  painter.drawRect(area.adjusted(0, 0, -1, -1));
}

}  // namespace shardwright::gui
