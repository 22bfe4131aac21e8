// A timeline of a million spans, on the offscreen platform: from its file and from the data to the
// first picture, and one frame of panning and of zooming. And a trace of PyTorch's profiler with
// 200,000 kernels and what launched them (320 MB): from the file to the first picture, and from the
// data.
#include <benchmark/benchmark.h>

#include <QApplication>
#include <QImage>
#include <QPainter>
#include <QTemporaryDir>
#include <fstream>
#include <memory>

#include "gui/models/opened_file.hpp"
#include "gui/models/trace_comparison.hpp"
#include "gui/timeline/causal_order.hpp"
#include "gui/timeline/timeline_canvas.hpp"
#include "tests/calibration/traces/written_trace.hpp"

namespace shardwright::gui {
namespace {

constexpr std::int32_t kRanks = 16;
constexpr std::int32_t kSpansPerStream = 12'500;
constexpr int kWidth = 1600, kHeight = 900;

// 16 stages of 5 streams, spans from 20 to 120 µs, a message in eight.
std::shared_ptr<const Timeline> million_spans() {
  auto timeline = std::make_shared<Timeline>();
  const Stream streams[] = {Stream::Compute, Stream::TensorParallel, Stream::GradientReduce,
                            Stream::SendActivation, Stream::ReceiveGradient};
  for (std::int32_t rank = 0; rank < kRanks; ++rank) {
    timeline->ranks.push_back({rank, "stage " + std::to_string(rank)});
    for (const Stream stream : streams) {
      double time = 1e-6 * rank;
      for (std::int32_t i = 0; i < kSpansPerStream; ++i) {
        Span span;
        span.rank = rank;
        span.stream = stream;
        span.name = "attention.qkv";
        span.start = Seconds(time);
        span.duration = Seconds(20e-6 + 1e-6 * (i * 37 % 100));
        span.phase = i / 40 % 2 == 0 ? Phase::Forward : Phase::BackwardInput;
        span.layer = i % 80;
        span.microbatch = i / 80;
        if (stream == Stream::TensorParallel) span.group = Group::Tensor;
        if (stream == Stream::GradientReduce) span.group = Group::Data;
        time = span.end().value() + 1e-6 * (i % 5);
        timeline->spans.push_back(std::move(span));
      }
    }
    for (std::int32_t i = 0; i < kSpansPerStream; ++i)
      timeline->memory.push_back({rank, Seconds(90e-6 * i), gigabytes(40.0 + i % 7)});
  }
  return timeline;
}

const std::shared_ptr<const Timeline>& timeline() {
  static const auto kTimeline = million_spans();
  return kTimeline;
}

void paint(QWidget& widget, QImage& image) {
  QPainter painter(&image);
  widget.render(&painter);
}

void first_paint(benchmark::State& state) {
  timeline();
  QImage image(kWidth, kHeight, QImage::Format_RGB32);
  for ([[maybe_unused]] auto _ : state) {
    auto canvas = std::make_unique<TimelineCanvas>();
    canvas->resize(kWidth, kHeight);
    canvas->set_timelines({timeline()}, nullptr, RankLimits{.stages = {{gigabytes(80.0)}}}, {});
    paint(*canvas, image);
    state.PauseTiming();
    canvas.reset();  // It waits for the critical path.
    state.ResumeTiming();
  }
  state.counters["spans"] = static_cast<double>(timeline()->spans.size());
}
BENCHMARK(first_paint)->Unit(benchmark::kMillisecond);

// The share of the step that is shown, in thousandths.
void pan_frame(benchmark::State& state) {
  TimelineCanvas canvas;
  canvas.resize(kWidth, kHeight);
  canvas.set_timelines({timeline()}, nullptr, RankLimits{.stages = {{gigabytes(80.0)}}}, {});
  QImage image(kWidth, kHeight, QImage::Format_RGB32);
  const double end = canvas.tracks().end();
  const double length = end * static_cast<double>(state.range(0)) / 1000.0;
  double from = 0.0;
  for ([[maybe_unused]] auto _ : state) {
    from = from + 1.01 * length < end ? from + 0.01 * length : 0.0;
    canvas.show_window(from, from + length);
    paint(canvas, image);
  }
}
BENCHMARK(pan_frame)->Arg(900)->Arg(500)->Arg(100)->Arg(10)->Arg(1)->Unit(benchmark::kMillisecond);

void find_critical_path(benchmark::State& state) {
  for ([[maybe_unused]] auto _ : state)
    benchmark::DoNotOptimize(CausalOrder(timeline()).critical_path());
}
BENCHMARK(find_critical_path)->Unit(benchmark::kMillisecond);

void search_names(benchmark::State& state) {
  TimelineTracks tracks;
  tracks.set_timelines({timeline()});
  const SpanQuery query = SpanQuery::parse(QStringLiteral("qkv layer=3"));
  for ([[maybe_unused]] auto _ : state) benchmark::DoNotOptimize(tracks.find(query));
}
BENCHMARK(search_names)->Unit(benchmark::kMillisecond);

void hover_frame(benchmark::State& state) {
  TimelineCanvas canvas;
  canvas.resize(kWidth, kHeight);
  canvas.set_timelines({timeline()}, nullptr, RankLimits{.stages = {{gigabytes(80.0)}}}, {});
  QImage image(kWidth, kHeight, QImage::Format_RGB32);
  std::uint32_t index = 0;
  for ([[maybe_unused]] auto _ : state) {
    canvas.select_op({0, index++ % 10'000});
    paint(canvas, image);
  }
}
BENCHMARK(hover_frame)->Unit(benchmark::kMillisecond);

// The same spans as a file of some 250 MB.
const QString& written_timeline() {
  static const QTemporaryDir kFolder;
  static const QString kPath = [] {
    QString path = kFolder.filePath(QStringLiteral("step.json"));
    std::ofstream stream(path.toStdString());
    write_timeline(*timeline(), stream);
    return path;
  }();
  return kPath;
}

void open_timeline(benchmark::State& state) {
  written_timeline();
  QImage image(kWidth, kHeight, QImage::Format_RGB32);
  for ([[maybe_unused]] auto _ : state) {
    const OpenedFile file = open_file(written_timeline());
    auto canvas = std::make_unique<TimelineCanvas>();
    canvas->resize(kWidth, kHeight);
    canvas->set_timelines({std::get<std::shared_ptr<const Timeline>>(file.content)}, nullptr, {},
                          {});
    paint(*canvas, image);
    state.PauseTiming();
    canvas.reset();
    state.ResumeTiming();
  }
}
BENCHMARK(open_timeline)->Unit(benchmark::kMillisecond)->UseRealTime();

constexpr std::int64_t kTracedKernels = 200'000;

const QString& traced_file() {
  static const calibration::WrittenTrace kFile(kTracedKernels);
  static const QString kPath = QString::fromStdString(kFile.path().string());
  return kPath;
}

void show(const TracedRun& run) {
  TimelineCanvas canvas;
  canvas.resize(kWidth, kHeight);
  canvas.set_timelines({run.timeline}, nullptr, RankLimits{}, {});
  QImage image(kWidth, kHeight, QImage::Format_RGB32);
  paint(canvas, image);
}

void open_trace(benchmark::State& state) {
  traced_file();
  for ([[maybe_unused]] auto _ : state) show(read_trace(traced_file()));
}
BENCHMARK(open_trace)->Unit(benchmark::kMillisecond)->UseRealTime();

void first_paint_of_trace(benchmark::State& state) {
  const TracedRun run = read_trace(traced_file());
  for ([[maybe_unused]] auto _ : state) show(run);
}
BENCHMARK(first_paint_of_trace)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace shardwright::gui

int main(int argc, char** argv) {
  qputenv("QT_QPA_PLATFORM", "offscreen");
  const QApplication application(argc, argv);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
