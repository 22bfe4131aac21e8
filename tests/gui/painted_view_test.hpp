// The tests of painted views turn wheels, drag and take pictures with these helpers.
#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QImage>
#include <QTest>
#include <QWheelEvent>
#include <QWidget>
#include <set>

#include "tests/gui/says.hpp"

namespace shardwright::gui::fixtures {

inline void turn_wheel(QWidget& widget, const QPointF& at, int notches,
                       Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
  QWheelEvent event(at, widget.mapToGlobal(at), QPoint(), QPoint(0, 120 * notches), Qt::NoButton,
                    modifiers, Qt::NoScrollPhase, false);
  QApplication::sendEvent(&widget, &event);
}

inline void move_mouse(QWidget& widget, const QPointF& at, Qt::MouseButtons buttons) {
  QMouseEvent event(QEvent::MouseMove, at, widget.mapToGlobal(at), Qt::NoButton, buttons,
                    Qt::NoModifier);
  QApplication::sendEvent(&widget, &event);
}

inline void drag(QWidget& widget, const QPoint& from, const QPoint& to, Qt::MouseButton button,
                 Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
  QTest::mousePress(&widget, button, modifiers, from);
  move_mouse(widget, 0.5 * QPointF(from + to), button);
  move_mouse(widget, to, button);
  QTest::mouseRelease(&widget, button, modifiers, to);
}

// Returns the number of colours in a picture of the widget; an empty one has one.
inline std::size_t colours_in(QWidget& widget) {
  const QImage image = widget.grab().toImage();
  std::set<QRgb> colours;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) colours.insert(image.pixel(x, y));
  }
  return colours.size();
}

inline QWidget& shown(QWidget& widget, const QSize& size) {
  widget.resize(size);
  widget.show();
  QApplication::processEvents();
  return widget;
}

}  // namespace shardwright::gui::fixtures
