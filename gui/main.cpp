#include <QApplication>

#include "gui/window/main_window.hpp"

int main(int argc, char** argv) {
  const QApplication application(argc, argv);
  shardwright::gui::MainWindow window;
  window.show();
  return QApplication::exec();
}
