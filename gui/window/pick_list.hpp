// A list over the window that is narrowed by typing, of which one entry is picked: the command
// palette, and the places to go to.
#pragma once

#include <QFrame>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace shardwright::gui {

struct Pick {
  QString text;
  QString keys;  // its shortcut, if it has one
  QString tip;
  std::function<void()> run;
};

class PickList : public QFrame {
  Q_OBJECT

 public:
  // `id` is its object name; `hint` stands in the empty line.
  PickList(const QString& id, const QString& hint, QWidget* window);

  // Over the window, with an empty line that has the keyboard's focus.
  void open(std::vector<Pick> picks);
  // While it is open: others, under what was typed.
  void replace(std::vector<Pick> picks);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void narrow(const QString& text);
  void run_current();

  std::vector<Pick> picks_;
  QLineEdit* line_;
  QListWidget* list_;
};

// True if the letters of every word of `typed` occur in this order in `text`, whatever their case.
bool matches_typed(const QString& text, const QString& typed);

}  // namespace shardwright::gui
