#include "gui/window/message_list.hpp"

#include <QStringList>
#include <algorithm>

namespace shardwright::gui {

MessageList::MessageList(MessageBar* bar, QObject* parent) : QObject(parent), bar_(bar) {
  connect(bar_, &MessageBar::wanted, this, [this](bool visible) {
    if (!visible) messages_.clear();
  });
}

void MessageList::say(const void* source, Tone tone, const QString& text, QAction* offer) {
  const auto known = std::find_if(messages_.begin(), messages_.end(),
                                  [&](const Message& message) { return message.source == source; });
  if (known == messages_.end() && text.isEmpty()) return;
  if (known != messages_.end()) messages_.erase(known);
  if (!text.isEmpty()) messages_.push_back({source, tone, text, offer});
  show_all();
}

void MessageList::show_all() {
  QStringList texts;
  Tone tone = Tone::Notice;
  QAction* offer = nullptr;
  for (const Message& message : messages_) {
    texts.append(message.text);
    if (message.tone == Tone::Problem) tone = Tone::Problem;
    if (message.offer != nullptr) offer = message.offer;
  }
  bar_->show_text(tone, texts.join(QLatin1Char('\n')), offer);
}

}  // namespace shardwright::gui
