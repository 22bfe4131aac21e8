#include <QClipboard>
#include <QComboBox>
#include <QContextMenuEvent>
#include <QDockWidget>
#include <QFile>
#include <QGuiApplication>
#include <QImage>
#include <QLineEdit>
#include <QMenu>
#include <QScrollArea>
#include <QScrollBar>
#include <QTableView>

#include "gui/timeline/timeline_view.hpp"
#include "gui/views/picture_export.hpp"
#include "gui/views/step_charts.hpp"
#include "gui/views/sweep_view.hpp"
#include "gui/window/report.hpp"
#include "tests/gui/clipped_parts.hpp"
#include "tests/gui/file_dialog.hpp"
#include "tests/gui/window_fixture.hpp"

namespace shardwright::gui {
namespace {

using testing::Not;

class WindowExportTest : public WindowTest {
 protected:
  std::vector<ClippedPart> svg_of(const char* view) {
    const QString file = folder_.filePath(u"view.svg"_s);
    export_picture(*window_.view(to_qstring(view)), file);
    QFile svg(file);
    EXPECT_TRUE(svg.open(QIODevice::ReadOnly));
    return clipped_parts(svg.readAll());
  }

  // Returns the place in the coordinates of the view that the widget lies in.
  QRectF place_of(const QWidget& widget, const char* view) {
    return QRectF(QPointF(widget.mapTo(window_.view(to_qstring(view)), QPoint())),
                  QSizeF(widget.size()));
  }
};

TEST_F(WindowExportTest, EveryViewBecomesAPicture) {
  show_plans();
  for (const QDockWidget* dock : window_.docks()) {
    window_.raise_view(dock->objectName());
    for (const char* suffix : {"png", "svg", "pdf"}) {
      const QString file = folder_.filePath(dock->objectName() + u'.' + to_qstring(suffix));
      export_picture(*dock->widget(), file);
      EXPECT_GT(QFileInfo(file).size(), 1000) << qPrintable(file);
    }
  }
  EXPECT_THROW(export_picture(window_, u"/no/such/folder/a.png"_s), RuntimeFailure);
  EXPECT_THROW(export_picture(window_, u"a.bmp"_s), RuntimeFailure);
}

TEST_F(WindowExportTest, AnExportGetsTheSuffixThatItsNameLacks) {
  show_plans();
  window_.raise_view(u"plans"_s);
  const QString name = folder_.filePath(u"of-mine"_s);
  for (const char* suffix : {"png", "svg", "pdf", "csv"}) {
    const QString file = name + u'.' + to_qstring(suffix);
    answer_next_dialog(name);
    trigger(qPrintable(u"file.export_"_s + to_qstring(suffix)));
    ASSERT_TRUE(is_idle());
    EXPECT_GT(QFileInfo(file).size(), 100) << suffix;
    EXPECT_THAT(said(), Says(u"Exported "_s + file));
  }
  answer_next_dialog(name);
  trigger("file.save_plan");
  EXPECT_TRUE(QFileInfo(name + u".json"_s).isFile());
}

// The fixture shows a timeline whose table takes seconds to write.
class LargeExportTest : public WindowExportTest {
 protected:
  static constexpr int kSpans = 400'000;

  void SetUp() override {
    WindowExportTest::SetUp();
    auto timeline = std::make_shared<Timeline>();
    timeline->ranks = {{0, "stage 0"}};
    timeline->spans.resize(kSpans);
    for (int i = 0; i < kSpans; ++i) {
      Span& span = timeline->spans[static_cast<std::size_t>(i)];
      span.name = "mlp.up";
      span.start = Seconds(i * 1e-3);
      span.duration = Seconds(1e-3);
    }
    window_.raise_view(u"timeline"_s);
    EXPECT_TRUE(is_idle());
    window_.findChild<TimelineView*>()->set_timelines({timeline});
    EXPECT_TRUE(is_idle());  // The critical path is found.
  }

  const QString file_ = folder_.filePath(u"large.csv"_s);
};

// The dialog does not wait for the table, and the window does not wait for the file.
TEST_F(LargeExportTest, IsWrittenInTheBackground) {
  answer_next_dialog(file_);
  trigger("file.export_csv");
  EXPECT_TRUE(window_.is_busy());
  EXPECT_FALSE(QFileInfo::exists(file_));
  trigger("file.export_csv");  // No dialog opens, because one file is written at a time.
  EXPECT_THAT(said(), Says("is still being written"));
  ASSERT_TRUE(is_idle());
  QFile csv(file_);
  ASSERT_TRUE(csv.open(QIODevice::ReadOnly));
  EXPECT_EQ(csv.readAll().count('\n'), kSpans + 1);
  EXPECT_THAT(said(), Says(u"Exported "_s + file_));
  EXPECT_THAT(said(), Not(Says("being written")));
}

TEST_F(LargeExportTest, IsStoppedByItsMessage) {
  answer_next_dialog(file_);
  trigger("file.export_csv");
  const QString writes = u"Writing 400,000 rows to "_s + file_;
  ASSERT_TRUE(wait_for([&] { return said().contains(writes); }));
  click(writes, "offer");
  EXPECT_FALSE(window_.is_busy());
  EXPECT_THAT(said(), Says("was stopped"));
  QTest::qWait(500);
  EXPECT_FALSE(QFileInfo::exists(file_));
}

TEST_F(LargeExportTest, IsRefusedByTheClipboard) {
  QGuiApplication::clipboard()->setText(u"before"_s);
  trigger("edit.copy_data");
  EXPECT_THAT(said(), Says("400,000 rows are too many for the clipboard"));
  EXPECT_EQ(QGuiApplication::clipboard()->text(), u"before"_s);
  answer_next_dialog(file_);
  click(u"too many"_s, "offer");
  ASSERT_TRUE(is_idle());
  EXPECT_TRUE(QFileInfo::exists(file_));
}

// The picture shows the parts that are scrolled out of sight too.
TEST_F(WindowExportTest, APictureHasAllOfAView) {
  show_plans();
  window_.resize(640, 480);
  QWidget& scenario = *window_.view(u"scenario"_s);
  // A picture has no scroll bar, whose width the lines of text gain.
  auto* area = scenario.findChild<QScrollArea*>();
  area->setVerticalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
  QCoreApplication::processEvents();
  const QSize before = scenario.size();
  const int hidden = area->widget()->height() - area->viewport()->height();
  ASSERT_GT(hidden, 100);
  EXPECT_EQ(picture_of(scenario, 1.0).height(), before.height() + hidden);
  EXPECT_EQ(scenario.size(), before);
}

TEST_F(WindowExportTest, APictureOfAZoomedTimelineHasNoScrollBars) {
  show_plans();
  window_.raise_view(u"timeline"_s);
  ASSERT_TRUE(is_idle());
  auto& view = *window_.findChild<TimelineView*>();
  TimelineCanvas& canvas = view.canvas();
  for (int i = 0; i < 4; ++i) QTest::keyClick(&canvas, Qt::Key_W);
  QCoreApplication::processEvents();
  ASSERT_TRUE(canvas.horizontalScrollBar()->isVisible());
  const auto bottom_left = [&](const QImage& picture, const QWidget& of) {
    return picture.pixelColor(canvas.mapTo(&of, QPoint(0, 0)).x() + 2, picture.height() - 2);
  };
  const QColor bar = bottom_left(view.grab().toImage(), view);
  EXPECT_NE(bottom_left(picture_of(view, 1.0), view), bar);
  EXPECT_NE(bottom_left(picture_of(canvas, 1.0), canvas), bar);
  EXPECT_TRUE(canvas.horizontalScrollBar()->isVisible());
}

// The line is longer than its field and scrolled to its end.
TEST_F(WindowExportTest, AScrolledLineEndsAtItsFieldInSvg) {
  window_.resize(1400, 1300);
  auto& field = find<QLineEdit>("constraints");
  field.setFocus();
  QTest::keyClicks(&field, u"not zero=3; not schedule=1f1b; not tp=1; not pp=3; not cp=16"_s);
  QCoreApplication::processEvents();
  ASSERT_FALSE(
      window_.view(u"scenario"_s)->findChild<QScrollArea*>()->verticalScrollBar()->isVisible());
  int found = 0;
  for (const ClippedPart& part : svg_of("scenario")) {
    if (!part.content.contains(u"not schedule=1f1b"_s)) continue;
    ++found;
    EXPECT_TRUE(part.is_clipped);
    EXPECT_TRUE(place_of(field, "scenario").contains(part.clip.boundingRect()));
  }
  EXPECT_EQ(found, 1);
}

// Below and beside them lie the scroll bars.
TEST_F(WindowExportTest, CellsEndAtTheEdgesOfTheirTableInSvg) {
  show_plans();
  window_.raise_view(u"plans"_s);
  auto& table = find<QTableView>("plans_table");
  ASSERT_TRUE(table.horizontalScrollBar()->isVisible());
  const QRectF cells = place_of(*table.viewport(), "plans");
  int found = 0;
  for (const ClippedPart& part : svg_of("plans")) {
    const QRectF clip = part.clip.boundingRect();
    if (!part.content.contains(u"<text"_s) || !clip.intersects(cells)) continue;
    ++found;
    EXPECT_TRUE(cells.contains(clip)) << clip.top() << " to " << clip.bottom();
  }
  EXPECT_GT(found, 0);
}

TEST_F(WindowExportTest, CtrlEExportsTheViewInFront) {
  show_plans();
  for (const char* view : {"topology", "plans"}) {
    window_.raise_view(to_qstring(view));
    ASSERT_TRUE(is_idle());
    const QString file = folder_.filePath(to_qstring(view) + u"-by-key.png"_s);
    window_.activateWindow();  // The dialog before took its place.
    ASSERT_TRUE(QTest::qWaitForWindowActive(&window_));
    const QSize seen = window_.view(to_qstring(view))->size();
    QString suggested;
    answer_next_dialog(file, &suggested);
    QTest::keyClick(&window_, Qt::Key_E, Qt::ControlModifier);
    EXPECT_EQ(suggested, to_qstring(view) + u".png"_s);
    const QImage picture(file);
    ASSERT_FALSE(picture.isNull()) << view;
    EXPECT_EQ(picture.size(), 2 * seen) << view;
  }
}

// A report needs no other file and has the charts of the views that show something, in light
// colours.
TEST_F(WindowExportTest, AReportHasAllThatTheViewsShow) {
  window_.document().reset(small_choice());
  show_plans();
  const QString page = folder_.filePath(u"report.html"_s);
  answer_next_dialog(page);
  TimelineCanvas& canvas = window_.findChild<TimelineView*>()->canvas();
  QFont large = canvas.font();
  large.setPixelSize(40);
  canvas.setFont(large);
  // Neither Timeline nor Topology is in front; their charts are in the report nevertheless.
  trigger("file.export_report_html");
  ASSERT_TRUE(wait_for([&] { return said().contains(u"Exported"_s); }));
  EXPECT_THAT(said(), Says("leaves out the views that show nothing: Schedule, Run."));
  QFile file(page);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  const QString html = QString::fromUtf8(file.readAll());
  for (const char* text :
       {"<h1>llama3.2-1b on 8 GPUs of dgx-h100</h1>", "<h2>Scenario</h2>", "Constraints",
        "Where the time goes", "Where the memory goes", "Memory (GB) against Step (s)",
        ">Sweeps</h2>", ">Forecast</h2>", "Tokens over the days of the run", "<h2>Left out</h2>"})
    EXPECT_THAT(html, Says(text));
  EXPECT_GE(html.count(u"src=\"data:image/svg+xml;base64,"_s), 4);
  EXPECT_EQ(html.count(u"src="_s), html.count(u"src=\"data:"_s));
  // The Timeline is as high as its rows need, within a page.
  canvas.resize(640, 600);
  ASSERT_GT(canvas.hidden_height(), 0);
  const int height = 2 * std::min(840, 600 + canvas.hidden_height());
  QList<int> heights;
  for (const QString& part : html.split(u"src=\"data:image/png;base64,"_s).mid(1))
    heights.append(
        QImage::fromData(QByteArray::fromBase64(part.section(u'"', 0, 0).toLatin1())).height());
  EXPECT_TRUE(heights.contains(height)) << height;
  const QString pdf = folder_.filePath(u"report.pdf"_s);
  answer_next_dialog(pdf);
  trigger("file.export_report_pdf");
  ASSERT_TRUE(wait_for([&] { return said().contains(u"report.pdf"_s); }));
  QFile pages(pdf);
  ASSERT_TRUE(pages.open(QIODevice::ReadOnly));
  const QByteArray bytes = pages.readAll();
  EXPECT_TRUE(bytes.startsWith("%PDF"));
  EXPECT_GE(bytes.count("/Subtype /Image"), 4);
}

TEST(Report, ACellOfTwoLinesHasTwoLines) {
  const ReportPart part = {{}, {}, nullptr, {{u"what"_s}, {{u"aten::mm\n<slower>"_s}}}};
  const QByteArray html = report_html(u"a title"_s, {{u"a view"_s, {part}}});
  EXPECT_TRUE(html.contains("aten::mm<br>&lt;slower&gt;")) << html.toStdString();
}

TEST_F(WindowExportTest, AReportIsOfThePlanThatIsChosenWhileItWaits) {
  window_.selection().show(small_set());
  const QString page = folder_.filePath(u"report.html"_s);
  answer_next_dialog(page);
  trigger("file.export_report_html");
  ASSERT_FALSE(QFile::exists(page));
  window_.selection().choose(1);
  ASSERT_TRUE(wait_for([&] { return said().contains(u"Exported"_s); }));
  QFile file(page);
  ASSERT_TRUE(file.open(QIODevice::ReadOnly));
  const QString html = QString::fromUtf8(file.readAll());
  for (const char* view : {"Why", "Timeline", "Topology", "Sweeps", "Forecast"})
    EXPECT_THAT(html, Says(u">%1</h2>"_s.arg(to_qstring(view))));
  EXPECT_THAT(html, Says(plan_text(small_set()->plans[1].plan)));
}

// A sweep of the best plans takes long.
TEST_F(WindowExportTest, AReportThatWaitsIsWrittenOnDemand) {
  PlanSet free = *small_set();
  free.request.constraints = {};
  find<QComboBox>("sweep_axis").setCurrentIndex(static_cast<int>(planner::SweepAxis::Gpus));
  window_.selection().show(std::make_shared<const PlanSet>(std::move(free)));
  const QString page = folder_.filePath(u"report.html"_s);
  answer_next_dialog(page);
  trigger("file.export_report_html");
  const QString waits = u"is written to %1 once"_s.arg(page);
  ASSERT_TRUE(wait_for([&] { return said().contains(waits); }));
  ASSERT_TRUE(wait_for([&] { return window_.findChild<SweepView*>()->is_busy(); }));
  ASSERT_FALSE(QFile::exists(page));
  click(waits, "offer");
  EXPECT_THAT(said(), Says("Exported"));
  EXPECT_TRUE(QFile::exists(page));
  EXPECT_THAT(said(), Not(Says(waits)));
}

// The file has the chart's own size, without the widgets around it.
TEST_F(WindowExportTest, AChartIsExportedByItsMenu) {
  show_plans();
  auto& chart = find<WaterfallChart>("waterfall");
  QContextMenuEvent event(QContextMenuEvent::Mouse, chart.rect().center(),
                          chart.mapToGlobal(chart.rect().center()));
  QCoreApplication::sendEvent(&chart, &event);
  auto* menu = chart.findChild<QMenu*>(u"chart_menu"_s);
  ASSERT_NE(menu, nullptr);
  const QString file = folder_.filePath(u"time.png"_s);
  // The last result may still have to be laid out.
  QCoreApplication::processEvents();
  const QSize seen = chart.size();
  answer_next_dialog(file);
  for (QAction* action : menu->actions())
    if (action->text().contains(u"PNG"_s)) action->trigger();
  menu->close();
  EXPECT_EQ(QImage(file).size(), 2 * seen);
}

}  // namespace
}  // namespace shardwright::gui
