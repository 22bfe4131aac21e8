#include "gui/window/dock_tabs.hpp"

#include <QChildEvent>
#include <QMainWindow>
#include <QTabBar>

namespace shardwright::gui {
namespace {

// The window makes tab bars as docks come to share a place.
class TabBarWatcher : public QObject {
 public:
  using QObject::QObject;

  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() == QEvent::ChildPolished) {
      auto* tabs = qobject_cast<QTabBar*>(static_cast<QChildEvent*>(event)->child());
      if (tabs != nullptr) {
        tabs->setElideMode(Qt::ElideNone);
        tabs->setUsesScrollButtons(true);
      }
    }
    return QObject::eventFilter(watched, event);
  }
};

}  // namespace

void keep_tab_titles_whole(QMainWindow& window) {
  window.installEventFilter(new TabBarWatcher(&window));
}

}  // namespace shardwright::gui
