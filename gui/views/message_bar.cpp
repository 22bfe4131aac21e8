#include "gui/views/message_bar.hpp"

#include <QEvent>
#include <QHBoxLayout>
#include <QToolButton>

#include "gui/style/palette.hpp"

namespace shardwright::gui {

MessageBar::MessageBar(QWidget* parent) : QFrame(parent), sign_(new QLabel), label_(new QLabel) {
  setObjectName(QStringLiteral("message_bar"));
  label_->setObjectName(QStringLiteral("message"));
  label_->setWordWrap(true);
  label_->setTextInteractionFlags(Qt::TextSelectableByMouse);
  label_->setTextFormat(Qt::PlainText);
  auto* close = new QToolButton;
  close->setObjectName(QStringLiteral("close_message"));
  close->setText(QStringLiteral("✕"));
  close->setAutoRaise(true);
  close->setToolTip(tr("Close"));
  connect(close, &QToolButton::clicked, this, &MessageBar::clear);
  auto* layout = new QHBoxLayout(this);
  layout->setContentsMargins(10, 4, 6, 4);
  layout->addWidget(sign_);
  layout->addWidget(label_, 1);
  layout->addWidget(close);
  setAutoFillBackground(true);
  restyle();
}

void MessageBar::show_text(Tone tone, const QString& text) {
  tone_ = tone;
  label_->setText(text);
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
