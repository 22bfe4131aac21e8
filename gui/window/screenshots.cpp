#include "gui/window/screenshots.hpp"

#include <QApplication>
#include <QDir>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QImage>
#include <QStyleFactory>
#include <QThread>
#include <cstdio>

#include "gui/style/palette.hpp"
#include "gui/views/picture_export.hpp"
#include "gui/window/main_window.hpp"

namespace shardwright::gui {
namespace {

constexpr int kPatienceMs = 900'000;

// Runs events until the window has nothing left to do.
bool wait_until_idle(const MainWindow& window) {
  QElapsedTimer waited;
  waited.start();
  int idle = 0;
  while (idle < 20 && waited.elapsed() < kPatienceMs) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    QThread::msleep(10);
    idle = window.is_busy() ? 0 : idle + 1;
  }
  return idle >= 20;
}

bool save(QWidget& widget, const QDir& folder, const QString& name) {
  for (const int scale : {1, 2}) {
    const QString suffix = scale == 1 ? QString() : QStringLiteral("@2x");
    const QString file = folder.filePath(name + suffix + QStringLiteral(".png"));
    if (picture_of(widget, scale).save(file)) continue;
    std::fprintf(stderr, "shardwright-gui: %s cannot be written\n", qPrintable(file));
    return false;
  }
  return true;
}

// Each view alone, then the whole window.
bool save_all(MainWindow& window, const QDir& folder, const QString& look) {
  for (const QDockWidget* dock : window.docks()) {
    window.raise_view(dock->objectName());
    if (!wait_until_idle(window)) return false;
    if (!save(*dock->widget(), folder, QStringLiteral("%1-%2").arg(dock->objectName(), look)))
      return false;
  }
  window.raise_view(QStringLiteral("why"));
  return wait_until_idle(window) && save(window, folder, QStringLiteral("window-%1").arg(look));
}

}  // namespace

bool take_screenshots(const QString& folder) {
  if (!QDir().mkpath(folder)) {
    std::fprintf(stderr, "shardwright-gui: %s cannot be made\n", qPrintable(folder));
    return false;
  }
  QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
  QApplication::setPalette(light_palette());
  MainWindow window;
  window.show();
  window.start();
  if (!wait_until_idle(window)) return false;
  if (!save_all(window, QDir(folder), QStringLiteral("light"))) return false;
  QApplication::setPalette(dark_palette());
  return save_all(window, QDir(folder), QStringLiteral("dark"));
}

}  // namespace shardwright::gui
