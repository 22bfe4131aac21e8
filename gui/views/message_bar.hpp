// Errors and notices inside of the window, one below the other, each with its own offer and its own
// way to close it.
#pragma once

#include <QFrame>
#include <QScrollArea>
#include <QString>
#include <functional>
#include <vector>

class QLabel;
class QToolButton;
class QVBoxLayout;

namespace shardwright::gui {

enum class Tone : std::uint8_t { Notice, Problem };

// What can be done about a message at a click.
struct Offer {
  QString title;  // of the button; empty: nothing is offered
  std::function<void()> take;
};

struct Message {
  QString key;  // what it is about: "search", "file:/tmp/plan.json"
  Tone tone = Tone::Notice;
  QString text;
  Offer offer;
};

// One message.
class MessageRow : public QFrame {
  Q_OBJECT

 public:
  explicit MessageRow(const QString& key);

  const QString& key() const { return key_; }
  void show_message(const Message& message);
  QString text() const;
  // As high as the text at this width: a wrapped label asks for more.
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
};

// Whoever holds the bar shows it as `wanted` says. Beyond some messages it scrolls, with the newest
// in view.
class MessageBar : public QScrollArea {
  Q_OBJECT

 public:
  explicit MessageBar(QWidget* parent = nullptr);

  // Each has a key of its own. Rows of messages that are still there stay the same widgets.
  void show_messages(const std::vector<Message>& messages);
  // Of all messages, a line or more for each.
  QString text() const;
  const std::vector<MessageRow*>& rows() const { return rows_; }

 Q_SIGNALS:
  void wanted(bool visible);
  // The user has read this one.
  void closed(const QString& key);

 protected:
  void changeEvent(QEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;

 private:
  MessageRow* row_of(const QString& key);
  void drop_rows_without(const std::vector<Message>& messages);
  void fit_height();
  void restyle();

  QVBoxLayout* column_;
  std::vector<MessageRow*> rows_;
};

}  // namespace shardwright::gui
