#include "gui/views/message_bar.hpp"

#include <QEvent>
#include <QGraphicsOpacityEffect>
#include <QHBoxLayout>
#include <QPropertyAnimation>
#include <QScrollBar>
#include <QStatusBar>
#include <QVBoxLayout>
#include <algorithm>

#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/widgets.hpp"

namespace shardwright::gui {
namespace {

// The height of the unfolded bar in pixels that leaves room for the views of a small window.
constexpr int kMostHeight = 150;
constexpr int kRowGap = 1;
constexpr int kFadeMs = 400;
// The lines of text that the strip has room for.
constexpr int kLines = 2, kAroundLines = 4;
// The least width of the strip in heights of the letters.
constexpr int kLeastStripWidth = 16;

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
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(10, 2, 6, 2);
  // The first line of a longer text is in view.
  layout->addWidget(sign_, 0, Qt::AlignTop);
  layout->addWidget(label_, 1);
  layout->addWidget(offer_, 0, Qt::AlignTop);
  layout->addWidget(close_, 0, Qt::AlignTop);
  setAutoFillBackground(true);
  auto* opacity = new QGraphicsOpacityEffect(this);
  opacity->setEnabled(false);
  setGraphicsEffect(opacity);
  fading_ = new QPropertyAnimation(opacity, "opacity", this);
  fading_->setDuration(kFadeMs);
  fading_->setStartValue(1.0);
  fading_->setEndValue(0.0);
  connect(fading_, &QPropertyAnimation::stateChanged, opacity,
          [opacity](auto state) { opacity->setEnabled(state == QAbstractAnimation::Running); });
  connect(fading_, &QPropertyAnimation::finished, this, [this] { Q_EMIT closed(key_); });
  pause_.setSingleShot(true);
  connect(&pause_, &QTimer::timeout, this, [this] {
    if (underMouse()) return pause_.start();
    fading_->start();
  });
}

void MessageRow::show_message(Tone tone, const QString& text, const Offer& offer,
                              std::chrono::milliseconds success_stays) {
  fading_->stop();
  pause_.stop();
  if (tone == Tone::Success) pause_.start(success_stays);
  tone_ = tone;
  take_ = offer.take;
  label_->setText(text);
  offer_->setText(offer.title);
  offer_->setVisible(!offer.title.isEmpty());
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

MessageBar::MessageBar(QStatusBar* status_bar)
    : QScrollArea(status_bar->window()), strip_(new QWidget) {
  setObjectName(u"message_bar"_s);
  setFrameShape(QFrame::NoFrame);
  setFocusPolicy(Qt::NoFocus);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  setWidgetResizable(true);
  auto* column = new QWidget;
  column_ = new QVBoxLayout(column);
  column_->setContentsMargins(0, 0, 0, 0);
  column_->setSpacing(kRowGap);
  setWidget(column);
  unfold_ = tool_button(u"unfold_messages"_s, u"▾"_s, tr("Show all messages"));
  unfold_->setCheckable(true);
  connect(unfold_, &QToolButton::toggled, this, &MessageBar::show_all);
  addScrollBarWidget(unfold_, Qt::AlignTop);
  hide();
  strip_->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
  status_bar->addWidget(strip_, 1);
  for (QWidget* watched : {static_cast<QWidget*>(status_bar), strip_})
    watched->installEventFilter(this);
  follow_letters(*this, [this] {
    strip_->setFixedHeight(kLines * fontMetrics().lineSpacing() + kAroundLines + kRowGap);
    strip_->setMinimumWidth(kLeastStripWidth * fontMetrics().height());
    take_place();
  });
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
  row->show_message(tone, text, offer, success_stays_);
  column_->removeWidget(row);
  column_->addWidget(row);
  row->show();
  show_all();
}

void MessageBar::close_all() {
  while (!rows_.empty()) drop(rows_.back());
  show_all();
}

void MessageBar::show_all() {
  restyle();
  setVisible(!rows_.empty());
  take_place();
  // Shows the newest message from its beginning. Waits until the rows have their places.
  QTimer::singleShot(0, this, [this] {
    if (!rows_.empty()) verticalScrollBar()->setValue(rows_.back()->y());
  });
}

QString MessageBar::text() const {
  QStringList texts;
  for (const MessageRow* row : rows_) texts.append(row->text());
  return texts.join(u'\n');
}

void MessageBar::take_place() {
  const QRect strip(strip_->mapTo(parentWidget(), QPoint()), strip_->size());
  const auto fitted = [this](int width) {
    int sum = 0;
    for (MessageRow* row : rows_) sum += row->fit_height(width) + kRowGap;
    return sum;
  };
  if (rows_.empty()) unfold_->setChecked(false);
  const int wanted = fitted(strip.width());
  const int most = unfold_->isChecked() ? std::max(kMostHeight, strip.height()) : strip.height();
  if (wanted > most) fitted(strip.width() - verticalScrollBar()->sizeHint().width());
  const int height = std::clamp(wanted, strip.height(), most);
  setGeometry(strip.left(), strip.bottom() + 1 - height, strip.width(), height);
  raise();
}

bool MessageBar::eventFilter(QObject* watched, QEvent* event) {
  if (event->type() == QEvent::Resize || event->type() == QEvent::Move) take_place();
  return QScrollArea::eventFilter(watched, event);
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
