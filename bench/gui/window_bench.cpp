// The window on the offscreen platform: from the start of a process to a window that can be used,
// on the worked example; from a change of the scenario to the first plans in the table; and the
// table of 100,000 plans. Benchmarks of the window are child processes of this one, so that loading
// the program counts.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QProcess>
#include <QTableView>
#include <QTemporaryDir>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>

#include "gui/models/plan_table_model.hpp"
#include "gui/window/main_window.hpp"

namespace shardwright::gui {
namespace {

constexpr const char* kExample = "--example";
constexpr const char* kLargest = "--405b-on-16384";
constexpr int kPatienceMs = 120'000;

double milliseconds_since(std::chrono::steady_clock::duration start) {
  const auto elapsed = std::chrono::steady_clock::now().time_since_epoch() - start;
  return std::chrono::duration<double, std::milli>(elapsed).count();
}

// Notes that something of the program was painted; a pass paints all that is to be seen.
class PaintWatch : public QObject {
 public:
  PaintWatch() { qApp->installEventFilter(this); }
  bool painted = false;

 protected:
  bool eventFilter(QObject*, QEvent* event) override {
    painted = painted || event->type() == QEvent::Paint;
    return false;
  }
};

// Runs events until `done` and says how long after `start` that was.
void tell_when(const char* what, std::chrono::steady_clock::duration start,
               const std::function<bool()>& done) {
  QElapsedTimer waited;
  waited.start();
  while (!done() && waited.elapsed() < kPatienceMs)
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents);
  std::printf("%s %.3f\n", what, milliseconds_since(start));
}

bool shows_plans(const MainWindow& window, const PlanSetPointer& set) {
  const auto* table = window.findChild<QTableView*>(QStringLiteral("plans_table"));
  return set && !set->plans.empty() && table->model()->rowCount() > 0 && table->isVisible();
}

void show_example(std::chrono::steady_clock::duration start) {
  MainWindow window;
  PaintWatch watch;
  window.show();
  window.start();
  tell_when("painted", start, [&] { return watch.painted; });
  tell_when("plans", start, [&] { return shows_plans(window, window.selection().set()); });
  tell_when("complete", start,
            [&] { return window.selection().set() && window.selection().set()->complete; });
}

// Measured from the edit; the window stands already.
void search_largest() {
  MainWindow window;
  window.show();
  ScenarioChoice choice;
  choice.model = "llama3.1-405b";
  choice.gpus = 16384;
  choice.global_batch = 2048;
  const auto start = std::chrono::steady_clock::now().time_since_epoch();
  window.document().replace(QStringLiteral("a benchmark"), choice);
  const auto is_of_choice = [&](const PlanSetPointer& set) {
    return set && set->request.gpus == choice.gpus;
  };
  tell_when("plans", start, [&] {
    const PlanSetPointer set = window.selection().set();
    return is_of_choice(set) && shows_plans(window, set);
  });
  tell_when("complete", start, [&] {
    const PlanSetPointer set = window.selection().set();
    return is_of_choice(set) && set->complete;
  });
}

int be_child(int argc, char** argv) {
  const QString what = QString::fromUtf8(argv[1]);
  const std::chrono::nanoseconds start(argc > 2 ? std::atoll(argv[2]) : 0);
  const QApplication application(argc, argv);
  if (what == QString::fromUtf8(kExample)) {
    show_example(start);
  } else {
    search_largest();
  }
  return 0;
}

// Times of a child in milliseconds, by their name, as counters; the one called `timed` is the
// benchmark's.
void run_child(benchmark::State& state, const char* what, const QByteArray& timed) {
  for ([[maybe_unused]] auto _ : state) {
    const auto start = std::chrono::steady_clock::now().time_since_epoch();
    QProcess child;
    child.setProcessChannelMode(QProcess::ForwardedErrorChannel);
    child.start(
        QCoreApplication::applicationFilePath(),
        {QString::fromUtf8(what), QString::number(std::chrono::nanoseconds(start).count())});
    if (!child.waitForFinished(2 * kPatienceMs)) return state.SkipWithError("the child hangs");
    for (const QByteArray& line : child.readAllStandardOutput().trimmed().split('\n')) {
      const QList<QByteArray> words = line.split(' ');
      const double milliseconds = words.last().toDouble();
      if (words.first() == timed) state.SetIterationTime(milliseconds / 1e3);
      state.counters[words.first().toStdString() + "_ms"] = milliseconds;
    }
  }
}

void start_to_usable_window(benchmark::State& state) {
  run_child(state, kExample, "painted");
}
BENCHMARK(start_to_usable_window)->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);

void first_plans_of_405b_on_16384(benchmark::State& state) {
  run_child(state, kLargest, "plans");
}
BENCHMARK(first_plans_of_405b_on_16384)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

PlanSetPointer many_plans(std::size_t count) {
  auto set = std::make_shared<PlanSet>();
  set->plans.resize(count);
  set->on_front.assign(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    planner::PlanCandidate& candidate = set->plans[i];
    candidate.plan.tp = std::int64_t{1} << (i % 4);
    candidate.result.step = Seconds(1.0 + 1e-5 * static_cast<double>(i * 7919 % count));
    candidate.result.stages.emplace_back();
  }
  return set;
}

void sort_100000_plans(benchmark::State& state) {
  PlanTableModel model;
  model.show(many_plans(100'000));
  PlanFilter filter;
  filter.setSourceModel(&model);
  Qt::SortOrder order = Qt::AscendingOrder;
  const int step = figure_index(QStringLiteral("step"));
  for ([[maybe_unused]] auto _ : state) {
    filter.sort(step, order);
    order = order == Qt::AscendingOrder ? Qt::DescendingOrder : Qt::AscendingOrder;
  }
}
BENCHMARK(sort_100000_plans)->Unit(benchmark::kMillisecond);

void filter_100000_plans(benchmark::State& state) {
  PlanTableModel model;
  model.show(many_plans(100'000));
  PlanFilter filter;
  filter.setSourceModel(&model);
  for ([[maybe_unused]] auto _ : state) {
    filter.set_terms(QStringLiteral("tp=8"));
    state.PauseTiming();
    filter.set_terms({});
    state.ResumeTiming();
  }
}
BENCHMARK(filter_100000_plans)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwright::gui

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  const QTemporaryDir runtime;
  qputenv("XDG_RUNTIME_DIR", runtime.path().toUtf8());
  for (const char* child : {shardwright::gui::kExample, shardwright::gui::kLargest}) {
    if (argc > 1 && std::string_view(argv[1]) == child)
      return shardwright::gui::be_child(argc, argv);
  }
  const QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
