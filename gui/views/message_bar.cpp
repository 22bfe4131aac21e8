#include "gui/views/message_bar.hpp"

#include <QEvent>
#include <QHBoxLayout>
#include <QResizeEvent>
#include <QScrollBar>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

// The height of the bar in pixels that leaves room for the views of a small window.
constexpr int kMostHeight = 150;
constexpr int kGap = 1;

}  // namespace

MessageRow::MessageRow(const QString& key)
    : key_(key),
      sign_(new QLabel),
      label_(wrapped_label(u"message"_s)),
      offer_(tool_button(u"offer"_s, {})),
      close_(tool_button(u"close_message"_s, u"✕"_s, tr("Close"))) {
  setObjectName(u"message_row"_s);
  label_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label_->setTextFormat(Qt::PlainText);
  close_->setAutoRaise(true);
  close_->setAccessibleName(tr("Close this message"));
  connect(close_, &QToolButton::clicked, this, [this] { Q_EMIT closed(key_); });
  connect(offer_, &QToolButton::clicked, this, [this] {
    const std::function<void()> take = take_;  // The copy outlives a message that it takes back.
    take();
  });
  closing_.setSingleShot(true);
  // A message that the mouse rests on is being read.
  connect(&closing_, &QTimer::timeout, this,
          [this] { underMouse() ? closing_.start() : Q_EMIT closed(key_); });
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(10, 4, 6, 4);
  layout->addWidget(sign_);
  layout->addWidget(label_, 1);
  layout->addWidget(offer_);
  layout->addWidget(close_);
  setAutoFillBackground(true);
}

void MessageRow::show_message(Tone tone, const QString& text, const Offer& offer) {
  closing_.stop();
  tone_ = tone;
  take_ = offer.take;
  label_->setText(text);
  offer_->setText(offer.title);
  offer_->setVisible(!offer.title.isEmpty());
}

void MessageRow::close_after(std::chrono::milliseconds pause) {
  closing_.start(pause);
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
  const QColor colour = tone_ == Tone::Problem   ? colours.bad
                        : tone_ == Tone::Success ? colours.good
                                                 : colours.accent;
  sign_->setText(tone_ == Tone::Problem ? u"⚠"_s : tone_ == Tone::Success ? u"✓"_s : u"ℹ"_s);
  QPalette own = around;
  own.setColor(QPalette::Window, faded(colour, colours.dark ? 0.28 : 0.14));
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

MessageRow* MessageBar::add_row(const QString& key) {
  auto* row = new MessageRow(key);
  connect(row, &MessageRow::closed, this, &MessageBar::take_back);
  return row;
}

// Deletes the row later, because it may be the one that was clicked.
void MessageBar::drop(MessageRow* row) {
  std::erase(rows_, row);
  row->hide();
  row->setParent(nullptr);
  row->deleteLater();
}

void MessageBar::say(const QString& key, Tone tone, const QString& text, const Offer& offer) {
  const auto known =
      std::find_if(rows_.begin(), rows_.end(), [&](MessageRow* row) { return row->key() == key; });
  MessageRow* row = known == rows_.end() ? nullptr : *known;
  if (text.isEmpty()) {
    if (row == nullptr) return;
    drop(row);
    return show_all();
  }
  if (row == nullptr) row = add_row(key);
  std::erase(rows_, row);
  rows_.push_back(row);
  row->show_message(tone, text, offer);
  column_->removeWidget(row);
  column_->addWidget(row);
  row->show();
  show_all();
  if (tone == Tone::Success) row->close_after(success_pause_);
}

void MessageBar::close_all() {
  while (!rows_.empty()) drop(rows_.back());
  show_all();
}

void MessageBar::show_all() {
  restyle();
  fit_height();
  // Waits until the rows have their places.
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
