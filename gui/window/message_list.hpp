// The messages of the window. Each stays until its sender takes it back or the user closes it.
#pragma once

#include <QObject>
#include <QString>
#include <vector>

#include "gui/views/message_bar.hpp"

namespace shardwright::gui {

// Holds one message of each key, in the order of arrival.
class MessageList : public QObject {
  Q_OBJECT

 public:
  MessageList(MessageBar* bar, QObject* parent);

  // Replaces what was said under this key before; an empty text takes it back.
  void say(const QString& key, Tone tone, const QString& text, const Offer& offer = {});
  void take_back(const QString& key) { say(key, Tone::Notice, {}); }
  void close_all();
  // Shows the bar as the messages need it, if something else has shown or hidden it.
  void show_all();

 private:
  MessageBar* bar_;
  std::vector<Message> messages_;
};

}  // namespace shardwright::gui
