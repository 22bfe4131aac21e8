#include "gui/window/theme.hpp"

#include <QApplication>
#include <QStyle>
#include <QStyleFactory>
#include <QToolTip>

#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {
namespace {

// The style of the desktop, which the program starts with.
const QString& desktop_style() {
  static const QString kFirst = QApplication::style()->name();
  return kFirst;
}

}  // namespace

void apply_theme(Theme theme) {
  const QString& before = desktop_style();
  if (theme == Theme::System) {
    if (QApplication::style()->name() != before)
      QApplication::setStyle(QStyleFactory::create(before));
    // Without colours of its own the program follows a desktop that changes its own.
    QApplication::setPalette(QPalette());
  } else {
    if (QApplication::style()->name() != u"fusion"_s)
      QApplication::setStyle(QStyleFactory::create(u"Fusion"_s));
    QApplication::setPalette(theme == Theme::Dark ? dark_palette() : light_palette());
  }
  style_tool_tips();
}

void style_tool_tips() {
  QPalette palette = QApplication::palette();
  palette.setColor(QPalette::ToolTipBase, palette.color(QPalette::Button));
  palette.setColor(QPalette::ToolTipText, palette.color(QPalette::ButtonText));
  QToolTip::setPalette(palette);
}

}  // namespace shardwright::gui
