#include "gui/window/wrapped_tips.hpp"

#include <QApplication>
#include <QHelpEvent>
#include <QToolTip>
#include <QWidget>
#include <algorithm>

#include "gui/models/text.hpp"

namespace shardwright::gui {
namespace {

// A tip with longer lines is broken.
constexpr qsizetype kLongestLine = 70;
// The tip of a cell goes when the mouse has left so many pixels around its place.
constexpr int kAround = 8;

bool has_long_line(const QString& text) {
  const QStringList lines = text.split(u'\n');
  return std::any_of(lines.begin(), lines.end(),
                     [](const QString& line) { return line.size() > kLongestLine; });
}

}  // namespace

WrappedTips::WrappedTips(QObject* parent) : QObject(parent) {
  qApp->installEventFilter(this);
}

// Lets the widget show its tip, wherever that comes from, and breaks the lines of what is shown.
bool WrappedTips::eventFilter(QObject* watched, QEvent* event) {
  auto* widget = qobject_cast<QWidget*>(watched);
  if (event->type() != QEvent::ToolTip || passing_on_ || widget == nullptr) return false;
  passing_on_ = true;
  QCoreApplication::sendEvent(watched, event);
  passing_on_ = false;
  const QString text = QToolTip::text();
  if (!QToolTip::isVisible() || Qt::mightBeRichText(text) || !has_long_line(text)) return true;
  const auto* help = static_cast<QHelpEvent*>(event);
  const bool is_of_widget = text == widget->toolTip();
  const QRect around(help->pos() - QPoint(kAround, kAround), QSize(2 * kAround, 2 * kAround));
  QToolTip::showText(help->globalPos(),
                     u"<p>%1</p>"_s.arg(text.toHtmlEscaped().replace(u"\n"_s, u"<br>"_s)), widget,
                     is_of_widget ? QRect() : around);
  return true;
}

}  // namespace shardwright::gui
