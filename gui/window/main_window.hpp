// The one window: a dock for each view, one shared selection.
#pragma once

#include <QMainWindow>

class QDockWidget;

namespace shardwright::gui {

class MainWindow : public QMainWindow {
  Q_OBJECT

 public:
  MainWindow();

 private:
  // A dock named by `title` that holds `view`; its object name is `id`.
  QDockWidget* add_dock(const QString& id, const QString& title, QWidget* view,
                        Qt::DockWidgetArea area);
  void create_docks();
};

}  // namespace shardwright::gui
