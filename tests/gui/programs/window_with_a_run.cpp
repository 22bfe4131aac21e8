// window_with_a_run CORPUS FOLDER [close|keep]: the window as the program has it, with a run that
// it started in FOLDER. "close": somebody closes the window as soon as it is there. "keep":
// somebody closes it after the first step and keeps the run.
#include <QAbstractButton>
#include <QApplication>
#include <QFileInfo>
#include <QLineEdit>
#include <QSettings>
#include <QSpinBox>
#include <QTimer>
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
  QSettings settings(folder + u".session"_s, QSettings::IniFormat);
  const StopSignals stop;
  MainWindow window(&settings);
  window.show();
  window.selection().show(
      std::make_shared<const PlanSet>(plan_set_of(tiny_scenario(), u"a test"_s)));
  window.findChild<QLineEdit*>(u"run_data"_s)->setText(QApplication::arguments().at(1));
  window.findChild<QLineEdit*>(u"run_out"_s)->setText(folder);
  window.findChild<QSpinBox*>(u"run_steps"_s)->setValue(1'000'000);
  window.findChild<RunView*>()->start();
  const QString wish = QApplication::arguments().value(3);
  if (wish == u"close"_s)
    QMetaObject::invokeMethod(&window, &MainWindow::close, Qt::QueuedConnection);
  QTimer look;
  QObject::connect(&look, &QTimer::timeout, &window, [&] {
    if (QFileInfo(folder + u"/metrics.jsonl"_s).size() == 0) return;
    look.stop();
    window.close();
    window.findChild<QAbstractButton*>(u"keep_running"_s)->click();
  });
  if (wish == u"keep"_s) look.start(20);
  return run_until_closed(window, stop);
}
