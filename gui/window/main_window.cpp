#include "gui/window/main_window.hpp"

#include <QDockWidget>
#include <QLabel>

namespace shardwright::gui {

MainWindow::MainWindow() {
  setObjectName(QStringLiteral("main_window"));
  setWindowTitle(QStringLiteral("Shardwright"));
  setDockNestingEnabled(true);
  create_docks();
  resize(1440, 900);
}

QDockWidget* MainWindow::add_dock(const QString& id, const QString& title, QWidget* view,
                                  Qt::DockWidgetArea area) {
  auto* dock = new QDockWidget(title, this);
  dock->setObjectName(id);
  dock->setWidget(view);
  addDockWidget(area, dock);
  return dock;
}

void MainWindow::create_docks() {
  add_dock(QStringLiteral("scenario"), tr("Scenario"), new QLabel, Qt::LeftDockWidgetArea);
  add_dock(QStringLiteral("plans"), tr("Plans"), new QLabel, Qt::RightDockWidgetArea);
  add_dock(QStringLiteral("why"), tr("Why"), new QLabel, Qt::RightDockWidgetArea);
}

}  // namespace shardwright::gui
