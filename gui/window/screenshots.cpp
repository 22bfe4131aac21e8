#include "gui/window/screenshots.hpp"

#include <QApplication>
#include <QDir>
#include <QDockWidget>
#include <QElapsedTimer>
#include <QLineEdit>
#include <QProcess>
#include <QStyleFactory>
#include <QTabWidget>
#include <QTemporaryDir>
#include <QThread>
#include <algorithm>
#include <cstdio>
#include <optional>
#include <vector>

#include "calibration/calibrate.hpp"
#include "core/base/error.hpp"
#include "core/spec/model_library.hpp"
#include "core/spec/profile_library.hpp"
#include "gui/models/run_process.hpp"
#include "gui/models/this_machine.hpp"
#include "gui/models/written_file.hpp"
#include "gui/style/palette.hpp"
#include "gui/views/picture_export.hpp"
#include "gui/views/run_view.hpp"
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
    const QString suffix = scale == 1 ? QString() : u"@2x"_s;
    const QString file = folder.filePath(name + suffix + u".png"_s);
    try {
      write_png(picture_of(widget, scale), file);
    } catch (const RuntimeFailure& failure) {
      std::fprintf(stderr, "shardwright-gui: %s\n", failure.what());
      return false;
    }
  }
  return true;
}

// Saves the whole window with a view in front, on a small screen.
bool save_small(MainWindow& window, const QString& view, const QDir& folder, const QString& name) {
  const QSize before = window.size();
  window.resize(1280, 720);
  window.raise_view(view);
  const bool well = wait_until_idle(window) && save(window, folder, name);
  window.resize(before);
  return well;
}

// Saves the fastest plan beside the last that is listed.
bool save_comparison(MainWindow& window, const QDir& folder, const QString& look) {
  Selection& selection = window.selection();
  const std::size_t last = selection.set()->plans.size() - 1;
  selection.compare_with(last);
  if (!wait_until_idle(window)) return false;
  if (!save(*window.view(u"why"_s), folder, u"comparison-"_s + look)) return false;
  selection.compare_with(std::nullopt);
  window.view(u"why"_s)->findChild<QTabWidget*>()->setCurrentIndex(0);
  return true;
}

// Measures this machine's CPUs as two ranks see them, so that the prediction lies near the
// measurement. Returns none if that fails.
std::optional<ClusterSpec> probed_machine(const QString& folder) {
  const QString profile = QDir(folder).filePath(u"here.json"_s);
  QProcess probe;
  end_with_this_program(probe);
  probe.setProcessChannelMode(QProcess::ForwardedErrorChannel);
  probe.start(find_command(),
              {u"probe"_s, u"--device"_s, u"cpu"_s, u"--ranks"_s, u"2"_s, u"--out"_s, profile});
  const bool well = probe.waitForFinished(kPatienceMs) && probe.exitCode() == 0;
  if (!well) return std::nullopt;
  return load_cluster(profile.toStdString());
}

// A plan that two CPU ranks train in seconds.
Scenario tiny_scenario(const ClusterSpec& machine) {
  Scenario scenario{load_model("tiny-llama"), machine,
                    calibration::stack_on(machine, load_stack("shardwright")), Plan()};
  scenario.plan.tp = 2;
  scenario.plan.global_batch = 4;
  scenario.plan.seq_len = 64;
  scenario.plan.precision = Precision::Fp32;
  return scenario;
}

// Changes the current folder for as long as this lives.
class WorkingFolder {
 public:
  explicit WorkingFolder(const QString& folder) : before_(QDir::currentPath()) {
    QDir::setCurrent(folder);
  }
  ~WorkingFolder() { QDir::setCurrent(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  QString before_;
};

// Warns if other programs of the machine have disturbed the run.
void warn_where_unsteady(const std::vector<RunStep>& steps) {
  constexpr double kMostSwing = 2.0;
  const auto [slowest, fastest] = std::minmax_element(
      steps.begin(), steps.end(),
      [](const RunStep& a, const RunStep& b) { return a.tokens_per_s < b.tokens_per_s; });
  if (steps.empty() || fastest->tokens_per_s <= kMostSwing * slowest->tokens_per_s) return;
  std::fprintf(stderr,
               "shardwright-gui: the run's rate swings from %.0f to %.0f tokens/s: the machine is "
               "busy, take its picture again\n",
               slowest->tokens_per_s, fastest->tokens_per_s);
}

// Saves a run that this machine trains.
bool save_run(MainWindow& window, const ClusterSpec& machine, const QDir& folder,
              const QString& look) {
  const QTemporaryDir scratch;
  const WorkingFolder working(scratch.path());  // The picture shows no path of this machine.
  const QString corpus = u"corpus.txt"_s;
  write_text_file(corpus, u"What is trained is what was simulated. "_s.repeated(200));
  window.selection().show(
      std::make_shared<const PlanSet>(plan_set_of(tiny_scenario(machine), u"a run"_s)));
  window.raise_view(u"run"_s);
  auto* view = qobject_cast<RunView*>(window.view(u"run"_s));
  view->findChild<QLineEdit*>(u"run_data"_s)->setText(corpus);
  view->findChild<QLineEdit*>(u"run_out"_s)->setText(u"runs/tiny-llama"_s);
  view->start();
  // The loop leaves the cores to the ranks.
  while (view->is_running()) {
    QCoreApplication::processEvents(QEventLoop::AllEvents, 20);
    QThread::msleep(20);
  }
  if (!wait_until_idle(window)) return false;
  warn_where_unsteady(view->follower().steps());
  view->calibrate();
  return wait_until_idle(window) && save(*view, folder, u"run-"_s + look);
}

// Saves traces beside the step of the plan that they may be of.
bool save_traces(MainWindow& window, const QStringList& traces, const QDir& folder,
                 const QString& look) {
  if (traces.isEmpty()) return true;
  Scenario scenario{load_model("gpt2"), load_cluster("dgx-h100"), load_stack("megatron-core"),
                    Plan()};
  scenario.plan.dp = 8;
  scenario.plan.global_batch = 128;
  scenario.plan.micro_batch = 16;
  scenario.plan.seq_len = 1024;
  window.selection().show(std::make_shared<const PlanSet>(plan_set_of(scenario, u"a plan"_s)));
  window.raise_view(u"timeline"_s);
  window.open(traces);
  return wait_until_idle(window) && save(*window.view(u"timeline"_s), folder, u"trace-"_s + look) &&
         save_small(window, u"timeline"_s, folder, u"window-trace-"_s + look);
}

// Saves each view alone, then the whole window.
bool save_all(MainWindow& window, const QDir& folder, const QString& look) {
  for (const QDockWidget* dock : window.docks()) {
    if (dock->objectName() == u"run"_s) continue;
    window.raise_view(dock->objectName());
    if (!wait_until_idle(window)) return false;
    if (!save(*dock->widget(), folder, u"%1-%2"_s.arg(dock->objectName(), look))) return false;
  }
  window.raise_view(u"why"_s);
  return wait_until_idle(window) && save(window, folder, u"window-%1"_s.arg(look)) &&
         save_comparison(window, folder, look) &&
         save_small(window, u"forecast"_s, folder, u"window-forecast-"_s + look);
}

}  // namespace

bool take_screenshots(const QString& folder, const QStringList& traces) {
  if (!QDir().mkpath(folder)) {
    std::fprintf(stderr, "shardwright-gui: %s cannot be made\n", qPrintable(folder));
    return false;
  }
  QApplication::setStyle(QStyleFactory::create(u"Fusion"_s));
  QApplication::setPalette(light_palette());
  MainWindow window;
  window.resize(1440, 900);
  window.show();
  window.start();
  if (!wait_until_idle(window)) return false;
  const QDir pictures(QDir(folder).absolutePath());
  if (!save_all(window, pictures, u"light"_s)) return false;
  QApplication::setPalette(dark_palette());
  if (!save_all(window, pictures, u"dark"_s)) return false;
  if (!save_traces(window, traces, pictures, u"dark"_s)) return false;
  QApplication::setPalette(light_palette());
  if (!save_traces(window, traces, pictures, u"light"_s)) return false;
  QApplication::setPalette(dark_palette());
  const QTemporaryDir scratch;
  const std::optional<ClusterSpec> machine = probed_machine(scratch.path());
  if (!machine) {
    std::fprintf(stderr, "shardwright-gui: this machine cannot be probed\n");
    return false;
  }
  const bool well = save_run(window, *machine, pictures, u"dark"_s);
  QApplication::setPalette(light_palette());
  return well && save_run(window, *machine, pictures, u"light"_s);
}

}  // namespace shardwright::gui
