// The page of keyboard shortcuts, over the window.
#pragma once

#include <QFrame>

class QLabel;
class QScrollArea;

namespace shardwright::gui {

class ActionRegistry;

class ShortcutOverlay : public QFrame {
  Q_OBJECT

 public:
  ShortcutOverlay(const ActionRegistry* registry, QWidget* window);

  void toggle();

 protected:
  bool event(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  QString text() const;

  const ActionRegistry* registry_;
  QLabel* label_;
  // Scrolls if the window is smaller than the page.
  QScrollArea* scroll_;
  bool is_scrolling_ = false;
};

}  // namespace shardwright::gui
