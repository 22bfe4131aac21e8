#include "gui/views/wheel_to_scrolling.hpp"

#include <QEvent>
#include <QWidget>

namespace shardwright::gui {
namespace {

class WheelFilter : public QObject {
 public:
  explicit WheelFilter(QWidget* field) : QObject(field), field_(field) {}

  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::Wheel || field_->hasFocus())
      return QObject::eventFilter(watched, event);
    event->ignore();  // goes on to what the field stands in
    return true;
  }

 private:
  QWidget* field_;
};

}  // namespace

void leave_wheel_to_scrolling(QWidget& field) {
  field.setFocusPolicy(Qt::StrongFocus);
  field.installEventFilter(new WheelFilter(&field));
}

}  // namespace shardwright::gui
