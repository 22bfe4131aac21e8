#include "gui/window/shortcut_overlay.hpp"

#include <QAction>
#include <QCoreApplication>
#include <QKeyEvent>
#include <QLabel>
#include <QScopedValueRollback>
#include <QScrollArea>
#include <QScrollBar>
#include <QVBoxLayout>
#include <array>

#include "gui/models/text.hpp"
#include "gui/window/action_registry.hpp"

namespace shardwright::gui {
namespace {

struct Gesture {
  const char* keys;
  const char* what;
};

// Input that has no action, which is the mouse and the keys of a view that has the focus.
constexpr std::array kGestures = {
    Gesture{"Click", "choose a plan"},
    Gesture{"Ctrl+click", "compare the chosen plan with another"},
    Gesture{"Space", "in the table: compare this plan with the next one"},
    Gesture{"Drag", "lasso around points; with Shift a rectangle"},
    Gesture{"Wheel", "zoom a plot; over an axis only that one"},
    Gesture{"Middle drag", "pan a plot"},
    Gesture{"Shift+drag", "pan a painted view, as arrow keys do"},
    Gesture{"Right click", "filter by a cell or an op; pin, fold rows"},
    Gesture{"Double click", "show all of a plot again"},
};

constexpr std::array kTimelineKeys = {
    Gesture{"W S", "zoom in and out"},
    Gesture{"A D", "pan"},
    Gesture{"Home", "all of the step"},
    Gesture{"← → ↑ ↓", "walk from op to op"},
    Gesture{"F", "centre the chosen op, then fit it"},
    Gesture{"Enter", "zoom to the selected range"},
    Gesture{"Backspace", "back to the range before"},
    Gesture{"Ctrl+F", "search; . and , go from match to match"},
    Gesture{"Alt+↑ ↓", "move the op's row; with Shift its rank"},
    Gesture{"Drag of a name", "move a row or a rank"},
    Gesture{"Q", "what the chosen op is, beside the rows"},
    Gesture{"Esc", "clear the selection"},
};

constexpr std::array kTopologyKeys = {
    Gesture{"← →", "other nodes"},
    Gesture{"↑ ↓", "other GPUs of a large domain"},
    Gesture{"B", "back to the busiest link"},
    Gesture{"W S Home", "zoom in and out, show all"},
    Gesture{"T C E P D", "groups of one axis of the chosen GPU"},
    Gesture{"Esc", "clear the selection"},
};

constexpr std::array kScheduleKeys = {
    Gesture{"Space", "play the step"},
    Gesture{"W S A D", "zoom in and out, pan"},
    Gesture{"← →", "next start or end of a slot"},
    Gesture{"Home End", "begin and end of the step"},
    Gesture{"Esc", "leave the replay"},
};

QString row(const QString& keys, const QString& what) {
  return u"<tr><td><b>%1</b>&nbsp;&nbsp;</td><td>%2</td></tr>"_s.arg(keys.toHtmlEscaped(),
                                                                     what.toHtmlEscaped());
}

QString part(const QString& title, const QString& rows) {
  return u"<h4>%1</h4><table cellpadding=2>%2</table>"_s.arg(title, rows);
}

template <std::size_t count>
QString part(const QString& title, const std::array<Gesture, count>& gestures) {
  QString rows;
  for (const Gesture& gesture : gestures)
    rows += row(to_qstring(gesture.keys), to_qstring(gesture.what));
  return part(title, rows);
}

}  // namespace

ShortcutOverlay::ShortcutOverlay(const ActionRegistry* registry, QWidget* window)
    : QFrame(window), registry_(registry), label_(new QLabel), scroll_(new QScrollArea) {
  setObjectName(u"shortcuts"_s);
  setFrameShape(QFrame::StyledPanel);
  setAutoFillBackground(true);
  setFocusPolicy(Qt::StrongFocus);
  label_->setTextFormat(Qt::RichText);
  label_->setContentsMargins(24, 16, 24, 16);
  scroll_->setFrameShape(QFrame::NoFrame);
  scroll_->setFocusPolicy(Qt::NoFocus);
  scroll_->setWidget(label_);
  auto* layout = new QVBoxLayout(this);
  layout->setContentsMargins(0, 0, 0, 0);
  layout->addWidget(scroll_);
  hide();
}

QString ShortcutOverlay::text() const {
  QStringList columns = {QString(), QString(), QString()};
  const auto groups = registry_->groups();
  for (std::size_t i = 0; i < groups.size(); ++i) {
    QString rows;
    for (const QAction* action : registry_->actions()) {
      if (ActionRegistry::group_of(action) != groups[i] || action->shortcut().isEmpty()) continue;
      QString what = action->text();
      rows += row(action->shortcut().toString(QKeySequence::NativeText), what.remove(u'&'));
    }
    if (!rows.isEmpty()) columns[i < (groups.size() + 1) / 2 ? 0 : 1] += part(groups[i], rows);
  }
  columns[1] += part(tr("Mouse"), kGestures);
  columns[2] += part(tr("In Timeline"), kTimelineKeys);
  columns[2] += part(tr("In Topology"), kTopologyKeys);
  columns[2] += part(tr("In Schedule"), kScheduleKeys);
  return tr("<h3>Keyboard and mouse</h3>") + u"<table><tr><td>"_s +
         columns.join(u"</td><td width=32></td><td>"_s) + u"</td></tr></table>"_s +
         tr("<p>Esc closes this page.</p>");
}

void ShortcutOverlay::toggle() {
  if (isVisible()) return hide();
  label_->setText(text());
  label_->adjustSize();
  // The overlay is a little larger than the page, so that no scroll bar takes room.
  constexpr int kFrame = 4;
  const QSize around = parentWidget()->size();
  resize((label_->size() + QSize(kFrame, kFrame)).boundedTo(around));
  move((around.width() - width()) / 2, (around.height() - height()) / 2);
  show();
  raise();
  setFocus();
}

bool ShortcutOverlay::event(QEvent* event) {
  if (event->type() == QEvent::ShortcutOverride &&
      static_cast<const QKeyEvent*>(event)->key() == Qt::Key_Escape)
    event->accept();
  return QFrame::event(event);
}

void ShortcutOverlay::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_Escape) return hide();
  // The scroll bar gives a key that it has no use for back to the widgets around it.
  if (is_scrolling_) return event->ignore();
  // Arrows and pages scroll a page that is higher than the window.
  const QScopedValueRollback scrolling(is_scrolling_, true);
  QCoreApplication::sendEvent(scroll_->verticalScrollBar(), event);
}

void ShortcutOverlay::mousePressEvent(QMouseEvent*) {
  hide();
}

}  // namespace shardwright::gui
