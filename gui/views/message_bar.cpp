#include "gui/views/message_bar.hpp"

#include <QAction>
#include <QEvent>
#include <QHBoxLayout>
#include <QResizeEvent>
#include <QToolButton>
#include <algorithm>

#include "gui/style/palette.hpp"

namespace shardwright::gui {

MessageBar::MessageBar(QWidget* parent)
    : QFrame(parent),
      sign_(new QLabel),
      label_(new QLabel),
      offer_(new QToolButton),
      close_(new QToolButton) {
  setObjectName(QStringLiteral("message_bar"));
  label_->setObjectName(QStringLiteral("message"));
  label_->setWordWrap(true);
  label_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label_->setTextFormat(Qt::PlainText);
  offer_->setObjectName(QStringLiteral("offer"));
  offer_->hide();
  close_->setObjectName(QStringLiteral("close_message"));
  close_->setText(QStringLiteral("✕"));
  close_->setAutoRaise(true);
  close_->setToolTip(tr("Close"));
  connect(close_, &QToolButton::clicked, this, &MessageBar::clear);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(10, 4, 6, 4);
  layout->addWidget(sign_);
  layout->addWidget(label_, 1);
  layout->addWidget(offer_);
  layout->addWidget(close_);
  setAutoFillBackground(true);
  restyle();
}

// As high as the text at this width: a wrapped label asks for more.
void MessageBar::fit_height() {
  const QMargins around = layout()->contentsMargins();
  const int offered = offer_->isHidden() ? 0 : offer_->sizeHint().width() + layout()->spacing();
  const int beside = sign_->sizeHint().width() + close_->sizeHint().width() + offered +
                     2 * layout()->spacing() + around.left() + around.right();
  const int text = label_->heightForWidth(std::max(1, width() - beside));
  setFixedHeight(std::max(text, close_->sizeHint().height()) + around.top() + around.bottom());
}

void MessageBar::resizeEvent(QResizeEvent* event) {
  QFrame::resizeEvent(event);
  if (event->oldSize().width() != event->size().width()) fit_height();
}

void MessageBar::show_text(Tone tone, const QString& text, QAction* offer) {
  tone_ = tone;
  label_->setText(text);
  for (QAction* former : offer_->actions()) offer_->removeAction(former);
  if (offer != nullptr) offer_->setDefaultAction(offer);
  offer_->setVisible(offer != nullptr);
  fit_height();
  restyle();
  Q_EMIT wanted(!text.isEmpty());
}

void MessageBar::clear() {
  show_text(Tone::Notice, {});
}

void MessageBar::changeEvent(QEvent* event) {
  QFrame::changeEvent(event);
  if (event->type() == QEvent::ApplicationPaletteChange) restyle();
}

void MessageBar::restyle() {
  const QPalette around = parentWidget() != nullptr ? parentWidget()->palette() : QPalette();
  const Colours colours = colours_for(around);
  const QColor colour = tone_ == Tone::Problem ? colours.bad : colours.accent;
  sign_->setText(tone_ == Tone::Problem ? QStringLiteral("⚠") : QStringLiteral("ℹ"));
  QPalette own = around;
  QColor ground = colour;
  ground.setAlphaF(colours.dark ? 0.28F : 0.14F);
  own.setColor(QPalette::Window, ground);
  setPalette(own);
}

}  // namespace shardwright::gui
