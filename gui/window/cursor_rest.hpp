// Lets the text cursor stand still once nobody types, because each blink paints.
#pragma once

#include <QObject>
#include <QTimer>
#include <chrono>

namespace shardwright::gui {

// Stops the blinking of text cursors when no key and no button was pressed for a while, and starts
// it again with the next one. At most one of these lives at a time.
class CursorRest : public QObject {
 public:
  explicit CursorRest(std::chrono::milliseconds patience = std::chrono::seconds(10));
  ~CursorRest() override;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  // The period of the desktop, in milliseconds.
  int flash_time_;
  QTimer patience_;
};

}  // namespace shardwright::gui
