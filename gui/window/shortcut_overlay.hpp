// The page of keyboard shortcuts, over the window.
#pragma once

#include <QFrame>

class QLabel;

namespace shardwright::gui {

class ActionRegistry;

class ShortcutOverlay : public QFrame {
  Q_OBJECT

 public:
  ShortcutOverlay(const ActionRegistry* registry, QWidget* window);

  void toggle();

 protected:
  void keyPressEvent(QKeyEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;

 private:
  QString text() const;

  const ActionRegistry* registry_;
  QLabel* label_;
};

}  // namespace shardwright::gui
