#include "gui/views/view.hpp"

#include <QDockWidget>
#include <QTabBar>

namespace shardwright::gui {

bool is_in_front(const QDockWidget& dock) {
  if (!dock.isVisible() || dock.isFloating()) return dock.isVisible();
  // The data of a tab is the address of its dock.
  const auto id = reinterpret_cast<quintptr>(&dock);
  for (const QTabBar* tabs :
       dock.parentWidget()->findChildren<QTabBar*>(QString(), Qt::FindDirectChildrenOnly)) {
    for (int tab = 0; tab < tabs->count(); ++tab) {
      if (tabs->tabData(tab).value<quintptr>() == id) return tab == tabs->currentIndex();
    }
  }
  return true;
}

bool View::is_looked_at() const {
  const auto* dock = qobject_cast<const QDockWidget*>(parentWidget());
  return dock != nullptr ? is_in_front(*dock) : isVisible();
}

void View::fill_then(std::function<void()> ready) {
  ready_ = std::move(ready);
  look_again();
  call_ready();
}

void View::call_ready() {
  if (ready_ && !is_busy()) std::exchange(ready_, nullptr)();
}

}  // namespace shardwright::gui
