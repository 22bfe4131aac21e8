// window_with_a_run CORPUS FOLDER [close]: the window as the program has it, with a run that it
// started in FOLDER. "close": somebody closes the window as soon as it is there.
#include <QApplication>
#include <QLineEdit>
#include <QSettings>
#include <QSpinBox>
#include <memory>

#include "gui/models/plan_set.hpp"
#include "gui/views/run_view.hpp"
#include "gui/window/main_window.hpp"
#include "gui/window/stop_signals.hpp"
#include "tests/gui/tiny_run.hpp"

int main(int argc, char** argv) {
  using namespace shardwright::gui;
  const QApplication application(argc, argv);
  const QString folder = QApplication::arguments().at(2);
  QSettings settings(folder + QStringLiteral(".session"), QSettings::IniFormat);
  const StopSignals stop;
  MainWindow window(&settings);
  window.show();
  window.selection().show(
      std::make_shared<const PlanSet>(plan_set_of(tiny_scenario(), QStringLiteral("a test"))));
  window.findChild<QLineEdit*>(QStringLiteral("run_data"))
      ->setText(QApplication::arguments().at(1));
  window.findChild<QLineEdit*>(QStringLiteral("run_out"))->setText(folder);
  window.findChild<QSpinBox*>(QStringLiteral("run_steps"))->setValue(1'000'000);
  window.findChild<RunView*>()->start();
  if (QApplication::arguments().size() > 3)
    QMetaObject::invokeMethod(&window, &MainWindow::close, Qt::QueuedConnection);
  return run_until_closed(window, stop);
}
