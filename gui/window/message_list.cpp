#include "gui/window/message_list.hpp"

#include <algorithm>

namespace shardwright::gui {

MessageList::MessageList(MessageBar* bar, QObject* parent) : QObject(parent), bar_(bar) {
  connect(bar_, &MessageBar::closed, this, &MessageList::take_back);
}

void MessageList::say(const QString& key, Tone tone, const QString& text, const Offer& offer) {
  const auto known = std::find_if(messages_.begin(), messages_.end(),
                                  [&](const Message& message) { return message.key == key; });
  if (known == messages_.end() && text.isEmpty()) return;
  if (known != messages_.end()) messages_.erase(known);
  if (!text.isEmpty()) messages_.push_back({key, tone, text, offer});
  show_all();
}

void MessageList::close_all() {
  messages_.clear();
  show_all();
}

void MessageList::show_all() {
  bar_->show_messages(messages_);
}

}  // namespace shardwright::gui
