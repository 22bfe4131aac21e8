#pragma once

#include <gtest/gtest.h>

#include <QApplication>
#include <QFile>
#include <QHelpEvent>
#include <QImage>
#include <QTemporaryDir>
#include <QTest>
#include <QToolTip>
#include <QWheelEvent>
#include <QWidget>
#include <set>

#include "gui/views/picture_export.hpp"
#include "tests/gui/says.hpp"

namespace shardwright::gui::fixtures {

inline void turn_wheel(QWidget& widget, const QPointF& at, int notches,
                       Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
  QWheelEvent event(at, widget.mapToGlobal(at), QPoint(), QPoint(0, 120 * notches), Qt::NoButton,
                    modifiers, Qt::NoScrollPhase, false);
  // Qt passes only events of the platform on to parents, and sendEvent() would mark this as
  // another.
  QSpontaneKeyEvent::setSpontaneous(&event);
  qApp->notify(&widget, &event);
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

// Returns the tool tip that a view shows where the mouse rests.
inline QString tool_tip_at(QWidget& widget, const QPoint& at) {
  QHelpEvent help(QEvent::ToolTip, at, widget.mapToGlobal(at));
  QApplication::sendEvent(&widget, &help);
  QString text = QToolTip::text();
  QToolTip::hideText();
  return text;
}

inline QByteArray svg_of(QWidget& widget) {
  const QTemporaryDir folder;
  const QString file = folder.filePath(u"view.svg"_s);
  export_picture(widget, file);
  QFile svg(file);
  EXPECT_TRUE(svg.open(QIODevice::ReadOnly));
  return svg.readAll();
}

inline QWidget& shown(QWidget& widget, const QSize& size) {
  widget.resize(size);
  widget.show();
  QApplication::processEvents();
  return widget;
}

}  // namespace shardwright::gui::fixtures
