// The window on the offscreen platform: from the start of a process to a window that can be used,
// which is one whose table of the worked example's plans is painted; from a change of the scenario
// to the first plans in the table; from a key to the painted field or table while such a search
// goes on; the memory and the processor time of a window at rest; and 100,000 plans, sorted and
// filtered in the model alone and in the view with its table and plot painted. Benchmarks of the
// window are child processes of this one, so that loading the program counts.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <QApplication>
#include <QElapsedTimer>
#include <QEventLoop>
#include <QKeyEvent>
#include <QLineEdit>
#include <QProcess>
#include <QTableView>
#include <QTemporaryDir>
#include <QTimer>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <functional>
#include <memory>
#include <thread>
#include <tuple>
#include <vector>

#include "gui/models/freed_memory.hpp"
#include "gui/models/plan_table_model.hpp"
#include "gui/models/selection.hpp"
#include "gui/views/plans_view.hpp"
#include "gui/window/main_window.hpp"

namespace shardwright::gui {
namespace {

constexpr const char* kExample = "--example";
constexpr const char* kLargest = "--405b-on-16384";
constexpr const char* kExperts = "--deepseek-v3-on-2048";
constexpr const char* kKeys = "--keys-during-a-search";
constexpr const char* kAtRest = "--at-rest";
constexpr int kPatienceMs = 120'000;

double milliseconds_since(std::chrono::steady_clock::duration start) {
  const auto elapsed = std::chrono::steady_clock::now().time_since_epoch() - start;
  return std::chrono::duration<double, std::milli>(elapsed).count();
}

// Notes when the table of plans was painted with plans in it, and when the window was painted at
// all.
class PaintWatch : public QObject {
 public:
  explicit PaintWatch(const MainWindow& window)
      : table_(window.findChild<QTableView*>(QStringLiteral("plans_table"))) {
    qApp->installEventFilter(this);
  }
  bool frame = false, plans = false;

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override {
    if (event->type() != QEvent::Paint) return false;
    frame = true;
    plans = plans || (watched == table_->viewport() && table_->model()->rowCount() > 0);
    return false;
  }

 private:
  const QTableView* table_;
};

// Runs events until `done` and says how long after `start` that was.
void print_when(const char* what, std::chrono::steady_clock::duration start,
                const std::function<bool()>& done) {
  QElapsedTimer waited;
  waited.start();
  while (!done() && waited.elapsed() < kPatienceMs)
    QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents);
  std::printf("%s %.3f\n", what, milliseconds_since(start));
}

void show_example(std::chrono::steady_clock::duration start) {
  MainWindow window;
  window.resize(1440, 900);
  const PaintWatch watch(window);
  window.show();
  window.start();
  print_when("frame", start, [&] { return watch.frame; });
  print_when("usable", start, [&] { return watch.plans; });
  print_when("complete", start,
             [&] { return window.selection().set() && window.selection().set()->complete; });
}

ScenarioChoice largest_choice() {
  ScenarioChoice choice;
  choice.model = "llama3.1-405b";
  choice.gpus = 16384;
  choice.global_batch = 2048;
  return choice;
}

// Its experts make many layouts.
ScenarioChoice choice_of_experts() {
  ScenarioChoice choice;
  choice.model = "deepseek-v3";
  choice.cluster = "h800-ib";
  choice.gpus = 2048;
  choice.global_batch = 15360;
  choice.seq_len = 4096;
  return choice;
}

// Presses keys from a thread of its own, as a user does, who waits for nothing, and notes how long
// each took until its widget was painted.
class KeyPresser {
 public:
  explicit KeyPresser(QWidget* widget) : widget_(widget) {}

  // Presses these keys in turn, one in each interval, while `goes_on` holds.
  void press(const std::vector<Qt::Key>& keys, std::chrono::milliseconds interval,
             const std::function<bool()>& goes_on) {
    std::jthread thread([&](const std::stop_token& stop) {
      for (std::size_t i = 0; !stop.stop_requested(); ++i) {
        std::this_thread::sleep_for(interval);
        const auto pressed = std::chrono::steady_clock::now().time_since_epoch();
        QMetaObject::invokeMethod(
            widget_, [this, pressed, key = keys[i % keys.size()]] { take(key, pressed); },
            Qt::QueuedConnection);
      }
    });
    while (goes_on())
      QCoreApplication::processEvents(QEventLoop::WaitForMoreEvents | QEventLoop::AllEvents);
    thread.request_stop();
    thread.join();
    QCoreApplication::processEvents();
  }

  // The time in milliseconds that 95 % of the keys do not exceed.
  double p95() {
    if (taken_.empty()) return 0.0;
    std::sort(taken_.begin(), taken_.end());
    return taken_[taken_.size() * 95 / 100];
  }
  std::size_t keys() const { return taken_.size(); }

 private:
  void take(Qt::Key key, std::chrono::steady_clock::duration pressed) {
    const QString text = key >= Qt::Key_0 && key <= Qt::Key_9
                             ? QString(QChar(static_cast<char16_t>(key)))
                             : QString();
    QKeyEvent down(QEvent::KeyPress, key, Qt::NoModifier, text);
    QKeyEvent up(QEvent::KeyRelease, key, Qt::NoModifier, text);
    QCoreApplication::sendEvent(widget_, &down);
    QCoreApplication::sendEvent(widget_, &up);
    widget_->repaint();
    taken_.push_back(milliseconds_since(pressed));
  }

  QWidget* widget_;
  std::vector<double> taken_;
};

// It covers the first seconds of a search, in which plans come most often.
void press_keys_during_a_search() {
  constexpr int kSearchMs = 5000;
  MainWindow window;
  window.resize(1440, 900);
  window.show();
  const std::tuple<const char*, QWidget*, std::vector<Qt::Key>> targets[] = {
      {"typing",
       window.findChild<QLineEdit*>(QStringLiteral("filter")),
       {Qt::Key_1, Qt::Key_Backspace}},
      {"selection",
       window.findChild<QTableView*>(QStringLiteral("plans_table")),
       {Qt::Key_Down, Qt::Key_Down, Qt::Key_Up}}};
  ScenarioChoice choice = largest_choice();
  for (const auto& [what, widget, keys] : targets) {
    window.document().replace(QStringLiteral("a benchmark"), choice);
    choice.global_batch *= 2;
    QElapsedTimer elapsed;
    elapsed.start();
    KeyPresser presser(widget);
    presser.press(keys, std::chrono::milliseconds(60),
                  [&] { return elapsed.elapsed() < kSearchMs; });
    std::printf("%s %.3f\n%s_keys %zu\n", what, presser.p95(), what, presser.keys());
  }
}

double seconds_of_processor() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// The resident memory of this process in MB.
double resident_megabytes() {
  std::ifstream statm("/proc/self/statm");
  double all = 0.0, resident = 0.0;
  statm >> all >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / 1e6;
}

void rest_on_the_example() {
  constexpr int kSettleMs = 3000, kRestMs = 5000;
  MainWindow window;
  window.resize(1440, 900);
  window.show();
  window.start();
  print_when("complete", std::chrono::steady_clock::now().time_since_epoch(), [&] {
    return window.selection().set() && window.selection().set()->complete && !window.is_busy();
  });
  const auto run_for = [](int milliseconds) {
    QEventLoop loop;
    QTimer::singleShot(milliseconds, &loop, &QEventLoop::quit);
    loop.exec();
  };
  run_for(kSettleMs);
  const double before = seconds_of_processor();
  run_for(kRestMs);
  std::printf("rest %.3f\nmegabytes %.3f\n",
              1e3 * (seconds_of_processor() - before) / (1e-3 * kRestMs), resident_megabytes());
  window.raise_view(QStringLiteral("timeline"));
  for (const ScenarioChoice& choice : {largest_choice(), ScenarioChoice()}) {
    window.document().replace(QStringLiteral("a benchmark"), choice);
    print_when("shown", std::chrono::steady_clock::now().time_since_epoch(), [&] {
      const PlanSetPointer set = window.selection().set();
      return set && set->complete && set->request.gpus == choice.gpus && !window.is_busy();
    });
  }
  run_for(kSettleMs);
  std::printf("megabytes_after_largest %.3f\n", resident_megabytes());
}

// Measured from the edit; the window stands already.
void search(const ScenarioChoice& choice) {
  MainWindow window;
  window.resize(1440, 900);
  const PaintWatch watch(window);
  window.show();
  const auto start = std::chrono::steady_clock::now().time_since_epoch();
  window.document().replace(QStringLiteral("a benchmark"), choice);
  const auto is_of_choice = [&](const PlanSetPointer& set) {
    return set && set->request.gpus == choice.gpus;
  };
  print_when("plans", start, [&] { return is_of_choice(window.selection().set()) && watch.plans; });
}

int be_child(int argc, char** argv) {
  const QString what = QString::fromUtf8(argv[1]);
  const std::chrono::nanoseconds start(argc > 2 ? std::atoll(argv[2]) : 0);
  return_large_blocks_at_once();  // As the program does.
  const QApplication application(argc, argv);
  if (what == QString::fromUtf8(kExample)) {
    show_example(start);
  } else if (what == QString::fromUtf8(kKeys)) {
    press_keys_during_a_search();
  } else if (what == QString::fromUtf8(kAtRest)) {
    rest_on_the_example();
  } else {
    search(what == QString::fromUtf8(kExperts) ? choice_of_experts() : largest_choice());
  }
  return 0;
}

// Times of a child in milliseconds, by their name, as counters, each the longest of all iterations;
// the one called `timed` is the benchmark's.
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
      double& longest = state.counters[words.first().toStdString() + "_ms"].value;
      longest = std::max(longest, milliseconds);
    }
  }
}

void start_to_usable_window(benchmark::State& state) {
  run_child(state, kExample, "usable");
}
BENCHMARK(start_to_usable_window)->UseManualTime()->Iterations(5)->Unit(benchmark::kMillisecond);

void first_plans_of_405b_on_16384(benchmark::State& state) {
  run_child(state, kLargest, "plans");
}
BENCHMARK(first_plans_of_405b_on_16384)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

void first_plans_of_deepseek_v3_on_2048(benchmark::State& state) {
  run_child(state, kExperts, "plans");
}
BENCHMARK(first_plans_of_deepseek_v3_on_2048)
    ->UseManualTime()
    ->Iterations(3)
    ->Unit(benchmark::kMillisecond);

// The time is the 95th percentile of keys that move the selection; that of keys that type is a
// counter.
void keys_during_a_search(benchmark::State& state) {
  run_child(state, kKeys, "selection");
}
BENCHMARK(keys_during_a_search)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

// The time is that of the processor for each second of rest. The memory is that of the example, and
// again after Llama 3.1 405B on 16,384 GPUs was shown in Timeline.
void window_at_rest(benchmark::State& state) {
  run_child(state, kAtRest, "rest");
}
BENCHMARK(window_at_rest)->UseManualTime()->Iterations(1)->Unit(benchmark::kMillisecond);

PlanSetPointer many_plans(std::size_t count) {
  auto set = std::make_shared<PlanSet>();
  set->plans.resize(count);
  set->on_front.assign(count, false);
  for (std::size_t i = 0; i < count; ++i) {
    planner::PlanCandidate& candidate = set->plans[i];
    candidate.plan.tp = std::int64_t{1} << (i % 4);
    candidate.plan.zero_stage = static_cast<int>(i / 4 % 4);
    candidate.result.step = Seconds(1.0 + 1e-5 * static_cast<double>(i * 7919 % count));
    candidate.result.stages.emplace_back();
    candidate.result.stages.front().memory.peak =
        gigabytes(20.0 + 1e-3 * static_cast<double>(i % 60'000));
  }
  return set;
}

void sort_100000_plans(benchmark::State& state) {
  PlanTableModel model;
  model.show(many_plans(100'000));
  Qt::SortOrder order = Qt::AscendingOrder;
  const int step = figure_index(QStringLiteral("step"));
  for ([[maybe_unused]] auto _ : state) {
    model.sort(step, order);
    order = order == Qt::AscendingOrder ? Qt::DescendingOrder : Qt::AscendingOrder;
  }
}
BENCHMARK(sort_100000_plans)->Unit(benchmark::kMillisecond);

void filter_100000_plans(benchmark::State& state) {
  PlanTableModel model;
  model.show(many_plans(100'000));
  model.set_terms(QStringLiteral("a first word"));  // the texts are kept from now on, see below
  for (const char* terms : {"tp=8", "zero 3"}) {
    model.set_terms(QString::fromUtf8(terms));
    if (model.rowCount() != 25'000) return state.SkipWithError("the filter keeps other plans");
  }
  bool word = false;
  for ([[maybe_unused]] auto _ : state) {
    word = !word;
    model.set_terms(word ? QStringLiteral("zero 3") : QStringLiteral("tp=8"));
    benchmark::DoNotOptimize(model.rowCount());
  }
}
BENCHMARK(filter_100000_plans)->Unit(benchmark::kMillisecond);

// The first word that somebody types also writes the texts that it is looked for in.
void first_filter_of_100000_plans(benchmark::State& state) {
  const PlanSetPointer plans = many_plans(100'000);
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    PlanTableModel model;
    model.show(plans);
    state.ResumeTiming();
    model.set_terms(QStringLiteral("zero 3"));
    benchmark::DoNotOptimize(model.rowCount());
  }
}
BENCHMARK(first_filter_of_100000_plans)->Unit(benchmark::kMillisecond);

// The view with its table and its plot, up to the end of the painting.
struct ShownPlans {
  Selection selection;
  PlansView view{&selection};

  ShownPlans() {
    view.resize(1120, 430);
    view.show();
    selection.show(many_plans(100'000));
    QCoreApplication::processEvents();
  }
};

void sort_100000_plans_in_the_view(benchmark::State& state) {
  ShownPlans shown;
  auto* table = shown.view.findChild<QTableView*>(QStringLiteral("plans_table"));
  Qt::SortOrder order = Qt::AscendingOrder;
  for ([[maybe_unused]] auto _ : state) {
    table->sortByColumn(figure_index(QStringLiteral("step")), order);
    order = order == Qt::AscendingOrder ? Qt::DescendingOrder : Qt::AscendingOrder;
    QCoreApplication::processEvents();
  }
}
BENCHMARK(sort_100000_plans_in_the_view)->Unit(benchmark::kMillisecond);

void filter_100000_plans_in_the_view(benchmark::State& state) {
  ShownPlans shown;
  auto* line = shown.view.findChild<QLineEdit*>(QStringLiteral("filter"));
  bool word = false;
  for ([[maybe_unused]] auto _ : state) {
    word = !word;
    line->setText(word ? QStringLiteral("zero 3") : QStringLiteral("tp=8"));
    QCoreApplication::processEvents();
  }
}
BENCHMARK(filter_100000_plans_in_the_view)->Unit(benchmark::kMillisecond);

void first_filter_of_100000_plans_in_the_view(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state) {
    state.PauseTiming();
    auto shown = std::make_unique<ShownPlans>();
    auto* line = shown->view.findChild<QLineEdit*>(QStringLiteral("filter"));
    state.ResumeTiming();
    line->setText(QStringLiteral("zero 3"));
    QCoreApplication::processEvents();
    state.PauseTiming();
    shown.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(first_filter_of_100000_plans_in_the_view)->Iterations(5)->Unit(benchmark::kMillisecond);

// All that Qt has to say but what the offscreen platform says of itself at each window.
void write_message(QtMsgType, const QMessageLogContext&, const QString& message) {
  if (message.startsWith(QStringLiteral("This plugin does not support"))) return;
  std::fprintf(stderr, "%s\n", qPrintable(message));
}

}  // namespace
}  // namespace shardwright::gui

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  const QTemporaryDir runtime;
  qputenv("XDG_RUNTIME_DIR", runtime.path().toUtf8());
  qInstallMessageHandler(shardwright::gui::write_message);
  for (const char* child :
       {shardwright::gui::kExample, shardwright::gui::kLargest, shardwright::gui::kExperts,
        shardwright::gui::kKeys, shardwright::gui::kAtRest}) {
    if (argc > 1 && std::string_view(argv[1]) == child)
      return shardwright::gui::be_child(argc, argv);
  }
  const QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
