// A list of all commands that is narrowed by typing.
#pragma once

#include <QFrame>

class QLineEdit;
class QListWidget;

namespace shardwright::gui {

class ActionRegistry;

class CommandPalette : public QFrame {
  Q_OBJECT

 public:
  CommandPalette(const ActionRegistry* registry, QWidget* window);

  // Over the window, empty, with the keyboard's focus.
  void open();

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void narrow(const QString& text);
  void run_current();

  const ActionRegistry* registry_;
  QLineEdit* line_;
  QListWidget* list_;
};

// True if the letters of every word of `typed` occur in this order in `text`, whatever their case.
bool matches_typed(const QString& text, const QString& typed);

}  // namespace shardwright::gui
