#include "gui/views/toggle_button.hpp"

#include <QPainter>

#include "gui/style/mixed_colour.hpp"

namespace shardwright::gui {
namespace {

constexpr float kTint = 0.22F;
constexpr double kTowardsText = 0.4;
constexpr int kLine = 3;  // pixels
constexpr int kEdge = 2;  // … of the button's own frame

}  // namespace

ToggleButton::ToggleButton(QWidget* parent) : QToolButton(parent) {
  setCheckable(true);
}

void ToggleButton::paintEvent(QPaintEvent* event) {
  QToolButton::paintEvent(event);
  if (!isChecked()) return;
  QPainter painter(this);
  const QRect inside = rect().adjusted(kEdge, kEdge, -kEdge, -kEdge);
  QColor tint = palette().color(QPalette::Highlight);
  // Towards the text, which stands out from the button in every theme.
  const QColor line = mixed_colour(tint, palette().color(QPalette::ButtonText), kTowardsText);
  tint.setAlphaF(kTint);
  painter.fillRect(inside, tint);
  painter.fillRect(inside.left(), inside.bottom() - kLine + 1, inside.width(), kLine, line);
}

}  // namespace shardwright::gui
