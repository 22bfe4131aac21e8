// A list over the window that is narrowed by typing, best matches first, of which one entry is
// picked: the command palette, and the places to go to.
#pragma once

#include <QFrame>
#include <QPointer>
#include <cstdint>
#include <functional>
#include <vector>

class QLineEdit;
class QListWidget;

namespace shardwright::gui {

struct Pick {
  QString text;
  QString keys;
  QString tip;
  std::function<void()> run;
};

class PickList : public QFrame {
  Q_OBJECT

 public:
  // `id` is its object name; `hint` stands in the empty line.
  PickList(const QString& id, const QString& hint, QWidget* window);

  // Opens the list over the window with an empty line that has the focus. As the list closes, the
  // focus goes back to where it was, whose view the chosen command is for.
  void open(std::vector<Pick> picks);
  // Replaces the entries of an open list and keeps the typed text.
  void replace(std::vector<Pick> picks);

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void narrow(const QString& text);
  void run_current();
  void close_list();

  std::vector<Pick> picks_;
  QPointer<QWidget> focus_before_;
  QLineEdit* line_;
  QListWidget* list_;
};

// The ways in which a text matches the typed words, the best first.
enum class TypedMatch : std::uint8_t {
  // Every typed word stands at the beginning of a word.
  WordStart,
  // Every typed word stands somewhere.
  Whole,
  // The letters of every typed word stand in their order.
  Letters,
  None,
};

// Ignores case. Several words match as the weakest of them does.
TypedMatch match_typed(const QString& text, const QString& typed);

}  // namespace shardwright::gui
