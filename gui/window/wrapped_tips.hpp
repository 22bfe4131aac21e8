// Breaks the lines of long tool tips, which Qt shows in one line unless they are rich text.
#pragma once

#include <QObject>

namespace shardwright::gui {

// Works for all widgets of the program as long as it lives, also for the cells and headers of
// tables and for menus.
class WrappedTips : public QObject {
 public:
  explicit WrappedTips(QObject* parent);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  bool passing_on_ = false;
};

}  // namespace shardwright::gui
