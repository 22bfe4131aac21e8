#include "gui/window/theme.hpp"

#include <QApplication>
#include <QStyle>
#include <QStyleFactory>
#include <QToolTip>

#include "gui/models/text.hpp"
#include "gui/style/palette.hpp"

namespace shardwright::gui {
namespace {

// The looks of the desktop, which the program starts with.
struct Desktop {
  QString style;
  QPalette of_tool_tips;
};

const Desktop& desktop() {
  static const Desktop kDesktop{QApplication::style()->name(), QToolTip::palette()};
  return kDesktop;
}

}  // namespace

void apply_theme(Theme theme) {
  const Desktop& before = desktop();
  if (theme == Theme::System) {
    if (QApplication::style()->name() != before.style)
      QApplication::setStyle(QStyleFactory::create(before.style));
    // Without colours of its own the program follows a desktop that changes its own.
    QApplication::setPalette(QPalette());
    QToolTip::setPalette(before.of_tool_tips);
  } else {
    if (QApplication::style()->name() != u"fusion"_s)
      QApplication::setStyle(QStyleFactory::create(u"Fusion"_s));
    QApplication::setPalette(theme == Theme::Dark ? dark_palette() : light_palette());
    QToolTip::setPalette(QApplication::palette());
  }
}

}  // namespace shardwright::gui
