#include "gui/views/hint_label.hpp"

#include <QEvent>

#include "gui/style/palette.hpp"

namespace shardwright::gui {

HintLabel::HintLabel(const QString& text, QWidget* parent) : QLabel(text, parent) {
  setWordWrap(true);
  restyle();
}

void HintLabel::changeEvent(QEvent* event) {
  QLabel::changeEvent(event);
  if (event->type() == QEvent::PaletteChange) restyle();
}

void HintLabel::restyle() {
  QPalette colours = palette();
  const QColor muted = colours_for(colours).muted_text;
  if (colours.color(QPalette::WindowText) == muted) return;
  colours.setColor(QPalette::WindowText, muted);
  setPalette(colours);
}

}  // namespace shardwright::gui
