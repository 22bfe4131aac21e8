// The errors and notices of the window, one below the other. Each stays until its sender takes it
// back or the user closes it, unless it reports a success: that fades.
#pragma once

#include <QFrame>
#include <QScrollArea>
#include <QTimer>
#include <chrono>
#include <functional>
#include <vector>

class QLabel;
class QPropertyAnimation;
class QStatusBar;
class QToolButton;
class QVBoxLayout;

namespace shardwright::gui {

enum class Tone : std::uint8_t {
  Notice,
  Problem,
  // A notice that goes by itself after a few seconds, because nothing is left to do.
  Success,
};

struct Offer {
  // The text of the button; empty if nothing is offered.
  QString title;
  std::function<void()> take;
};

class MessageRow : public QFrame {
  Q_OBJECT

 public:
  explicit MessageRow(const QString& key);

  const QString& key() const { return key_; }
  // A success stays for this long, and while the mouse rests on it; then it closes itself.
  void show_message(Tone tone, const QString& text, const Offer& offer,
                    std::chrono::milliseconds success_stays);
  QString text() const;
  // Makes the row as high as its text at this width, since a wrapped label asks for more.
  int fit_height(int width);
  void restyle(const QPalette& around);

 Q_SIGNALS:
  void closed(const QString& key);

 private:
  QString key_;
  QLabel *sign_, *label_;
  QToolButton *offer_, *close_;
  std::function<void()> take_;
  Tone tone_ = Tone::Notice;
  QTimer pause_;
  QPropertyAnimation* fading_;
};

// Holds one message of each key ("search", "file:/tmp/plan.json") in the order of arrival, in a
// strip of the status bar whose height does not depend on them, so that messages move no view: what
// is longer scrolls, with the newest message in view, or is unfolded over the views by a button.
class MessageBar : public QScrollArea {
  Q_OBJECT

 public:
  explicit MessageBar(QStatusBar* status_bar);

  // Replaces the message of this key; an empty text takes it back.
  void say(const QString& key, Tone tone, const QString& text, const Offer& offer = {});
  void take_back(const QString& key) { say(key, Tone::Notice, {}); }
  void close_all();
  // Sets how long successes stay that are reported from now on.
  void let_successes_stay(std::chrono::milliseconds time) { success_stays_ = time; }
  QString text() const;
  const std::vector<MessageRow*>& rows() const { return rows_; }

 protected:
  void changeEvent(QEvent* event) override;
  // Follows the strip in the status bar.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  void show_all();
  MessageRow* add_row(const QString& key);
  void drop(MessageRow* row);
  void take_place();
  void restyle();

  // The part of the status bar that is kept free for messages.
  QWidget* strip_;
  QVBoxLayout* column_;
  QToolButton* unfold_;
  std::vector<MessageRow*> rows_;
  std::chrono::milliseconds success_stays_{6000};
};

}  // namespace shardwright::gui
