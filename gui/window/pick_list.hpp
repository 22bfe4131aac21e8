// A list over the window that is narrowed by typing, best matches first, of which one entry is
// picked: the command palette, and the places to go to.
#pragma once

#include <QFrame>
#include <cstdint>
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

// How a text holds what was typed, the better the earlier.
enum class TypedMatch : std::uint8_t {
  WordStart,  // every word of it at the beginning of a word
  Whole,      // … somewhere
  Letters,    // the letters of every word in their order
  None,
};

// Whatever the case; of several words the weakest match.
TypedMatch match_typed(const QString& text, const QString& typed);

}  // namespace shardwright::gui
