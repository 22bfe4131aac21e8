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

// An action that a message offers.
struct Offer {
  // The text of the button; empty if nothing is offered.
  QString title;
  std::function<void()> take;
};

struct Message {
  // The subject: "search", "file:/tmp/plan.json".
  QString key;
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
};

// The owner shows or hides the bar as `wanted` says. A long list scrolls, with the newest message in
// view.
class MessageBar : public QScrollArea {
  Q_OBJECT

 public:
  explicit MessageBar(QWidget* parent = nullptr);

  // The keys differ. A message that stays keeps its row.
  void show_messages(const std::vector<Message>& messages);
  // The text of all messages, a line or more for each.
  QString text() const;
  const std::vector<MessageRow*>& rows() const { return rows_; }

 Q_SIGNALS:
  void wanted(bool visible);
  // The user has closed this message.
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
