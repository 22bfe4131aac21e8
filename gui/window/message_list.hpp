// What the window has to say, until whoever said it takes it back.
#pragma once

#include <QObject>
#include <QString>
#include <vector>

#include "gui/views/message_bar.hpp"

class QAction;

namespace shardwright::gui {

// One message of each source, in the order in which they came, all in one bar. Closing the bar
// forgets them all.
class MessageList : public QObject {
  Q_OBJECT

 public:
  MessageList(MessageBar* bar, QObject* parent);

  // Replaces what `source` said before; an empty text takes it back. `offer`: what the bar offers
  // to do about it.
  void say(const void* source, Tone tone, const QString& text, QAction* offer = nullptr);
  // Also where something else has shown or hidden the bar.
  void show_all();

 private:
  struct Message {
    const void* source;
    Tone tone;
    QString text;
    QAction* offer;
  };

  MessageBar* bar_;
  std::vector<Message> messages_;
};

}  // namespace shardwright::gui
