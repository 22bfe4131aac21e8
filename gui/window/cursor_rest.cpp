#include "gui/window/cursor_rest.hpp"

#include <QApplication>
#include <QEvent>

namespace shardwright::gui {

CursorRest::CursorRest(std::chrono::milliseconds patience)
    : flash_time_(QApplication::cursorFlashTime()) {
  patience_.setSingleShot(true);
  patience_.setInterval(patience);
  connect(&patience_, &QTimer::timeout, this, [] { QApplication::setCursorFlashTime(0); });
  patience_.start();
  qApp->installEventFilter(this);
}

CursorRest::~CursorRest() {
  QApplication::setCursorFlashTime(flash_time_);
}

bool CursorRest::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::KeyPress || event->type() == QEvent::MouseButtonPress) {
    if (!patience_.isActive()) QApplication::setCursorFlashTime(flash_time_);
    patience_.start();
  }
  return QObject::eventFilter(watched, event);
}

}  // namespace shardwright::gui
