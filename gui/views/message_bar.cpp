#include "gui/views/message_bar.hpp"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QResizeEvent>
#include <QScrollBar>
#include <QStringList>
#include <QTimer>
#include <QToolButton>
#include <QVBoxLayout>
#include <algorithm>
#include <utility>

#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {
namespace {

constexpr int kMostHeight = 150;  // pixels: a small window keeps room for its views
constexpr int kGap = 1;           // between two messages

}  // namespace

MessageRow::MessageRow(const QString& key)
    : key_(key),
      sign_(new QLabel),
      label_(new QLabel),
      offer_(new QToolButton),
      close_(new QToolButton) {
  setObjectName(u"message_row"_s);
  label_->setObjectName(u"message"_s);
  label_->setWordWrap(true);
  label_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label_->setTextFormat(Qt::PlainText);
  offer_->setObjectName(u"offer"_s);
  close_->setObjectName(u"close_message"_s);
  close_->setText(u"✕"_s);
  close_->setAutoRaise(true);
  close_->setToolTip(tr("Close"));
  close_->setAccessibleName(tr("Close this message"));
  connect(close_, &QToolButton::clicked, this, [this] { Q_EMIT closed(key_); });
  connect(offer_, &QToolButton::clicked, this, [this] {
    const std::function<void()> take = take_;  // a copy: it may take the message back
    take();
  });
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(10, 4, 6, 4);
  layout->addWidget(sign_);
  layout->addWidget(label_, 1);
  layout->addWidget(offer_);
  layout->addWidget(close_);
  setAutoFillBackground(true);
}

void MessageRow::show_message(const Message& message) {
  tone_ = message.tone;
  take_ = message.offer.take;
  label_->setText(message.text);
  offer_->setText(message.offer.title);
  offer_->setVisible(!message.offer.title.isEmpty());
}

QString MessageRow::text() const {
  return label_->text();
}

int MessageRow::fit_height(int width) {
  const QMargins around = layout()->contentsMargins();
  const int offered = offer_->isHidden() ? 0 : offer_->sizeHint().width() + layout()->spacing();
  const int beside = sign_->sizeHint().width() + close_->sizeHint().width() + offered +
                     2 * layout()->spacing() + around.left() + around.right();
  const int text = label_->heightForWidth(std::max(1, width - beside));
  setFixedHeight(std::max(text, close_->sizeHint().height()) + around.top() + around.bottom());
  return height();
}

void MessageRow::restyle(const QPalette& around) {
  const Colours colours = colours_for(around);
  const QColor colour = tone_ == Tone::Problem ? colours.bad : colours.accent;
  sign_->setText(tone_ == Tone::Problem ? u"⚠"_s : u"ℹ"_s);
  QPalette own = around;
  QColor ground = colour;
  ground.setAlphaF(colours.dark ? 0.28F : 0.14F);
  own.setColor(QPalette::Window, ground);
  setPalette(own);
}

MessageBar::MessageBar(QWidget* parent) : QScrollArea(parent) {
  setObjectName(u"message_bar"_s);
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::NoFocus);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setWidgetResizable(true);
  auto* column = new QWidget;
  column_ = new QVBoxLayout(column);
  column_->setContentsMargins(0, 0, 0, 0);
  column_->setSpacing(kGap);
  setWidget(column);
}

MessageRow* MessageBar::row_of(const QString& key) {
  for (MessageRow* row : rows_) {
    if (row->key() == key) return row;
  }
  auto* row = new MessageRow(key);
  connect(row, &MessageRow::closed, this, &MessageBar::closed);
  return row;
}

// Rows are deleted later: one of them may be the one that was clicked.
void MessageBar::drop_rows_without(const std::vector<Message>& messages) {
  for (MessageRow* row : rows_) {
    const bool kept = std::any_of(messages.begin(), messages.end(), [&](const Message& message) {
      return message.key == row->key();
    });
    if (kept) continue;
    row->hide();
    row->setParent(nullptr);
    row->deleteLater();
  }
}

void MessageBar::show_messages(const std::vector<Message>& messages) {
  drop_rows_without(messages);
  std::vector<MessageRow*> rows;
  for (const Message& message : messages) {
    MessageRow* row = row_of(message.key);
    row->show_message(message);
    column_->removeWidget(row);
    column_->addWidget(row);
    row->show();
    rows.push_back(row);
  }
  rows_ = std::move(rows);
  restyle();
  fit_height();
  // The rows must have their places first.
  QTimer::singleShot(0, this,
                     [this] { verticalScrollBar()->setValue(verticalScrollBar()->maximum()); });
  Q_EMIT wanted(!rows_.empty());
}

QString MessageBar::text() const {
  QStringList texts;
  for (const MessageRow* row : rows_) texts.append(row->text());
  return texts.join(u'\n');
}

void MessageBar::fit_height() {
  const auto fitted = [this](int width) {
    int sum = 0;
    for (MessageRow* row : rows_) sum += row->fit_height(width) + kGap;
    return sum;
  };
  int wanted = fitted(width());
  if (wanted > kMostHeight) wanted = fitted(width() - verticalScrollBar()->sizeHint().width());
  setFixedHeight(std::min(wanted, kMostHeight));
}

void MessageBar::resizeEvent(QResizeEvent* event) {
  QScrollArea::resizeEvent(event);
  if (event->oldSize().width() != event->size().width()) fit_height();
}

void MessageBar::changeEvent(QEvent* event) {
  QScrollArea::changeEvent(event);
  if (event->type() == QEvent::ApplicationPaletteChange) restyle();
}

void MessageBar::restyle() {
  const QPalette around = parentWidget() != nullptr ? parentWidget()->palette() : QPalette();
  for (MessageRow* row : rows_) row->restyle(around);
}

}  // namespace shardwright::gui
