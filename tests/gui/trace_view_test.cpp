// Traces of other programs in the window, beside the plan that may be theirs.
#include <QLabel>
#include <QScrollBar>
#include <QTableWidget>
#include <set>

#include "calibration/traces/trace_timeline.hpp"
#include "gui/timeline/span_query.hpp"
#include "gui/timeline/span_text.hpp"
#include "gui/timeline/timeline_view.hpp"
#include "gui/timeline/trace_panel.hpp"
#include "tests/gui/painted_view_test.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

QString trace_file(const char* name) {
  return to_qstring(SHARDWRIGHT_SOURCE_DIR "/tests/calibration/traces/files/") + to_qstring(name);
}

// The plan of the nanoGPT run, which was traced on eight GPUs.
PlanSet nanogpt_plan(std::int64_t gpus) {
  Scenario scenario{load_model("gpt2"), load_cluster("dgx-h100"), load_stack("megatron-core"), {}};
  scenario.plan.dp = gpus;
  scenario.plan.global_batch = 16 * gpus;
  scenario.plan.micro_batch = 16;
  scenario.plan.seq_len = 1024;
  return plan_set_of(scenario, u"a test"_s);
}

class TraceViewTest : public WindowTest {
 protected:
  TimelineView& timeline() { return *window_.findChild<TimelineView*>(); }
  const TimelineTracks& tracks() { return timeline().canvas().tracks(); }
  TracePanel& panel() { return find<TracePanel>("trace_panel"); }
  QString note() { return find<QLabel>("trace_note").text(); }
  void choose(PlanSet set) {
    window_.selection().show(std::make_shared<const PlanSet>(std::move(set)));
    ASSERT_TRUE(is_idle());
  }
  QStringList column(const char* table, int column) {
    const auto& widget = find<QTableWidget>(table);
    QStringList texts;
    for (int row = 0; row < widget.rowCount(); ++row)
      texts.append(widget.item(row, column)->text());
    return texts;
  }
};

TEST_F(TraceViewTest, ADroppedTraceShowsItsKernelsAndWhereTheirTimeGoes) {
  drop({trace_file("mi250-two-steps.json.gz")});
  ASSERT_EQ(tracks().timelines().size(), 1U);
  const TracedRun run = read_trace(trace_file("mi250-two-steps.json.gz"));
  EXPECT_EQ(tracks().all_spans(), run.trace->activities.size());
  EXPECT_TRUE(panel().isVisible());
  EXPECT_TRUE(column("trace_categories", 0).contains(u"matrix products and convolutions"_s));
  // A filter by name and the description of a kernel.
  const Track* stream = nullptr;
  for (const Track& track : tracks().tracks())
    if (track.kind == TrackKind::Spans) stream = &track;
  ASSERT_NE(stream, nullptr);
  EXPECT_TRUE(stream->label.startsWith(u"stream "_s));
  const QString tip = span_tool_tip(tracks(), tracks().ref(*stream, 0));
  EXPECT_THAT(tip, Says("operator"));
  EXPECT_THAT(tip, testing::Not(Says("phase")));
  QTest::mouseClick(&find<QToolButton>("timeline_back"), Qt::LeftButton);
  EXPECT_FALSE(panel().isVisible());
}

// Its kernels and its communication take turns on one stream, which is not one of computation
// alone.
TEST_F(TraceViewTest, AnyTraceLiesAboveTheAxis) {
  drop({trace_file("h100x2-video-dit-training.sqlite.gz")});
  ASSERT_EQ(tracks().timelines().size(), 1U);
  QCoreApplication::processEvents();
  QWidget& canvas = *timeline().canvas().viewport();
  const double names = timeline().canvas().scene().widest_name;
  const QRectF map = TimelineGeometry(canvas.size(), {}, names).minimap;
  const QImage picture = canvas.grab().toImage();
  std::set<QRgb> colours;
  for (int x = 0; x < static_cast<int>(map.width()); ++x)
    colours.insert(picture.pixel((map.topLeft() + QPointF(x, 0.5 * map.height())).toPoint()));
  EXPECT_GT(colours.size(), 3U);
}

// Beside large letters the panel gives way, so that neither it nor the timeline is cut.
TEST_F(TraceViewTest, ItsPanelFitsANarrowViewWithLargeLetters) {
  drop({trace_file("mi250-two-steps.json.gz")});
  QFont larger = panel().font();
  larger.setPixelSize(20);
  panel().setFont(larger);
  for (const int width : {1280, 2560}) {
    window_.resize(width, 720);
    QCoreApplication::processEvents();
    const QWidget& view = timeline();
    const QRect shown = panel().rect().translated(panel().mapTo(&view, QPoint()));
    EXPECT_TRUE(view.rect().contains(shown)) << width;
    EXPECT_EQ(panel().width() == panel().maximumWidth(), width == 2560) << panel().width();
    // What a row is about takes several lines where one is too short.
    const auto& table = find<QTableWidget>("trace_categories");
    for (int row = 0; row < table.rowCount(); ++row) {
      const QRect room(0, 0, table.columnWidth(0), table.rowHeight(row));
      const QRect text =
          table.fontMetrics().boundingRect(room, Qt::TextWordWrap, table.item(row, 0)->text());
      EXPECT_TRUE(room.contains(text)) << qPrintable(table.item(row, 0)->text());
    }
  }
}

TEST_F(TraceViewTest, NamesOfItsRowsAreWholeBesideLargeLetters) {
  QFont larger = window_.font();
  larger.setPixelSize(20);
  window_.setFont(larger);
  window_.resize(1280, 720);
  drop({trace_file("mi250-two-steps.json.gz")});
  QCoreApplication::processEvents();
  const TimelineCanvas& canvas = timeline().canvas();
  ASSERT_GT(canvas.unit(), 1.4);
  const TimelineScene& scene = canvas.scene();
  const QSizeF room = QSizeF(canvas.viewport()->size()) / canvas.unit();
  const TimelineGeometry places(room, scene.legend, scene.widest_name);
  for (const Track& track : tracks().tracks()) {
    const double width = QFontMetricsF(name_font()).horizontalAdvance(track.label);
    EXPECT_GT(places.names.width(), width + 20.0) << qPrintable(track.label);
  }
}

// The times of a trace of several GPUs are sums.
TEST_F(TraceViewTest, ItsTimesSayOverHowManyGpusTheyAreSummed) {
  TracedRun run = read_trace(trace_file("nanogpt/rank0.json.gz"));
  EXPECT_EQ(category_table({run.report}).header.front(), u"Time on the GPU"_s);
  run.report.devices = 8;
  EXPECT_EQ(category_table({run.report}).header.front(), u"Time, sum over 8 GPUs"_s);
}

// Kernels have shares of the time of all kernels, what lies between them shares of the whole time.
TEST_F(TraceViewTest, ItsSharesSayWhatTheyAreOf) {
  const TextTable table = category_table({read_trace(trace_file("nanogpt/rank0.json.gz")).report});
  EXPECT_EQ(table.header.back(), u"share\nof kernels"_s);
  const auto whole = std::ranges::find(table.rows, u"from the first kernel to the last"_s,
                                       [](const QStringList& row) { return row.front(); });
  ASSERT_NE(whole, table.rows.end());
  EXPECT_EQ(whole->back(), u"share of this"_s);
  ASSERT_LT(whole + 1, table.rows.end());
  for (auto row = table.rows.begin(); row != table.rows.end(); ++row)
    EXPECT_EQ(row->back().endsWith(u'%'), row != whole) << qPrintable(row->front());
}

// The table is as high as its rows also where the letters grow later.
TEST_F(TraceViewTest, ItsTablesFitLettersThatGrow) {
  drop({trace_file("mi250-two-steps.json.gz")});
  auto& table = find<QTableWidget>("trace_categories");
  const int before = table.rowHeight(0);
  QFont larger = panel().font();
  larger.setPixelSize(18);
  panel().setFont(larger);
  QTest::qWait(1);
  EXPECT_GT(table.rowHeight(0), before);
  const QFontMetrics metrics(table.font());
  for (int row = 0; row < table.rowCount(); ++row) {
    for (int column = 0; column < table.columnCount(); ++column)
      EXPECT_GE(table.columnWidth(column),
                metrics.horizontalAdvance(table.item(row, column)->text()));
  }
  EXPECT_GE(table.height(), table.rowViewportPosition(table.rowCount() - 1) +
                                table.rowHeight(table.rowCount() - 1));
}

TEST_F(TraceViewTest, TheTracedPlanStandsBesideTheTraceWithTheLargestDifferences) {
  choose(nanogpt_plan(8));
  drop({trace_file("nanogpt/rank0.json.gz")});
  EXPECT_EQ(tracks().timelines().size(), 2U);
  EXPECT_THAT(note(), Says("Beside the chosen plan"));
  EXPECT_THAT(note(), Says("a higher clock"));  // Kernels leave gaps.
  EXPECT_EQ(column("trace_differences", 0).size(), 10);
  // The part in view is the first compared step, and Backspace shows the whole trace.
  const AxisWindow& window = timeline().canvas().scene().window;
  const auto& timelines = tracks().timelines();
  const auto side = std::ranges::find(timelines, TimelineOrigin::Predicted,
                                      [](const auto& each) { return each->origin; });
  ASSERT_NE(side, timelines.end());
  const std::vector<Span>& predicted = (*side)->spans;
  EXPECT_LT(window.from, predicted.front().start.value());
  EXPECT_GT(window.to, predicted.back().end().value());
  EXPECT_LT(window.length(), 0.5 * window.limit);
  QTest::keyClick(&timeline().canvas(), Qt::Key_Backspace);
  EXPECT_TRUE(window.shows_all());
  // Another plan is compared, too; one for other GPUs is named.
  choose(nanogpt_plan(16));
  EXPECT_EQ(tracks().timelines().size(), 1U);
  EXPECT_THAT(note(), Says("for 16 GPUs"));
  EXPECT_FALSE(find<QTableWidget>("trace_differences").isVisible());
}

TEST_F(TraceViewTest, TwoTracesStandBesideEachOtherWithTheirLargestDifferences) {
  drop({trace_file("nanogpt/before.json.gz"), trace_file("nanogpt/after.json.gz")});
  ASSERT_TRUE(is_idle());
  EXPECT_EQ(tracks().timelines().size(), 2U);
  EXPECT_TRUE(tracks().compares_same_origin());
  EXPECT_EQ(find<QLabel>("trace_title").text(), u"before.json.gz beside after.json.gz"_s);
  EXPECT_THAT(find<QLabel>("trace_summary").text(), Says("second: rank 0"));
  EXPECT_THAT(find<QLabel>("trace_summary").text(), Says("\u00a0ms"));
  EXPECT_THAT(find<QLabel>("timeline_source").text(), Says("The traces of before.json.gz and"));
  EXPECT_TRUE(column("trace_categories", 3).front().startsWith(u'−'));
  EXPECT_EQ(column("trace_step", 0).size(), 4);
  EXPECT_TRUE(column("trace_step", 3).front().startsWith(u'−'));
  EXPECT_EQ(column("trace_differences", 0).size(), 10);
  // Operators with the shapes that they multiply, and the cause.
  EXPECT_TRUE(column("trace_differences", 0).contains(u"aten::mm\n32768×768, 768×3072: faster"_s))
      << column("trace_differences", 0).join(u'|').toStdString();
  // They are not those of a plan.
  choose(nanogpt_plan(8));
  EXPECT_EQ(tracks().timelines().size(), 2U);
  EXPECT_EQ(note(), QString());
  drop({trace_file("nanogpt/rank0.json.gz")});
  EXPECT_THAT(note(), Says("Beside the chosen plan"));
}

// Where their recordings begin does not count.
TEST(TracePair, TheFirstComparedStepsBeginTogether) {
  const TracedRun whole = read_trace(trace_file("nanogpt/rank0.json.gz"));
  auto shortened = std::make_shared<calibration::Trace>(*whole.trace);
  shortened->activities.erase(shortened->activities.begin(), shortened->activities.begin() + 40);
  TracedRun later = whole;
  later.trace = shortened;
  later.timeline = std::make_shared<const Timeline>(calibration::timeline_of(*shortened));
  for (const bool turned : {false, true}) {
    const TracePair pair = turned ? compare_traces(later, whole) : compare_traces(whole, later);
    EXPECT_EQ(pair.change.first.step, pair.change.second.step);
    EXPECT_NEAR((pair.first->spans.back().start - pair.second->spans.back().start).value(), 0.0,
                1e-9);
    EXPECT_GE(std::min(pair.first->spans.front().start, pair.second->spans.front().start),
              Seconds());
  }
}

TEST_F(TraceViewTest, AFileWithoutAGpuIsExplained) {
  drop({trace_file("no-distributed-info-no-gpu.json.gz")});
  EXPECT_THAT(said(), Says("nothing runs on a device"));
  EXPECT_FALSE(panel().isVisible());
}

TEST(TraceTimeline, WhatIsOfNoKnownKindMatchesNoKind) {
  calibration::Trace trace;
  for (const char* name : {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgs)",
                           "ncclDevKernel_Novel(ncclDevKernelArgs)"}) {
    calibration::DeviceActivity kernel;
    kernel.name = trace.names.index_of(name);
    kernel.category = KernelCategory::Collective;
    kernel.start = static_cast<std::int64_t>(trace.activities.size()) * 1000;
    kernel.duration = 500;
    trace.activities.push_back(kernel);
  }
  const Timeline timeline = calibration::timeline_of(trace);
  ASSERT_EQ(timeline.spans.size(), 2U);
  const SpanQuery reductions = SpanQuery::parse(u"kind=all_reduce"_s);
  EXPECT_TRUE(reductions.matches(timeline.spans[0]));
  EXPECT_FALSE(reductions.matches(timeline.spans[1]));
  EXPECT_TRUE(SpanQuery::parse(u"-kind=all_reduce"_s).matches(timeline.spans[1]));
}

TEST(TraceTimeline, HasTheTimesOfTheTrace) {
  const TracedRun run = read_trace(trace_file("nanogpt/rank0.json.gz"));
  Seconds all;
  for (const Seconds each : run.report.by_category) all += each;
  EnumArray<KernelCategory, Seconds> sums{};
  for (const Span& span : run.timeline->spans)
    sums[run.timeline->kernels[static_cast<std::size_t>(span.kernel)].category] += span.duration;
  for (const KernelCategory category : enumerators<KernelCategory>())
    EXPECT_NEAR((sums[category] - run.report.by_category[category]) / all, 0.0, 1e-9);
  const Timeline again = *run.timeline;
  EXPECT_EQ(again.ranks.front().label, "rank 0");
}

// A trace is compared with the chosen plan, so that it stays while the fields are set to the plan
// that was traced.
TEST_F(TraceViewTest, StaysWhileTheScenarioIsSetToItsPlan) {
  window_.document().reset(small_choice());
  window_.start();
  ASSERT_TRUE(has_plans());
  drop({trace_file("nanogpt/rank0.json.gz")});
  ScenarioChoice choice = small_choice();
  choice.model = "gpt2";
  choice.global_batch = 128;
  choice.seq_len = 1024;
  choice.constraints = "dp=8, mb=16, zero=0";
  window_.document().reset(choice);
  ASSERT_TRUE(
      shows([&](const PlanSet& set) { return set.complete && set.request.model.name == "gpt2"; }));
  ASSERT_TRUE(is_idle());
  EXPECT_TRUE(panel().isVisible());
  EXPECT_THAT(note(), Says("Beside the chosen plan"));
  EXPECT_EQ(tracks().timelines().size(), 2U);
}

TEST_F(TraceViewTest, AReportNamesTheTraceAndHasItsTables) {
  choose(nanogpt_plan(8));
  drop({trace_file("nanogpt/rank0.json.gz")});
  const std::vector<ReportPart> parts = timeline().report();
  ASSERT_FALSE(parts.empty());
  EXPECT_THAT(parts.front().text, Says("The trace of rank0.json.gz (measured) beside"));
  QStringList first_cells;
  for (const ReportPart& part : parts)
    for (const QStringList& row : part.table.rows) first_cells.append(row.front());
  for (const char* table : {"trace_categories", "trace_step", "trace_differences"})
    for (const QString& cell : column(table, 0))
      EXPECT_TRUE(first_cells.contains(cell)) << qPrintable(cell);
  QTest::mouseClick(&find<QToolButton>("timeline_back"), Qt::LeftButton);
  ASSERT_TRUE(is_idle());
  ASSERT_EQ(timeline().report().size(), 1U);
  EXPECT_EQ(timeline().report().front().text, QString());
}

}  // namespace
}  // namespace shardwright::gui
